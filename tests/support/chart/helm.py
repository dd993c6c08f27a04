"""The chart, rendered by a helm: options in, documents out."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from charts.tools.kustomize import NAMESPACE, OLDEST_KUBERNETES
from charts.tools.places import CHART
from playground.kube.helm import Helm
from playground.kube.kube_client import Object

VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
"""Files of values that the chart is rendered with, beside its own."""
BARE = CHART / "ci/bare-values.yaml"
EVERYTHING = CHART / "ci/everything-values.yaml"
TRY = CHART / "ci/try-values.yaml"
NAMESPACES = (NAMESPACE, "shop", "billing", "kafka", "delay-relays", "elsewhere")
"""The kinds that EVERYTHING names, and one that it does not."""
RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
}
"""Labels of a namespace."""


@dataclass(frozen=True)
class ChartHelm:
    """One version of helm, for this chart; raises `HelmError`."""

    program: Path
    home: Path

    def template(self, *options: str, release: str = "delaytopic", namespace: str = NAMESPACE) -> list[Object]:
        """Render the chart without a cluster: with one process for all tests that give the same options."""
        oldest = () if "--kube-version" in options else ("--kube-version", OLDEST_KUBERNETES)
        return deepcopy(_rendered(self, (*oldest, *options), release, namespace))

    def lint(self, *options: str) -> str:
        """Lint the chart, warnings counting as errors, and return the report."""
        return Helm(self.program, self.home)("lint", "--strict", str(CHART), *options)

    def on(self, kubeconfig: Path) -> Helm:
        """The same helm, on a cluster."""
        return Helm(self.program, self.home, kubeconfig)


@cache
def _rendered(helm: ChartHelm, options: tuple[str, ...], release: str, namespace: str) -> list[Object]:
    return Helm(helm.program, helm.home).template(CHART, None, *options, release=release, namespace=namespace)


def settings(**values: str) -> list[str]:
    """JSON values as options: dots in names are written as double underscores."""
    return [part for name, value in values.items() for part in ("--set-json", f"{name.replace('__', '.')}={value}")]


def named(documents: Iterable[Object], kind: str, name: str | None = None) -> Object:
    """The one document of a kind, and of a name if that is given; raises ValueError when there is not just one."""
    (found,) = (each for each in of_kind(documents, kind) if name in (None, each["metadata"]["name"]))
    return found


def of_kind(documents: Iterable[Object], kind: str) -> list[Object]:
    """All documents of a kind."""
    return [document for document in documents if document["kind"] == kind]
