"""The consumer of the source topic on a real Kafka: where a source ends."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress

from delaytopic_cli.embedded.topics import TopicPlan, create_topics
from delaytopic_relay.core.recovery import Bounds
from delaytopic_relay.kafka.settings import Settings, consumer_settings
from delaytopic_relay.kafka.source import KafkaSource

pytestmark = pytest.mark.integration


def test_a_source_ends_behind_what_is_in_open_transactions_and_is_stable_in_front_of_it(kafka: KafkaAddress) -> None:
    topic, connection = unique("source"), Settings({"bootstrap.servers": kafka.bootstrap_servers})
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 1)])
    writer = Producer({**connection, "transactional.id": unique("writer")})
    writer.init_transactions(10)
    writer.begin_transaction()
    for _ in range(3):
        writer.produce(topic, b"v")
    writer.flush(10)
    source = KafkaSource(
        consumer_settings(connection, unique("group"), 6_000, "relay"), connection, topic, lambda _: {}
    )

    try:
        while_open = source.bounds(0), source.end(0)
    finally:
        source.close()
        writer.abort_transaction(10)

    assert while_open == (Bounds(0, 0), 3)
