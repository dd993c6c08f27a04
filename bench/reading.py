"""Reads a target topic after a run, as a `read_committed` consumer."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from bench.errors import PromiseBroken, Stalled
from bench.processes.quiet import QUIET
from bench.records import PARTITIONS, VALUE_BYTES, headers_of, sequence_of
from delaytopic_api.records import Headers

LIMIT = 1_000
TIMEOUT_SECONDS = 60.0
USER_HEADERS = headers_of(None)


def _column() -> array[int]:
    return array("q")


@dataclass(slots=True)
class Delivered:
    """The records of a target, a column for each fact; `appended_ms` is the broker's LogAppendTime."""

    sequence: array[int] = field(default_factory=_column)
    partition: array[int] = field(default_factory=_column)
    offset: array[int] = field(default_factory=_column)
    appended_ms: array[int] = field(default_factory=_column)

    def places_of(self, sequences: range) -> list[int]:
        """Return which entries have these sequence numbers."""
        return [place for place, sequence in enumerate(self.sequence) if sequence in sequences]

    def last_offsets(self, places: Iterable[int] | None = None) -> dict[int, int]:
        """The highest offset of each partition among these entries (all)."""
        last: dict[int, int] = {}
        for place in range(len(self.offset)) if places is None else places:
            partition = self.partition[place]
            last[partition] = max(self.offset[place], last.get(partition, -1))
        return last


def read_target(bootstrap_servers: str, topic: str) -> Delivered:
    """Read everything that is visible now.

    Raises `PromiseBroken` for a record whose value or user headers did not pass unchanged, `Stalled` when the broker
    does not give the end in time.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"reading.{topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 2,
        },
        logger=QUIET,
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    delivered = Delivered()
    open_partitions = set(range(PARTITIONS))
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        while open_partitions:
            if time.monotonic() > deadline:
                raise Stalled(f"{topic} could not be read to its end within {TIMEOUT_SECONDS:.0f} s")
            for message in consumer.consume(LIMIT, 0.1):
                error = message.error()
                if error is None:
                    _note(delivered, message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition() or 0)
    finally:
        consumer.close()
    return delivered


def _note(delivered: Delivered, message: Message) -> None:
    headers = cast(Headers, message.headers() or [])
    if len(message.value() or b"") != VALUE_BYTES or headers[: len(USER_HEADERS)] != USER_HEADERS:
        raise PromiseBroken(f"{message.topic()}[{message.partition()}]@{message.offset()} differs from what was sent")
    delivered.sequence.append(sequence_of(message.key()))
    delivered.partition.append(message.partition() or 0)
    delivered.offset.append(message.offset() or 0)
    delivered.appended_ms.append(message.timestamp()[1])
