"""The producer of a relay on a real broker: it fences who went before, and compresses once it has to."""

from __future__ import annotations

from functools import partial

import pytest
from confluent_kafka import KafkaException, Producer
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.route import read_topic

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.core.commands import Record
from delaytopic_relay.errors import ProducerOutdated
from delaytopic_relay.kafka.settings import Settings, producer_settings
from delaytopic_relay.kafka.target import KafkaTarget

pytestmark = pytest.mark.integration


LARGE = b"the same again and again, " * 100_000
"""Larger than a topic allows by default, and small once it is compressed."""


def a_target(kafka: KafkaAddress, source: str, *, transactional: bool = True) -> KafkaTarget:
    connection = Settings({"bootstrap.servers": kafka.bootstrap_servers})
    return KafkaTarget(partial(settings_of, connection), source, unique("relay") if transactional else None)


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


def test_a_target_without_transactions_compresses_from_one_record_to_the_next(kafka: KafkaAddress) -> None:
    topic = a_topic(kafka)
    target = a_target(kafka, topic, transactional=False)

    target.send([of(topic, b"before")])
    target.compress()
    target.send([of(topic, LARGE)])

    assert target.flush() == []
    assert [record.value for record in read_topic(kafka.bootstrap_servers, topic)] == [b"before", LARGE]
    target.close()


def test_a_target_with_transactions_gives_the_open_one_up_and_compresses_once_it_is_replaced(
    kafka: KafkaAddress,
) -> None:
    topic = a_topic(kafka)
    target = a_target(kafka, topic)
    target.begin()
    target.send([of(topic, b"of the one that is given up")])

    with pytest.raises(ProducerOutdated):
        target.compress()
    target.abort()
    target.replace()
    target.begin()
    target.compress()
    target.send([of(topic, LARGE)])

    assert target.flush() == []
    target.commit({}, None)
    assert [record.value for record in read_topic(kafka.bootstrap_servers, topic)] == [LARGE]
    target.close()


@pytest.mark.parametrize("transactional", [True, False])
def test_a_large_record_that_kafka_refuses_is_known(kafka: KafkaAddress, transactional: bool) -> None:
    # Given one that has a batch of its own beside those that share theirs
    topic = a_topic(kafka)
    target = a_target(kafka, topic, transactional=transactional)
    target.begin()

    target.send([of(topic, b"small", offset=1), of(topic, LARGE, offset=2), of(topic, b"small", offset=3)])
    (refusal,) = target.flush()

    assert (refusal.too_large, refusal.partition, refusal.offset, refusal.dead_letter) == (True, 0, 2, False)
    target.abort()
    target.close()


def a_topic(kafka: KafkaAddress) -> str:
    topic = unique("topic")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 1)])
    return topic


def of(topic: str, value: bytes, offset: int = 1) -> Record:
    """A record as it leaves, with its receipt."""
    return Record(topic, value, b"key", [("delay-receipt", b"1:0:%d:2:source" % offset)])
