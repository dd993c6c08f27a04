"""The pod templates of class and DelayTopic, checked and merged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from delaytopic_api.documents import PodTemplate as ApiPodTemplate
from delaytopic_api.documents import RelaySpec, RelayTemplate
from delaytopic_api.errors import Problem
from delaytopic_operator.resources.identity import Document, is_reserved

PATH: Final = "spec.relay.podTemplate"

_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """The template of the pods: labels, annotations, and the fields of their spec that may be chosen, only those that
    are.
    """

    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Document


def merged_template(relay: RelaySpec, template: RelayTemplate | None) -> PodTemplate:
    """The DelayTopic's under the class's.

    Labels, annotations and nodeSelector are merged by name, tolerations are added to the class's; of the rest, the
    class's is taken whole where it is given. Of topologySpreadConstraints the DelayTopic's is, an empty list included:
    they concern no other pods.
    """
    below, above = (template.pod_template if template else None), relay.pod_template
    of_class: Document = below.spec_fields() if below else {}
    own = above.spec_fields()
    spec: Document = {**own, **of_class}
    if "topologySpreadConstraints" in own:
        spec["topologySpreadConstraints"] = own["topologySpreadConstraints"]
    spec["nodeSelector"] = {**own.get("nodeSelector", {}), **of_class.get("nodeSelector", {})}
    shared = of_class.get("tolerations", [])
    spec["tolerations"] = shared + [each for each in own.get("tolerations", []) if each not in shared]
    labels, annotations = ({**_text_map(above, name), **_text_map(below, name)} for name in ("labels", "annotations"))
    kept = {field: value for field, value in spec.items() if value or field == "topologySpreadConstraints"}
    return PodTemplate(labels, annotations, kept)


def _text_map(template: ApiPodTemplate | None, name: str) -> dict[str, str]:
    found: dict[str, str] = template.metadata_fields().get(name, {}) if template is not None else {}
    return found


def template_problems(relay: RelaySpec, template: RelayTemplate | None, of_class: str) -> Iterator[Problem]:
    """Return what may not be in the templates; `of_class` is how to speak of the class."""
    yield from _problems(relay.pod_template, "")
    if template is not None:
        yield from _problems(template.pod_template, of_class)


def _problems(template: ApiPodTemplate, subject: str) -> Iterator[Problem]:
    maps = {
        "metadata.labels": _text_map(template, "labels"),
        "metadata.annotations": _text_map(template, "annotations"),
        "spec.nodeSelector": template.spec_fields().get("nodeSelector", {}),
    }
    for field, values in maps.items():
        for name, text in values.items():
            for message in _map_problems(field, name, text):
                yield Problem(f'{PATH}.{field}["{name}"]', message, subject)


def _map_problems(field: str, name: str, text: str) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield "is not a name; use letters, digits, hyphens, dots, and a prefix such as example.com/"
    elif field != "spec.nodeSelector" and is_reserved(name):
        yield "is the operator's own"
    elif field != "metadata.annotations" and not _VALUE.fullmatch(text):
        yield f'"{text}" is not a value; use up to 63 letters, digits, dots, underscores, hyphens'
