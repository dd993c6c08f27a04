"""The rules of a DelayClass for pods: resources and fields that its DelayTopics may set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from delaytopic_api.documents.delay_class import AllowedPodTemplate, LimitsSpec, RelayTemplate
from delaytopic_api.documents.pods import PodTemplate, Resources
from delaytopic_api.documents.relays import RelaySpec
from delaytopic_api.errors import Problem
from delaytopic_api.values.names import glob_matcher
from delaytopic_api.values.quantity import Quantity

_UNLIMITED: Final = ("cpu", "memory")
_RESOURCES, _POD = "spec.relay.resources", "spec.relay.podTemplate"


def relay_refusals(relay: RelaySpec, template: RelayTemplate, limits: LimitsSpec, by_class: str) -> Iterator[Problem]:
    """Everything about pods that the class does not allow; what has no sense at all is for others to refuse."""
    yield from _resources(relay.resources, limits.max_relay_resources, by_class)
    asked, of_class, allowed = relay.pod_template, template.pod_template, limits.allowed_pod_template
    yield from _maps(asked, of_class, allowed, by_class)
    yield from _tolerations(asked.spec_fields().get("tolerations", []), allowed.tolerations, by_class)
    yield from _wholes(asked.spec_fields(), of_class.spec_fields(), allowed, by_class)


def _resources(resources: Resources, most: Mapping[str, Quantity], by_class: str) -> Iterator[Problem]:
    for field, sizes in (("requests", resources.requests), ("limits", resources.limits)):
        for name, size in (sizes or {}).items():
            path = f"{_RESOURCES}.{field}{_part(name)}"
            if name in most and size.exact > most[name].exact:
                yield Problem(path, f"{size} is too much: {by_class} allows up to {most[name]}")
            elif name not in most and name not in _UNLIMITED:
                yield Problem(path, f"is not allowed: {by_class} allows {', '.join({**most, 'cpu': 0, 'memory': 0})}")
    if resources.as_container():
        for name in most.keys() & _UNLIMITED:
            if name not in (resources.limits or {}):
                yield Problem(f"{_RESOURCES}.limits.{name}", f"is required: {by_class} allows up to {most[name]}")


def _maps(asked: PodTemplate, of_class: PodTemplate, allowed: AllowedPodTemplate, by_class: str) -> Iterator[Problem]:
    metadata, known = asked.metadata_fields(), of_class.metadata_fields()
    maps = {
        "metadata.labels": (metadata.get("labels"), known.get("labels"), allowed.labels),
        "metadata.annotations": (metadata.get("annotations"), known.get("annotations"), allowed.annotations),
        "spec.nodeSelector": (
            asked.spec_fields().get("nodeSelector"),
            of_class.spec_fields().get("nodeSelector"),
            allowed.node_selector,
        ),
    }
    for field, (values, set_by_class, globs) in maps.items():
        for name, value in (values or {}).items():
            path, given = f'{_POD}.{field}["{name}"]', (set_by_class or {}).get(name)
            if given is not None:
                if given != value:
                    yield Problem(path, f"is not allowed: {by_class} sets it to {given}")
            elif not glob_matcher(globs)(name):
                yield Problem(path, f"is not allowed: {by_class} allows {_listed(globs)}")


def _tolerations(tolerations: list[dict[str, Any]], globs: list[str], by_class: str) -> Iterator[Problem]:
    for place, toleration in enumerate(tolerations):
        key = toleration.get("key", "")
        if not glob_matcher(globs)(key):
            what = f"{key} is not allowed" if key else "without a key is not allowed"
            yield Problem(f"{_POD}.spec.tolerations[{place}].key", f"{what}: {by_class} allows {_listed(globs)}")


def _wholes(
    asked: Mapping[str, Any], of_class: Mapping[str, Any], allowed: AllowedPodTemplate, by_class: str
) -> Iterator[Problem]:
    name, path = asked.get("priorityClassName"), f"{_POD}.spec.priorityClassName"
    if name and "priorityClassName" in of_class:
        if name != of_class["priorityClassName"]:
            message = f"{name} is not allowed: {by_class} sets it to {of_class['priorityClassName']}"
            yield Problem(path, message)
    elif name and not glob_matcher(allowed.priority_class_names)(name):
        message = f"{name} is not allowed: {by_class} allows {_listed(allowed.priority_class_names)}"
        yield Problem(path, message)
    if asked.get("affinity") and "affinity" in of_class:
        yield Problem(f"{_POD}.spec.affinity", f"is not allowed: {by_class} sets it")
    elif asked.get("affinity") and not allowed.affinity:
        yield Problem(f"{_POD}.spec.affinity", f"is not allowed: {by_class} allows none")


def _part(name: str) -> str:
    return f".{name}" if name.isidentifier() else f'["{name}"]'


def _listed(globs: list[str]) -> str:
    return ", ".join(globs) or "none"
