"""The chart, rendered by a helm: options in, documents out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from charts.tools.kustomize import NAMESPACE, OLDEST_KUBERNETES
from charts.tools.places import CHART
from tests.cluster.helm import Helm
from tests.cluster.kube_client import Object

VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
"""What the chart is rendered with, beside its own values."""


@dataclass(frozen=True)
class ChartHelm:
    """One version of helm, for this chart; raises `HelmError`."""

    program: Path
    home: Path

    def template(self, *options: str, release: str = "delaytopic", namespace: str = NAMESPACE) -> list[Object]:
        """The chart's documents, without a cluster."""
        oldest = () if "--kube-version" in options else ("--kube-version", OLDEST_KUBERNETES)
        return Helm(self.program, self.home).template(
            CHART, None, *oldest, *options, release=release, namespace=namespace
        )

    def lint(self, *options: str) -> str:
        """What it says of the chart, warnings counting as errors."""
        return Helm(self.program, self.home)("lint", "--strict", str(CHART), *options)

    def on(self, kubeconfig: Path) -> Helm:
        """The same helm, on a cluster."""
        return Helm(self.program, self.home, kubeconfig)


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
