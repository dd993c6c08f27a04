"""The Scheduler dialect: the headers of etf1's kafka-message-scheduler, `scheduler-*`.

The record key names the schedule: the latest wins, a null value cancels. What was delivered gets a tombstone and a copy
in the history topic, both with the delivered record's headers. Of a repeated header the first counts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import Cancel, Command, Ignore, Schedule
from delaytopic_relay.dialects.reading import (
    NamedTarget,
    Policy,
    ReadingDialect,
    Record,
    RecordError,
    due_within,
    first_values,
    identity_by_key,
    is_by_relay,
    seconds_ms,
    timestamp_of,
)
from delaytopic_relay.dialects.times import delay_text, instant_text
from delaytopic_relay.dialects.writing import Companion, Departure, ReadBy, Written, tombstone, untouched

EPOCH: Final = "scheduler-epoch"
TARGET_TOPIC: Final = "scheduler-target-topic"
TARGET_KEY: Final = "scheduler-target-key"
_NEEDS_TIMESTAMP: Final = f"header {EPOCH}"
_DAY_MS: Final = 86_400_000


class SchedulerRules(NamedTuple):
    """The bounds of how late a schedule may be; None for none.

    `grace_ms`: past due by more than this when it was produced, a schedule is refused. `since_days`: the days before
    the current one, in UTC, whose schedules are still delivered when they were missed.
    """

    history: str | None = None
    grace_ms: int | None = None
    since_days: int | None = None


class SchedulerDialect(ReadingDialect):
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.SCHEDULER
    letter = staticmethod(untouched)

    def __init__(self, policy: Policy, rules: SchedulerRules) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, f"header {TARGET_TOPIC}")
        self._rules = rules

    def _command(self, record: Record) -> Command:
        if record.value is None:
            own = is_by_relay(record)
            return Ignore(record.offset) if own else Cancel(record.offset, identity_by_key(record))
        identity, values = identity_by_key(record), first_values(record.headers)
        due_ms = self._due_ms(record, seconds_ms(EPOCH, values.get(EPOCH)))
        target = self._target.other(values.get(TARGET_TOPIC))
        since_days = self._rules.since_days
        expires_ms = _expires_ms(due_ms, since_days) if since_days is not None else None
        return Schedule(
            due_ms,
            record.offset,
            record.key,
            record.value,
            record.headers,
            self.read_by,
            identity,
            target,
            expires_ms,
            record.timestamp_ms,
        )

    def _due_ms(self, record: Record, due_ms: int) -> int:
        timestamp_ms, grace_ms = timestamp_of(record, _NEEDS_TIMESTAMP), self._rules.grace_ms
        if grace_ms is not None and timestamp_ms - due_ms > grace_ms:
            detail = (
                f"it was due at {instant_text(due_ms)}, {delay_text(timestamp_ms - due_ms)} before its timestamp;"
                f" this DelayTopic allows {delay_text(grace_ms)} (schedule.scheduler.graceInterval)"
            )
            raise RecordError(DeadLetterReason.EXPIRED, detail)
        return due_within(self._policy, timestamp_ms, due_ms)

    def write(self, schedule: Schedule, departure: Departure) -> Written:
        """The record with its place, under the key that it asks for; its tombstone; its copy for the history."""
        headers = [
            *(schedule.headers or ()),
            ("scheduler-timestamp", b"%d" % ((schedule.timestamp_ms or 0) // 1000)),
            ("scheduler-key", schedule.key),
            ("scheduler-topic", departure.source.encode()),
        ]
        # An empty header is what its Go client makes of a record without a key.
        key = dict(reversed(headers)).get(TARGET_KEY)
        stone, history = tombstone(schedule, departure, headers), self._rules.history
        if history is None:
            return Written(key, schedule.value, headers, companions=(stone,))
        copy = Companion(history, key, schedule.value, headers)
        return Written(key, schedule.value, headers, companions=(stone, copy))


def _expires_ms(due_ms: int, since_days: int) -> int:
    last_day_ms = due_ms - due_ms % _DAY_MS + since_days * _DAY_MS
    return last_day_ms + _DAY_MS - 1
