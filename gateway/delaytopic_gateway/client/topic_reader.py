"""Edge: an independent reader of whole topics, for audits: read_committed, outside of any consumer group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from delaytopic_gateway.client.kafka_clients import (
    FIRST_OFFSET,
    Settings,
    assignment,
    bounds,
    committed_reader,
    headers_of,
    partitions_of,
    unreachable,
)
from delaytopic_gateway.client.raw_records import Coordinates, RawRecord
from delaytopic_gateway.errors import KafkaUnreachableError

READ_TIMEOUT_SECONDS = 60.0
# `consume` returns with fewer records than it was asked for only after this time.
_GATHER_SECONDS = 0.05


def read_topic(
    settings: Mapping[str, str],
    topic: str,
    *,
    timeout_seconds: float = READ_TIMEOUT_SECONDS,
    last: int | None = None,
) -> list[RawRecord]:
    """Return all committed records of a topic, up to the end that each partition has when it is reached.

    With `last`, those among the last so many offsets of each partition. The order is that of each partition. `settings`
    are those of the Kafka client, with `bootstrap.servers`. Raises KafkaUnreachableError when the ends are not reached
    in time, as with a transaction that nobody ends, and TopicError when there is no such topic.
    """
    return [*records_of(settings, topic, timeout_seconds=timeout_seconds, last=last)]


def records_of(
    settings: Mapping[str, str], topic: str, *, timeout_seconds: float, last: int | None
) -> Iterator[RawRecord]:
    """Yield what `read_topic` returns, and hold little of it."""
    partitions = partitions_of(settings, topic)
    consumer = committed_reader(settings, at_end_events=True)
    open_partitions = set(range(partitions))
    give_up_s = time.monotonic() + timeout_seconds
    try:
        consumer.assign(last_places(settings, consumer, topic, partitions, last))
        while open_partitions:
            if time.monotonic() >= give_up_s:
                raise KafkaUnreachableError(
                    f"the end of {topic} was not reached in {timeout_seconds:.0f} s: partitions "
                    f"{sorted(open_partitions)} do not answer, or hold a transaction that is still open"
                )
            for message in consumer.consume(1_000, _GATHER_SECONDS):
                if _is_end(message):
                    open_partitions.discard(message.partition() or 0)
                else:
                    yield raw_record(message)
    finally:
        consumer.close()


def last_places(
    settings: Settings, consumer: Consumer, topic: str, partitions: int, last: int | None
) -> list[TopicPartition]:
    """Return where to read the last so many offsets of each partition, or with None all of it.

    Raises KafkaUnreachableError.
    """
    places = assignment(topic, partitions, FIRST_OFFSET)
    if last is not None:
        for place in places:
            try:
                low, high = bounds(consumer, place)
            except KafkaException as error:
                raise unreachable(settings, error) from error
            place.offset = max(low, high - last)
    return places


def raw_record(message: Message) -> RawRecord:
    """Return a message as a record; raises KafkaUnreachableError for an error in a message's place."""
    error = message.error()
    if error is not None:
        raise KafkaUnreachableError(f"reading stopped: {error.str()}")
    return RawRecord(
        at=Coordinates(message.topic() or "", message.partition() or 0, message.offset() or 0),
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple(headers_of(message)),
    )


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF
