"""A real relay as a pod: rendered as the operator renders it, ready, delivering, and handed over when its pod goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node import LocalNode
from tests.cluster.pods import await_rollout
from tests.support.route import Route, Servers

from delaytopic_api import dump_yaml
from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

LABELS = {"app.kubernetes.io/name": "delaytopic-relay"}
DUE_IN_MS = 1_500


@pytest.fixture
def route(tmp_path: Path) -> Iterator[Route]:
    """Topics on a Kafka of its own; the relay finds Redis by a file that comes from a Secret."""
    with KafkaServer(tmp_path / "kafka") as kafka, RedisServer(tmp_path / "redis") as redis:
        backend = {"redis": {"url": None, "urlFile": "/etc/delaytopic/secrets/redis/url"}}
        changes = {"backend": backend, "http": {"host": "0.0.0.0", "port": 8080}}
        yield Route(Servers(kafka.bootstrap_servers, redis.url), tmp_path, "reminders", changes).create_topics()


def objects(route: Route) -> list[dict[str, Any]]:
    """What a DelayTopic becomes in a namespace."""
    container = {
        "name": "relay",
        "image": "delaytopic-relay",
        "command": ["delaytopic-relay"],
        "args": ["--config", "/etc/delaytopic/relay.yaml"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/delaytopic"},
            {"name": "redis", "mountPath": "/etc/delaytopic/secrets/redis"},
        ],
    }
    volumes = [
        {"name": "config", "configMap": {"name": "relay"}},
        {"name": "redis", "secret": {"secretName": "redis"}},
    ]
    pod = {"terminationGracePeriodSeconds": 30, "containers": [container], "volumes": volumes}
    template = {"metadata": {"labels": LABELS}, "spec": pod | {"automountServiceAccountToken": False}}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "relay"},
            "data": {"relay.yaml": dump_yaml(route.config())},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "redis"},
            "stringData": {"url": route.servers.redis_url},
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "relay"}, "spec": spec},
    ]


def test_records_are_delivered_by_pods_and_none_is_lost_when_they_go(
    control_plane: ControlPlane, node: LocalNode, pod_namespace: str, route: Route
) -> None:
    control_plane.kubectl.apply(objects(route), "-n", pod_namespace)
    await_rollout(control_plane.client, pod_namespace, "relay", 2)
    delay: list[tuple[str, str | bytes | None]] = [("deliver-after", f"{DUE_IN_MS}ms")]

    route.send([(b"%d" % number, b"v", delay) for number in range(100)])
    first, _ = node.pods(pod_namespace, **LABELS)
    control_plane.client.delete(f"/api/v1/namespaces/{pod_namespace}/pods/{first.name}")
    verdict = route.settled_verdict()

    assert (verdict.delivered, verdict.lost, verdict.twice, verdict.early) == (100, (), (), ())
    await_rollout(control_plane.client, pod_namespace, "relay", 2)
    assert first.process.exit_code == 0
