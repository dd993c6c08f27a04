"""Edge: questions to Kafka that wait until a leader is where it is asked for. Its client is imported when used."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
_AGAIN_S: Final = 0.05


def settled(ask: Callable[[], T], timeout_s: float) -> T:
    """Return what Kafka answers once the partition's leader, or the group's coordinator, is the broker that is asked.

    The client passes the answer of any other on, and does not try again. Raises the `KafkaException` of `ask` that is
    about something else, or is still the same when the time is over.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415

    until_s = time.monotonic() + timeout_s
    while True:
        try:
            return ask()
        except KafkaException as error:
            if not is_moving(error.args[0]) or time.monotonic() >= until_s:
                raise
        time.sleep(_AGAIN_S)


def is_moving(error: Any) -> bool:
    """Tell if a `KafkaError` is that of a leader or coordinator that is made or moves, as while brokers restart."""
    from confluent_kafka import KafkaError  # noqa: PLC0415

    return error.code() in (
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    )
