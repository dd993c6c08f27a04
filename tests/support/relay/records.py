"""Records on their way in: sent one by one to where the test wants them, and where on the source they ended up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from tests.support.relay.route import ClientHeaders, Route

from delaytopic_api.values import BackendType
from delaytopic_gateway.client.raw_records import Coordinates

MakeRoute = Callable[..., Route]

REDIS, BUCKETS = (str(backend) for backend in (BackendType.REDIS_ZSET, BackendType.KAFKA_BUCKETS))
BOTH_BACKENDS = pytest.mark.parametrize("backend", [REDIS, BUCKETS], indirect=True)
"""For a test of something that each backend does in its own way. Other tests run with RedisZset."""
BUCKETS_NIGHTLY = pytest.mark.parametrize(
    "backend", [REDIS, pytest.param(BUCKETS, marks=pytest.mark.nightly)], indirect=True
)
"""For a test whose other backend is held day by day by a quicker test or by the simulation."""
REDIS_NIGHTLY = pytest.mark.parametrize(
    "backend", [pytest.param(REDIS, marks=pytest.mark.nightly), BUCKETS], indirect=True
)
"""The same the other way round: of tests that are alike, some run with each backend every day."""
IN_TURN = pytest.mark.parametrize(
    ("backend", "speedups"),
    [
        pytest.param(backend, speedups, id=f"{backend}-in {language}", marks=marks)
        for backend, speedups, language, marks in (
            (REDIS, True, "C", ()),
            (BUCKETS, False, "Python", ()),
            (REDIS, False, "Python", pytest.mark.nightly),
            (BUCKETS, True, "C", pytest.mark.nightly),
        )
    ],
    indirect=True,
)
"""For a test of both backends whose relays may have the speedups or not: each value of both every day, all pairs at
night.
"""
ONLY_BUCKETS = pytest.mark.parametrize("backend", [BUCKETS], indirect=True)
"""For a test of what happens to bucket topics."""
LARGEST_REQUEST_BYTES = 16 << 20
ANY_PARTITION = -1


class Sent(NamedTuple):
    """A record to send; the key decides the partition unless one is given."""

    key: bytes | None = None
    value: bytes | None = None
    headers: ClientHeaders = []  # noqa: RUF012  # a tuple's default, and never appended to
    partition: int = ANY_PARTITION


def produce(bootstrap_servers: str, topic: str, records: Sequence[Sent]) -> list[Coordinates]:
    """Produce records and wait until they are there; tells where each of them is. Raises KafkaException."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "linger.ms": 1,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "message.max.bytes": LARGEST_REQUEST_BYTES,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    # One that has no connection when it needs a producer id asks again half a second later.
    producer.list_topics(topic, 30)
    places: list[Coordinates | None] = [None] * len(records)
    failures: list[KafkaError] = []

    def noting(number: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
            places[number] = Coordinates(topic, message.partition() or 0, message.offset() or 0)

        return note

    for number, record in enumerate(records):
        producer.produce(
            topic, record.value, record.key, record.partition, headers=record.headers, on_delivery=noting(number)
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    if failures:
        raise KafkaException(failures[0])
    return cast(list[Coordinates], places)


def count_records(bootstrap_servers: str, topic: str) -> int:
    """Return how many records a topic has that was never written to in transactions, nor shortened."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "counter"})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, partition), 30) for partition in partitions]
    consumer.close()
    return sum(end for _, end in ends)


def now_ms() -> int:
    """The clock of this machine, which the relays share."""
    return time.time_ns() // 1_000_000


def at(due_ms: int) -> tuple[str, bytes]:
    """The header that asks for a due time."""
    return ("deliver-at", b"%d" % due_ms)
