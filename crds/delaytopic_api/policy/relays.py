"""The rules of a DelayClass for pods: resources and fields that its DelayTopics may set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from delaytopic_api.documents.delay_class import LimitsSpec, RelayTemplate
from delaytopic_api.documents.relays import RelaySpec
from delaytopic_api.errors import InvalidText, Problem
from delaytopic_api.values.names import glob_matcher
from delaytopic_api.values.quantity import Quantity

_UNLIMITED: Final = ("cpu", "memory")
_RESOURCES, _POD = "spec.relay.resources", "spec.relay.podTemplate"


def relay_refusals(relay: RelaySpec, template: RelayTemplate, limits: LimitsSpec, by_class: str) -> Iterator[Problem]:
    """Everything about pods that the class does not allow; what has no sense at all is for others to refuse."""
    yield from _resources(relay.resources, limits.max_relay_resources, by_class)
    yield from _maps(relay.pod_template, template, by_class)
    yield from _tolerations(relay.pod_template.get("tolerations"), template.allowed.tolerations, by_class)
    yield from _wholes(relay.pod_template, template, by_class)


def _resources(resources: Mapping[str, Any], most: Mapping[str, Quantity], by_class: str) -> Iterator[Problem]:
    for field in ("requests", "limits"):
        for name, value in _items(resources.get(field)):
            path, asked = f"{_RESOURCES}.{field}{_part(name)}", _exact(value)
            if name in most and asked is not None and asked > most[name].exact:
                yield Problem(path, f"{value} is too much: {by_class} allows up to {most[name]}")
            elif name not in most and name not in _UNLIMITED:
                yield Problem(path, f"is not allowed: {by_class} allows {', '.join({**most, 'cpu': 0, 'memory': 0})}")
    if resources:
        limited = dict(_items(resources.get("limits")))
        for name in most.keys() & _UNLIMITED:
            if name not in limited:
                yield Problem(f"{_RESOURCES}.limits.{name}", f"is required: {by_class} allows up to {most[name]}")


def _maps(pod: Mapping[str, Any], template: RelayTemplate, by_class: str) -> Iterator[Problem]:
    allowed = template.allowed
    fields = {"labels": allowed.labels, "annotations": allowed.annotations, "nodeSelector": allowed.node_selector}
    for field, globs in fields.items():
        of_class = dict(_items(template.pod_template.get(field)))
        for name, value in _items(pod.get(field)):
            path = f'{_POD}.{field}["{name}"]'
            if name in of_class:
                if of_class[name] != value:
                    yield Problem(path, f"is not allowed: {by_class} sets it to {of_class[name]}")
            elif not glob_matcher(globs)(name):
                yield Problem(path, f"is not allowed: {by_class} allows {_listed(globs)}")


def _tolerations(tolerations: object, globs: list[str], by_class: str) -> Iterator[Problem]:
    for place, toleration in enumerate(tolerations if isinstance(tolerations, list) else []):
        key = toleration.get("key", "") if isinstance(toleration, Mapping) else ""
        if not glob_matcher(globs)(str(key)):
            what = f"{key} is not allowed" if key else "without a key is not allowed"
            yield Problem(f"{_POD}.tolerations[{place}].key", f"{what}: {by_class} allows {_listed(globs)}")


def _wholes(pod: Mapping[str, Any], template: RelayTemplate, by_class: str) -> Iterator[Problem]:
    of_class, allowed = template.pod_template, template.allowed
    name = pod.get("priorityClassName")
    if name and "priorityClassName" in of_class:
        if name != of_class["priorityClassName"]:
            message = f"{name} is not allowed: {by_class} sets it to {of_class['priorityClassName']}"
            yield Problem(f"{_POD}.priorityClassName", message)
    elif name and not glob_matcher(allowed.priority_class_names)(str(name)):
        message = f"{name} is not allowed: {by_class} allows {_listed(allowed.priority_class_names)}"
        yield Problem(f"{_POD}.priorityClassName", message)
    if pod.get("affinity") and "affinity" in of_class:
        yield Problem(f"{_POD}.affinity", f"is not allowed: {by_class} sets it")
    elif pod.get("affinity") and not allowed.affinity:
        yield Problem(f"{_POD}.affinity", f"is not allowed: {by_class} allows none")


def _items(part: object) -> list[tuple[str, Any]]:
    return [(str(name), value) for name, value in part.items()] if isinstance(part, Mapping) else []


def _exact(value: object) -> Fraction | None:
    try:
        return Quantity.of(str(value) if isinstance(value, float) else value).exact
    except InvalidText:
        return None


def _part(name: str) -> str:
    return f".{name}" if name.isidentifier() else f'["{name}"]'


def _listed(globs: list[str]) -> str:
    return ", ".join(globs) or "none"
