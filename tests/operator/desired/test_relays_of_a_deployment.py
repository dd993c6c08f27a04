"""The Deployment that is made for a DelayTopic, run by a node against a real Kafka and a real Redis."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import await_rollout
from tests.operator.desired.routes import Route, route

from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer
from delaytopic_cli.embedded.topics import TopicPlan, create_topics
from delaytopic_operator.drift import drift
from delaytopic_operator.kinds import kind_of

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

PARTITIONS = 2


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path / "kafka") as server:
        create_topics(server.bootstrap_servers, [TopicPlan(name, PARTITIONS, {}) for name in ("a", "b", "a.dlq")])
        yield server


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as server:
        yield server


def test_relays_start_from_their_files_and_another_document_rolls_them_although_there_are_no_shards_to_spare(
    control_plane: ControlPlane, pod_namespace: str, kafka: KafkaServer, redis: RedisServer
) -> None:
    client = control_plane.client
    client.create(
        f"/api/v1/namespaces/{pod_namespace}/secrets",
        {"metadata": {"name": "redis"}, "data": {"url": b64encode(redis.url.encode()).decode()}},
    )

    def wanted(**spec: Any) -> Route:
        return route(
            metadata={"namespace": pod_namespace},
            of_class={
                "connection": {"bootstrapServers": kafka.bootstrap_servers},
                "backend": {"type": "RedisZset", "redis": {"urlSecret": {"secretName": "redis"}}},
                "relayNamespace": pod_namespace,
            },
            **spec,
        )

    def apply(given: Route) -> str:
        for document in given.children(replicas=PARTITIONS):
            path = kind_of(document).path(pod_namespace, document["metadata"]["name"])
            stored = client.apply(path, document, manager="delaytopic-operator")
            assert drift(document, stored) == []
        return str(document["metadata"]["name"])

    await_rollout(client, pod_namespace, apply(wanted()), PARTITIONS, seconds=90)

    # As many relays as shards: the new ones have none until old ones go.
    await_rollout(client, pod_namespace, apply(wanted(precision="2s")), PARTITIONS, seconds=120)
