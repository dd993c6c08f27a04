"""Tests of the offsets of a topic, asked of a real broker."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress

from delaytopic_gateway.client.kafka_clients import Settings
from delaytopic_gateway.client.resending import beginnings
from delaytopic_gateway.client.topics import TopicPlan, create_topics

pytestmark = pytest.mark.integration


def test_the_client_that_is_given_is_asked_though_it_has_nothing_to_do(kafka: KafkaAddress) -> None:
    topic = unique("kept")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 2)])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    nowhere: Settings = {"bootstrap.servers": "127.0.0.1:1"}
    admin.list_topics(timeout=30)
    admin.poll(0)

    assert (bool(admin), beginnings(nowhere, topic, [0, 1], admin)) == (False, {0: 0, 1: 0})
