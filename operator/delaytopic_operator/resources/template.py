"""The pod templates of class and DelayTopic, checked and merged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from delaytopic_api.documents import RelaySpec, RelayTemplate
from delaytopic_api.errors import Problem
from delaytopic_operator.resources.identity import Document, is_reserved

PATH: Final = "spec.relay.podTemplate"

_MAPS = ("labels", "annotations", "nodeSelector")
_LISTS = ("tolerations", "topologySpreadConstraints")
_ALLOWED = (*_MAPS, *_LISTS, "affinity", "priorityClassName")
_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """Of the pods: labels, annotations, and the fields of their spec that may be chosen, only those that are."""

    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Document


def merged_template(relay: RelaySpec, template: RelayTemplate | None) -> PodTemplate:
    """The DelayTopic's under the class's.

    Labels, annotations and nodeSelector are merged by name, tolerations are added to the class's; of the rest, the
    class's is taken whole where it is given. Of topologySpreadConstraints the DelayTopic's is, an empty list included:
    they concern no other pods.
    """
    below, above = (template.pod_template if template else {}), relay.pod_template
    merged: Document = {**above, **below}
    if "topologySpreadConstraints" in above:
        merged["topologySpreadConstraints"] = above["topologySpreadConstraints"]
    for field in _MAPS:
        merged[field] = {**(above.get(field) or {}), **(below.get(field) or {})}
    tolerations = below.get("tolerations") or []
    merged["tolerations"] = tolerations + [each for each in above.get("tolerations") or [] if each not in tolerations]
    labels, annotations = merged.pop("labels"), merged.pop("annotations")
    spec = {field: merged[field] for field in _ALLOWED if merged.get(field)}
    if merged.get("topologySpreadConstraints") == []:
        spec["topologySpreadConstraints"] = []
    return PodTemplate(labels, annotations, spec)


def template_problems(relay: RelaySpec, template: RelayTemplate | None, of_class: str) -> Iterator[Problem]:
    """Return what may not be in the templates; `of_class` is how to speak of the class."""
    yield from _problems(relay.pod_template, "")
    if template is not None:
        yield from _problems(template.pod_template, of_class)


def _problems(template: Mapping[str, Any], subject: str) -> Iterator[Problem]:
    for field, value in template.items():
        path = f"{PATH}.{field}"
        if field not in _ALLOWED:
            yield Problem(path, f"is not allowed; allowed: {', '.join(_ALLOWED)}", subject)
        elif field in _MAPS:
            yield from (problem._replace(subject=subject) for problem in _map_problems(path, field, value))
        elif field in _LISTS and not _is_list_of_maps(value):
            yield Problem(path, "must be a list of mappings", subject)
        elif field == "affinity" and not isinstance(value, Mapping):
            yield Problem(path, "must be a mapping of fields", subject)
        elif field == "priorityClassName" and not isinstance(value, str):
            yield Problem(path, "must be text", subject)


def _map_problems(path: str, field: str, value: object) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(path, "must be a mapping of text to text")
        return
    for name, text in value.items():
        where = f'{path}["{name}"]'
        if not isinstance(text, str):
            yield Problem(where, 'must be text (put it in quotes: "...")')
        elif not isinstance(name, str) or not _NAME.fullmatch(name):
            yield Problem(where, "is not a name; use letters, digits, hyphens, dots, and a prefix such as example.com/")
        elif field != "nodeSelector" and is_reserved(name):
            yield Problem(where, "is the operator's own")
        elif field != "annotations" and not _VALUE.fullmatch(text):
            yield Problem(where, f'"{text}" is not a value; use up to 63 letters, digits, dots, underscores, hyphens')


def _is_list_of_maps(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) for each in value)
