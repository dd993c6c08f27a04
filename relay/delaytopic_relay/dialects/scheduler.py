"""The Scheduler dialect: the headers of etf1's kafka-message-scheduler, `scheduler-*`.

The record key names the schedule: the latest wins, a null value cancels. What was delivered gets a tombstone and a copy
in the history topic, both with the delivered record's headers. Of a repeated header the first counts.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from delaytopic_api.records import DEAD_LETTER_SOURCE, ENDED, DeadLetterReason, Headers
from delaytopic_relay.core.commands import ANY_PARTITION, Cancel, Command, Ignore, Record, Reject, Schedule, new_record
from delaytopic_relay.dialects.reading import (
    NamedTarget,
    Policy,
    ReadingDialect,
    RecordError,
    SourceRecord,
    due_at,
    first_values,
    identity_by_key,
    is_by_relay,
    seconds_ms,
    shown,
)
from delaytopic_relay.dialects.times import delay_text, instant_text
from delaytopic_relay.dialects.writing import DELIVERED, Draft, ReadBy, Sending, tombstone

EPOCH: Final = "scheduler-epoch"
TARGET_TOPIC: Final = "scheduler-target-topic"
TARGET_KEY: Final = "scheduler-target-key"
_EXPIRED: Final = (ENDED, b"expired")
_SECOND_MS: Final = 1_000
_BLANK: Final = re.compile(r"[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*")
"""The blanks that Go's `strings.TrimSpace` cuts off."""
_DAY_MS: Final = 86_400_000
_SPACE, _LAST_OF_ASCII = 0x20, 0x7F


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

    def __init__(self, policy: Policy, rules: SchedulerRules) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, f"header {TARGET_TOPIC}")
        self._rules = rules

    def _command(self, record: SourceRecord) -> Command:
        if record.value is None:
            own = is_by_relay(record)
            return Ignore(record.offset) if own else Cancel(record.offset, _identity(record))
        identity, values = _identity(record), first_values(record.headers)
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

    def _due_ms(self, record: SourceRecord, due_ms: int) -> int:
        timestamp_ms, grace_ms = record.timestamp_ms, self._rules.grace_ms
        # In whole seconds, as the original counts: what is due in the second of its timestamp is not past.
        if grace_ms is not None and timestamp_ms is not None and _second(timestamp_ms) - due_ms > grace_ms:
            detail = (
                f"it was due at {instant_text(due_ms)}, {delay_text(timestamp_ms - due_ms)} before its timestamp;"
                f" this DelayTopic allows {delay_text(grace_ms)} (schedule.scheduler.graceInterval)"
            )
            raise RecordError(DeadLetterReason.EXPIRED, detail)
        return due_at(self._policy, record, due_ms)

    def write(self, schedule: Schedule, sending: Sending) -> Draft:
        """The record with its place, under the key that it asks for; its tombstone; its copy for the history."""
        headers = [
            *(schedule.headers or ()),
            ("scheduler-timestamp", b"%d" % ((schedule.timestamp_ms or 0) // 1000)),
            ("scheduler-key", schedule.key),
            ("scheduler-topic", sending.source.encode()),
        ]
        # An empty header is what its Go client makes of a record without a key.
        key = dict(reversed(headers)).get(TARGET_KEY)
        stone, history = tombstone(schedule, sending, [*headers, DELIVERED]), self._rules.history
        if history is None:
            return Draft(key, schedule.value, headers, along=(stone,))
        copy = new_record(Record, (history, schedule.value, key, headers, ANY_PARTITION))
        return Draft(key, schedule.value, headers, along=(stone, copy))

    def letter(self, reject: Reject, sending: Sending) -> Draft:
        """The record untouched; of one that came too late the tombstone, too, as the original writes it."""
        headers: Headers = [*(reject.headers or ())]
        if reject.reason is not DeadLetterReason.EXPIRED or reject.key is None:
            return Draft(reject.key, reject.value, headers)
        place = b"%b:%d:%d" % (sending.source.encode(), sending.partition, reject.offset)
        own: Headers = [*headers, _EXPIRED, (DEAD_LETTER_SOURCE, place)]
        stone = Record(sending.source, None, reject.key, own, sending.partition)
        return Draft(reject.key, reject.value, headers, along=(stone,))


def _identity(record: SourceRecord) -> bytes:
    """Return the record key, which names the schedule, unless it is blank. Raises `RecordError`."""
    key = identity_by_key(record)
    # Nearly all begin with a letter or digit.
    if (key[0] <= _SPACE or key[0] > _LAST_OF_ASCII) and _BLANK.fullmatch(key.decode("utf-8", "replace")):
        detail = f"the record key names the schedule: it must not be blank, but is {shown(key)}"
        raise RecordError(DeadLetterReason.MALFORMED_KEY, detail)
    return key


def _second(timestamp_ms: int) -> int:
    return timestamp_ms - timestamp_ms % _SECOND_MS


def _expires_ms(due_ms: int, since_days: int) -> int:
    last_day_ms = due_ms - due_ms % _DAY_MS + since_days * _DAY_MS
    return last_day_ms + _DAY_MS - 1
