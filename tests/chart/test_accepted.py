"""The API server's opinion of what the chart renders to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object
from tests.cluster.fixtures import MakeNamespace
from tests.support.chart.helm import NAMESPACES, RESTRICTED, VALUES, ChartHelm

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

# Instances of definitions that come with the release, or with Prometheus' operator; a namespace may exist already.
UNKNOWN = ("DelayClass", "PodMonitor", "ServiceMonitor", "PrometheusRule", "Namespace")
EVENTS = "default"
"""The namespace with events of what has no namespace."""


def _placed(documents: list[Object], namespace: str) -> Iterator[Object]:
    """Move documents to the namespace of this test: those of the chart's values may belong to other tests."""
    for document in documents:
        metadata = document["metadata"]
        if "namespace" in metadata:
            assert metadata["namespace"] in (*NAMESPACES, EVENTS)
            metadata = {**metadata, "namespace": namespace}
        yield {**document, "metadata": metadata}


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.stem if path else "own")
def test_the_api_server_accepts_every_object_without_a_warning(
    control_plane: ControlPlane, make_namespace: MakeNamespace, helm: ChartHelm, values: Path | None
) -> None:
    namespace = make_namespace(labels=RESTRICTED)
    documents = helm.template(*(["--values", str(values)] if values else []))
    known = [document for document in _placed(documents, namespace) if document["kind"] not in UNKNOWN]

    result = control_plane.kubectl.run(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", given=yaml.safe_dump_all(known)
    )

    assert (result.returncode, result.stderr) == (0, "")
