"""Command line and environment of a container, as processes of this machine have them. Pure."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.node.files import Find, PodRoot, object_data

Object = dict[str, Any]

_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class ConfigurationMissing(Exception):
    """The container refers to an object, or a key of one, that is not there: CreateContainerConfigError."""


ALL_ADDRESSES = "0.0.0.0:"


class CannotRun(Exception):
    """The container's program is not on this machine: RunContainerError."""


def container_environment(pod: Object, container: Object, root: PodRoot, find: Find, pod_ip: str) -> dict[str, str]:
    """Return what the container's `env` and `envFrom` say; raises ConfigurationMissing."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        for kind, field in (("configMap", "configMapRef"), ("secret", "secretRef")):
            if field in source:
                values = _referenced(find, kind, source[field])
                found |= {source.get("prefix", "") + name: value.decode() for name, value in values.items()}
    for variable in container.get("env", []):
        value = _value(pod, variable, find, pod_ip)
        if value is not None:
            found[variable["name"]] = root.mapped(expanded(value, found))
    return found


def container_command(container: Object, environment: Mapping[str, str], root: PodRoot, pod_ip: str) -> list[str]:
    """The program, found beside this interpreter or on the PATH, and its arguments; raises CannotRun.

    Where it is to listen on all addresses, it listens on the pod's own.
    """
    words = [*container.get("command", []), *container.get("args", [])]
    if not words:
        raise CannotRun(f"container {container['name']} has no command, and images are not known here")
    program, *arguments = (root.mapped(expanded(word, environment)) for word in words)
    return [found_program(program), *(word.replace(ALL_ADDRESSES, f"{pod_ip}:") for word in arguments)]


def found_program(name: str) -> str:
    """`python` is this interpreter, a bare name a script of its environment, or else a program on the PATH."""
    if Path(name).name in ("python", "python3"):
        return sys.executable
    beside = Path(sys.executable).with_name(Path(name).name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        raise CannotRun(f'exec: "{name}": executable file not found in $PATH')
    return found


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """With `$(NAME)` replaced, as Kubernetes does; a name that is not there stays as it is."""
    return _REFERENCE.sub(lambda reference: environment.get(reference[1], reference[0]), text)


def _value(pod: Object, variable: Object, find: Find, pod_ip: str) -> str | None:
    source = variable.get("valueFrom")
    if source is None:
        return str(variable.get("value", ""))
    if "fieldRef" in source:
        return _facts(pod, pod_ip).get(source["fieldRef"]["fieldPath"], lambda: "")()
    for kind, field in (("configMap", "configMapKeyRef"), ("secret", "secretKeyRef")):
        if field in source:
            return _referenced_key(pod, find, kind, source[field])
    return None


def _facts(pod: Object, pod_ip: str) -> dict[str, Callable[[], str]]:
    metadata, spec = pod["metadata"], pod["spec"]
    return {
        "metadata.name": lambda: str(metadata["name"]),
        "metadata.namespace": lambda: str(metadata["namespace"]),
        "metadata.uid": lambda: str(metadata["uid"]),
        "spec.nodeName": lambda: str(spec.get("nodeName", "")),
        "spec.serviceAccountName": lambda: str(spec.get("serviceAccountName", "default")),
        "status.podIP": lambda: pod_ip,
        "status.hostIP": lambda: "127.0.0.1",
    }


def _referenced_key(pod: Object, find: Find, kind: str, reference: Object) -> str | None:
    values = _referenced(find, kind, reference)
    key = reference["key"]
    if key in values:
        return values[key].decode()
    if reference.get("optional"):
        return None
    where = f"{kind.capitalize()} {pod['metadata']['namespace']}/{reference['name']}"
    raise ConfigurationMissing(f"couldn't find key {key} in {where}")


def _referenced(find: Find, kind: str, reference: Object) -> dict[str, bytes]:
    found = find(kind, reference["name"])
    if found is None and not reference.get("optional"):
        raise ConfigurationMissing(f'{kind.lower()} "{reference["name"]}" not found')
    return object_data(found or {})
