"""The Deployment that is made for a DelayTopic, run by a node against a real Kafka and a real Redis."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.pods import await_rollout
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.routes import Route, route

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_operator.decide.drift import drift
from delaytopic_operator.model.kinds import kind_of

# Every day test_delivery rolls relays, and test_relays_without_shards has some that are ready without any.
pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

PARTITIONS = 2


def test_relays_start_from_their_files_and_another_document_rolls_them_although_there_are_no_shards_to_spare(
    control_plane: ControlPlane, pod_namespace: str, kafka: KafkaAddress, redis: RedisAddress
) -> None:
    client, name = control_plane.client, f"{pod_namespace}.relays"
    topics = {"source": f"{name}.delayed", "target": f"{name}.now", "deadLetter": f"{name}.dlq"}
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, PARTITIONS, {}) for topic in topics.values()])
    client.create(
        f"/api/v1/namespaces/{pod_namespace}/secrets",
        {"metadata": {"name": "redis"}, "data": {"url": b64encode(redis.url.encode()).decode()}},
    )

    def wanted(**spec: Any) -> Route:
        return route(
            metadata={"namespace": pod_namespace},
            **{role: {"topic": topic} for role, topic in topics.items()},
            of_class={
                "connection": {"bootstrapServers": kafka.bootstrap_servers},
                "backend": {"type": "RedisZset", "redis": {"urlSecret": {"secretName": "redis"}}},
                "relayNamespace": pod_namespace,
            },
            **spec,
        )

    def apply(given: Route) -> str:
        for document in given.relay_objects(replicas=PARTITIONS):
            path = kind_of(document).path(pod_namespace, document["metadata"]["name"])
            stored = client.apply(path, document, manager="delaytopic-operator")
            assert drift(document, stored) == []
        return str(document["metadata"]["name"])

    await_rollout(client, pod_namespace, apply(wanted()), PARTITIONS, seconds=90)

    # As many relays as shards: the new ones have none until old ones go.
    await_rollout(client, pod_namespace, apply(wanted(precision="2s")), PARTITIONS, seconds=120)
