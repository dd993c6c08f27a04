"""Kubernetes' Pod Security Standard `restricted`, as far as pods of this operator could break it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
NEVER_IN_PODS = ("hostNetwork", "hostPID", "hostIPC")
NEVER_IN_CONTAINERS = ("privileged", "procMount", "seLinuxOptions")
RUNTIME = {"type": "RuntimeDefault"}


def violations(pod: dict[str, Any]) -> list[str]:
    """Return what is not allowed in a pod's spec, one line each."""
    return [*_of_pod(pod), *(line for container in pod["containers"] for line in _of_container(pod, container))]


def _of_pod(pod: dict[str, Any]) -> Iterator[str]:
    yield from (f"{field} is set" for field in NEVER_IN_PODS if pod.get(field))
    for volume in pod.get("volumes", []):
        if not volume.keys() <= {"name", *VOLUMES}:
            yield f"volume {volume['name']} is none of {sorted(VOLUMES)}"


def _of_container(pod: dict[str, Any], container: dict[str, Any]) -> Iterator[str]:
    context = pod.get("securityContext", {}) | container.get("securityContext", {})
    yield from (f"{field} is set" for field in NEVER_IN_CONTAINERS if context.get(field))
    if context.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    if context.get("capabilities") != {"drop": ["ALL"]}:
        yield "capabilities are not all dropped"
    if context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0:
        yield "runs as root"
    if context.get("seccompProfile") != RUNTIME:
        yield "seccompProfile is not RuntimeDefault"
    if any("hostPort" in port for port in container.get("ports", [])):
        yield "a hostPort is set"
