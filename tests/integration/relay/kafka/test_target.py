"""The producer of a relay on a real broker: it fences who went before."""

from __future__ import annotations

from functools import partial

import pytest
from confluent_kafka import KafkaException, Producer
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.route import read_topic

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.kafka.settings import Settings, producer_settings
from delaytopic_relay.kafka.target import KafkaTarget

pytestmark = pytest.mark.integration


def a_target(kafka: KafkaAddress, source: str) -> KafkaTarget:
    connection = Settings({"bootstrap.servers": kafka.bootstrap_servers})
    return KafkaTarget(partial(settings_of, connection), source, unique("relay"))


def settings_of(connection: Settings, owner: str | None) -> Settings:
    return producer_settings(connection, "relay", owner, 1 << 20)


def test_a_former_owner_is_fenced_and_what_it_left_open_is_never_seen(kafka: KafkaAddress) -> None:
    # Given an owner that is slow, and not gone
    topic, owner = unique("topic"), unique("former")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 1)])
    former = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": owner})
    former.init_transactions(30)
    former.begin_transaction()
    former.produce(topic, b"of the former owner")
    former.flush(30)

    # When another one fences it, twice as after a rebalance
    target = a_target(kafka, topic)
    target.fence(owner)
    target.fence(owner)

    # Then it commits nothing any more
    with pytest.raises(KafkaException):
        former.commit_transaction(30)
    assert read_topic(kafka.bootstrap_servers, topic) == []
    target.close()
