"""Rules for every pod of the chart. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

LABELS = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/component",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
    "helm.sh/chart",
)
"""Of each object."""
_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def broken_rules(document: Document) -> list[str]:
    """Return what a document breaks, one sentence each; those without pods can only lack labels."""
    return [*_labels(document), *_pod(document)]


def _labels(document: Document) -> Iterator[str]:
    labels = document["metadata"].get("labels", {})
    yield from (f"label {label} is missing" for label in LABELS if label not in labels)


def _pod(document: Document) -> Iterator[str]:
    if document["kind"] == "Pod":
        yield from _spec(document["spec"])
    template = document.get("spec", {}).get("template")
    if template is None:
        return
    spec = template["spec"]
    yield from _spec(spec)
    if "terminationGracePeriodSeconds" not in spec:
        yield "says not how long it takes to end"
    if not document["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items():
        yield "does not select its own pods"
    for container in spec["containers"]:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe not in container:
                yield f"container {container['name']}: has no {probe}"


def _spec(spec: Document) -> Iterator[str]:
    context = spec["securityContext"]
    if not (context["runAsNonRoot"] and context.get("runAsUser") != 0):
        yield "runs as root"
    if context["seccompProfile"] != {"type": "RuntimeDefault"}:
        yield "has no seccomp profile"
    if spec.get("enableServiceLinks") is not False:
        yield "gets the addresses of all services as environment"
    for container in spec["containers"]:
        yield from (f"container {container['name']}: {problem}" for problem in _container(container))


def _container(container: Document) -> Iterator[str]:
    if container["securityContext"] != _CONTAINER:
        yield "is not restricted"
    name, _, tag = container["image"].rpartition(":")
    if not name or tag == "latest" or "/" in tag:
        yield f"image {container['image']} names no version"
    resources = container["resources"]
    if not {"cpu", "memory"} <= resources["requests"].keys() or "memory" not in resources["limits"]:
        yield "has no requests, or no limit of memory"
