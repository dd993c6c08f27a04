"""The beginnings of the native dialect's tests: real client messages, and one DelayTopic's policy."""

from __future__ import annotations

from typing import Any, cast

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import Reject, Schedule, SourceMessage
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.dialects.reading import TopicGlobs
from delaytopic_relay.dialects.times import is_instant

Header = tuple[str, bytes | None]
Timestamp = tuple[int, int]

TIMESTAMP_MS = 1_795_269_600_000
"""2026-11-21T14:00:00Z."""
OFFSET = 41
KEY = b"order-7"
VALUE = b'{"remind": "me"}'
DAY_MS = 86_400_000
NO_TIMESTAMP: list[Timestamp] = [(TIMESTAMP_NOT_AVAILABLE, 0), (1, -1), (1, 1_795_269_600_000_000)]
"""None, a negative one, and microseconds: beyond the year 9999."""

POLICY = NativePolicy(
    target_topic="shop.reminders",
    target_allowed=TopicGlobs(["shop.*", "audit"]),
    max_delay_ms=30 * DAY_MS,
)


def native(**changes: Any) -> NativeDialect:
    """The dialect of a DelayTopic that allows 30 days, with some of its rules changed."""
    return NativeDialect(POLICY._replace(**changes))


def fixed() -> NativeDialect:
    """The dialect of a DelayTopic with a fixed delay of 30 s."""
    return native(delay_ms=30_000)


def record(
    *headers: Header,
    timestamp: Timestamp = (TIMESTAMP_CREATE_TIME, TIMESTAMP_MS),
    key: bytes | None = KEY,
    value: bytes | None = VALUE,
    offset: int = OFFSET,
) -> SourceMessage:
    """A consumed record with these headers: a real message of the client, whose type hints are wider than it is."""
    message = Message(
        topic="shop.reminders.delayed",
        partition=3,
        offset=offset,
        key=key,
        value=value,
        headers=list(headers) or None,
        timestamp=timestamp,
    )
    return cast(SourceMessage, message)


def schedule(message: SourceMessage, due_ms: int, **rest: Any) -> Schedule:
    """The schedule of that record."""
    kind, timestamp_ms = message.timestamp()
    known = kind != TIMESTAMP_NOT_AVAILABLE and is_instant(timestamp_ms)
    own_ms = timestamp_ms if known else None
    return Schedule(due_ms, OFFSET, KEY, VALUE, message.headers(), timestamp_ms=own_ms, **rest)


def reject(message: SourceMessage, reason: DeadLetterReason, detail: str) -> Reject:
    """The dead letter of that record."""
    return Reject(OFFSET, KEY, VALUE, message.headers(), reason, detail)
