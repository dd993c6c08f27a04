"""A client that has nothing to do counts as false: it is kept all the same, on a real broker."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress

from delaytopic_gateway.client.kafka_clients import Settings, producer
from delaytopic_gateway.client.resending import beginnings
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_gateway.reach import kafka_cancels
from delaytopic_gateway.reach.kafka_cancels import KafkaCancels

pytestmark = pytest.mark.integration


@pytest.fixture
def topic(kafka: KafkaAddress) -> str:
    name = unique("kept")
    create_topics(kafka.bootstrap_servers, [TopicPlan(name, 2)])
    return name


def test_all_cancels_share_one_producer(kafka: KafkaAddress, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Producer] = []

    def counted(*arguments: Any) -> Producer:
        made.append(producer(*arguments))
        return made[-1]

    monkeypatch.setattr(kafka_cancels, "producer", counted)
    cancels = KafkaCancels({"bootstrap.servers": kafka.bootstrap_servers}, topic)

    written = [cancels.cancel({name: [0]}) for name in ("a", "b", "c")]

    assert written == [{"a": {0: 0}}, {"b": {0: 1}}, {"c": {0: 2}}]
    assert len(made) == 1


def test_the_client_that_is_given_asks_where_a_topic_begins(kafka: KafkaAddress, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    nowhere: Settings = {"bootstrap.servers": "127.0.0.1:1"}
    admin.list_topics(timeout=30)
    admin.poll(0)

    assert (bool(admin), beginnings(nowhere, topic, [0, 1], admin)) == (False, {0: 0, 1: 0})
