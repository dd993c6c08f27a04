from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.records import Sent, produce

from delaytopic_gateway.client.topic_reader import read_topic
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_gateway.errors import KafkaUnreachableError

pytestmark = pytest.mark.integration


@pytest.fixture
def transaction(kafka: KafkaAddress) -> Iterator[tuple[dict[str, str], str, Producer]]:
    """Client settings, a topic with one committed record, and a producer with one more in an open transaction."""
    client, topic = {"bootstrap.servers": kafka.bootstrap_servers}, unique("transactions")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 2)])
    producer = Producer({**client, "transactional.id": topic})
    producer.init_transactions(30)
    for value in (b"committed", b"open"):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush()
        if value == b"committed":
            producer.commit_transaction(30)
    yield client, topic, producer
    producer.abort_transaction(30)


def values(client: dict[str, str], topic: str) -> list[bytes | None]:
    return [record.value for record in read_topic(client, topic)]


def test_a_topic_is_read_to_where_its_committed_records_end(
    transaction: tuple[dict[str, str], str, Producer],
) -> None:
    client, topic, _ = transaction

    assert values(client, topic) == [b"committed"]


def test_aborted_records_are_left_out_and_do_not_stop_the_reader(
    transaction: tuple[dict[str, str], str, Producer],
) -> None:
    client, topic, producer = transaction
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"later", partition=0)
    producer.commit_transaction(30)
    producer.begin_transaction()

    assert values(client, topic) == [b"committed", b"later"]


def test_a_topic_of_several_partitions_without_records_is_empty(kafka: KafkaAddress) -> None:
    topic = unique("empty")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 3)])

    assert values({"bootstrap.servers": kafka.bootstrap_servers}, topic) == []


def test_a_topic_that_has_lost_its_first_records_is_read_from_the_first_that_is_left(kafka: KafkaAddress) -> None:
    topic = unique("shortened")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 2)])
    produce(kafka.bootstrap_servers, topic, [Sent(value=b"%d" % number, partition=0) for number in range(3)])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, 2)]).values():
        future.result(30)

    assert values({"bootstrap.servers": kafka.bootstrap_servers}, topic) == [b"2"]


def test_an_end_that_does_not_come_is_a_clear_error(kafka: KafkaAddress) -> None:
    topic = unique("never")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 2)])

    message = rf"the end of {topic} was not reached in 0 s: partitions \[0, 1\]"
    with pytest.raises(KafkaUnreachableError, match=message):
        read_topic({"bootstrap.servers": kafka.bootstrap_servers}, topic, timeout_seconds=0.0)
