"""The SchedulerJson dialect: the JSON records of sky-uk's kafka-message-scheduler.

The value is `{"time", "topic", "key", "value", "headers"}`, with key, value and headers in base64. The record key names
the schedule: the latest wins, a null value cancels. What was delivered gets a tombstone with `schedule:expired`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from delaytopic_api.records import DeadLetterReason, Headers
from delaytopic_relay.core.commands import MAX_HEADERS, Cancel, Command, Ignore, Schedule
from delaytopic_relay.dialects.reading import (
    NamedTarget,
    Policy,
    ReadingDialect,
    Record,
    RecordError,
    decoded,
    due_at,
    identity_by_key,
    is_by_relay,
)
from delaytopic_relay.dialects.writing import Departure, ReadBy, Written, tombstone, untouched

EXPIRED: Final = "schedule:expired"
_EXPIRED: Final = (EXPIRED, b"true")


class _Schedule(msgspec.Struct):
    time: int
    topic: str
    key: bytes
    value: bytes | None = None
    headers: dict[str, bytes] | None = None


_decoder = msgspec.json.Decoder(_Schedule)


class SchedulerJsonDialect(ReadingDialect):
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.SCHEDULER_JSON
    letter = staticmethod(untouched)

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, "field topic")

    def _command(self, record: Record) -> Command:
        if record.value is None:
            own = is_by_relay(record) or (dict(record.headers or ()).get(EXPIRED) or b"").lower() == b"true"
            return Ignore(record.offset) if own else Cancel(record.offset, identity_by_key(record))
        identity, wished = identity_by_key(record), decoded(_decoder, record.value)
        if wished.headers is not None and len(wished.headers) > MAX_HEADERS:
            detail = f"field headers has more than {MAX_HEADERS} headers, which no relay carries"
            raise RecordError(DeadLetterReason.TOO_MANY_HEADERS, detail)
        due_ms = due_at(self._policy, record, "field time", max(0, wished.time))
        target = self._target.other(wished.topic.encode(), DeadLetterReason.MALFORMED_VALUE)
        return Schedule(due_ms, record.offset, record.key, record.value, record.headers, self.read_by, identity, target)

    def write(self, schedule: Schedule, departure: Departure) -> Written:
        """The record that the value describes, and the tombstone of its schedule."""
        wished = decoded(_decoder, schedule.value)
        stone = tombstone(schedule, departure, [_EXPIRED])
        headers: Headers = [*wished.headers.items()] if wished.headers is not None else []
        return Written(wished.key, wished.value, headers, companions=(stone,))
