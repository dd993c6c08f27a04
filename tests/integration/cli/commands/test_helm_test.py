"""`helm test` on a real API server: its pod sends a record through a real relay, and fails where one arrives early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from charts.tools.places import CHART
from playground.kube.control_plane import ControlPlane
from playground.kube.helm import Helm, HelmError
from tests.cluster.node.local_node import LocalNode
from tests.harness.names import unique
from tests.support.relay.records import MakeRoute
from tests.support.relay.route import PARTITIONS, Route
from tests.support.relay.routes import STEADY

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

LOGIN = "trial-kafka"
Install = Callable[[Route, str], str]


@pytest.fixture
def helm(helm_program: Path, control_plane: ControlPlane, tmp_path: Path) -> Helm:
    return Helm(helm_program, tmp_path, control_plane.kubeconfig)


@pytest.fixture
def install(helm: Helm, control_plane: ControlPlane, node: LocalNode, pod_namespace: str) -> Iterator[Install]:
    """Installs the chart with a test of a DelayTopic, and returns the release's name; its operator never starts."""
    release, version = unique("release"), unique("version")
    node.missing_images.add(f"delaytopic/operator:{version}")

    def install(route: Route, target: str) -> str:
        login = yaml.safe_dump({"bootstrapServers": route.servers.bootstrap_servers})
        secret = {"metadata": {"name": LOGIN}, "stringData": {"kafka.yaml": login}}
        control_plane.client.create(f"/api/v1/namespaces/{pod_namespace}/secrets", secret)
        values: dict[str, Any] = {
            "crds": {"install": False},
            "image": {"tag": version},
            "replicaCount": 1,
            "watchNamespaces": [pod_namespace],
            "test": {"kafkaConfig": {"secret": LOGIN}, "source": route.source, "target": target, "after": "1s"},
        }
        helm.install(release, CHART, pod_namespace, values)
        return release

    yield install
    helm.uninstall(release, pod_namespace)
    node.missing_images.discard(f"delaytopic/operator:{version}")


def log_of_test(node: LocalNode, namespace: str, release: str) -> str:
    return node.pod(namespace, f"{release}-delaytopic-test").log_file.read_text(encoding="utf-8")


@pytest.mark.takes_long("a relay, a release and a pod start, and the record is watched for a while")
def test_it_succeeds_where_a_relay_delivers_once_and_not_early(
    make_route: MakeRoute, install: Install, helm: Helm, node: LocalNode, pod_namespace: str
) -> None:
    route = make_route(limits=STEADY)
    route.start_relay().wait_until_delivering(PARTITIONS)
    release = install(route, route.target)

    printed = helm("test", release, f"--namespace={pod_namespace}", "--timeout=2m")

    assert "Phase:          Succeeded" in printed
    assert f"arrived once on {route.target}, not early" in log_of_test(node, pod_namespace, release)
    assert len(route.read(route.target)) == 1


@pytest.mark.nightly  # each day a trial says so of a record that nobody delivers
def test_it_fails_where_a_record_is_early_and_its_log_says_so(
    make_route: MakeRoute, install: Install, helm: Helm, node: LocalNode, pod_namespace: str
) -> None:
    route = make_route()
    release = install(route, route.source)

    # Helm 4 notices that the pod has failed, and waits for the whole timeout all the same.
    with pytest.raises(HelmError, match=r"Phase:\s+Failed"):
        helm("test", release, f"--namespace={pod_namespace}", "--timeout=40s")

    assert f" early on {route.source}: does a relay of the dialect Native" in log_of_test(node, pod_namespace, release)
