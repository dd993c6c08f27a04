"""Records of the native dialect that recur: how they are read, and what a relay writes for them.

What is due when depends on a zone, on its data, or on a cron expression, so that it does not follow from the record for
ever. A relay computes it once, and writes it into the record's own source partition with the rest of the record. Read
there, it is a schedule like any other. docs/adr/0050 has the argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from typing import Final

from delaytopic_api.records import (
    ACTION_CANCEL,
    CONTROL_HEADERS,
    DELIVER_ACTION,
    DELIVER_EXPIRES_AT,
    DELIVER_ID,
    DELIVER_TO,
    OCCURRENCE,
    RECURRENCE_HEADERS,
    RESTATED,
    DeadLetterReason,
    Headers,
)
from delaytopic_api.recurrence import (
    ZONES,
    Every,
    Occurrence,
    Recurrence,
    RecurrenceError,
    Zones,
    first_occurrence,
    next_occurrence,
    read_recurrence,
)
from delaytopic_relay.core import commands
from delaytopic_relay.core.commands import MAX_HEADERS, Cancel, Command, Record, Reject, Rewritten, Schedule
from delaytopic_relay.dialects.reading import (
    MAX_ID_BYTES,
    Policy,
    RecordError,
    SourceRecord,
    due_within,
    is_topic_name,
    shown,
    timestamp_of,
)
from delaytopic_relay.dialects.restated import Restated, read_restated, restated_header
from delaytopic_relay.dialects.times import delay_text, instant_ms, instant_text
from delaytopic_relay.dialects.writing import Draft, Following, Sending, without

Controls = Mapping[str, bytes | None]
_ADDED: Final = frozenset({RESTATED, OCCURRENCE})
_REMOVED: Final = CONTROL_HEADERS | {RESTATED}
_ONLY_RESTATED: Final = frozenset({RESTATED})
_OCCURRENCE_FORM: Final = re.compile(rb"([0-9]{1,9}):([0-9]{1,15})")


def written_by_relay(policy: Policy, record: SourceRecord, controls: Controls) -> Command | None:
    """Return the command of what a relay has written for a record that recurs; None for any other record.

    Whatever the rules are by now, it is read as what was written: relays wait for it. It may be due within `maxDelay`
    of the rules at its offset, and may be sent to the topics that are allowed when it is due.
    """
    identity = controls.get(DELIVER_ID)
    if not identity or len(identity) > MAX_ID_BYTES:
        return None
    ours = {name: value for name, value in record.headers or () if name in _ADDED}
    restated = read_restated(ours.get(RESTATED), record.offset)
    if restated is None:
        return None
    if restated.due_ms is None:
        return Cancel(record.offset, identity, restated.rank) if controls.get(DELIVER_ACTION) == ACTION_CANCEL else None
    if _occurrence_of(ours) is None or controls.keys().isdisjoint(RECURRENCE_HEADERS):
        return None
    try:
        due_within(policy, timestamp_of(record, f"header {RESTATED}"), restated.due_ms)
    except RecordError as error:
        return refused(record, identity, restated, error)
    return Schedule(
        restated.due_ms,
        record.offset,
        record.key,
        record.value,
        record.headers,
        commands.OCCURRENCE,
        identity,
        _target_of(controls),
        _expires_ms(controls),
        record.timestamp_ms,
        restated.rank,
    )


def refused(record: SourceRecord, identity: bytes, restated: Restated, error: RecordError) -> Reject:
    """Return the dead letter of an occurrence that a relay has written: others wait for it no more."""
    return Reject(
        record.offset,
        record.key,
        record.value,
        record.headers,
        error.reason,
        error.detail,
        record.timestamp_ms,
        identity,
        restated.due_ms,
        restated.rank,
    )


def _target_of(controls: Controls) -> str | None:
    name = controls.get(DELIVER_TO)
    return name.decode("ascii") if name is not None and is_topic_name(name) else None


def _expires_ms(controls: Controls) -> int | None:
    text = controls.get(DELIVER_EXPIRES_AT)
    return instant_ms(text) if text else None


def recurrence_of(policy: Policy, record: SourceRecord, controls: Controls) -> Recurrence | None:
    """Return what the headers of a record say of its recurrence; None if nothing. Raises `RecordError`."""
    if controls.keys().isdisjoint(RECURRENCE_HEADERS):
        return None
    timestamp_ms = timestamp_of(record, "a record that recurs")
    # Which zones there are is asked when it is resolved: the same record is read alike by every relay.
    recurrence = _read(controls, timestamp_ms, lambda name: UTC)
    if recurrence is None:
        return None
    if DELIVER_ID not in controls:
        detail = f"a record that recurs, or that names a local time, needs an id: add header {DELIVER_ID}"
        raise RecordError(DeadLetterReason.MALFORMED_HEADER, detail)
    if isinstance(recurrence.rule, Every) and recurrence.rule.interval_ms > policy.max_delay_ms:
        detail = (
            f"it is delivered every {delay_text(recurrence.rule.interval_ms)}; this DelayTopic allows at most"
            f" {delay_text(policy.max_delay_ms)} (schedule.maxDelay) from one delivery to the next"
        )
        raise RecordError(DeadLetterReason.BEYOND_MAX_DELAY, detail)
    if len(record.headers or ()) > MAX_HEADERS - len(_ADDED):
        detail = f"it has more than {MAX_HEADERS - len(_ADDED)} headers, and a relay adds {len(_ADDED)} to what recurs"
        raise RecordError(DeadLetterReason.TOO_MANY_HEADERS, detail)
    return recurrence


def _read(controls: Controls, timestamp_ms: int, zones: Zones) -> Recurrence | None:
    try:
        return read_recurrence(controls, timestamp_ms, zones)
    except RecurrenceError as error:
        raise RecordError(DeadLetterReason(error.reason), str(error)) from error


def _occurrence_of(headers: Controls) -> tuple[int, int] | None:
    """Return number and slot that a relay has written; of a repeated header the last."""
    text = headers.get(OCCURRENCE)
    found = _OCCURRENCE_FORM.fullmatch(text) if text is not None else None
    return (int(found[1]), int(found[2])) if found is not None else None


@contextmanager
def _known_zone(recurrence: Recurrence) -> Iterator[None]:
    """Raise `RecordError` for a zone that this machine does not have, or has damaged."""
    try:
        yield
    except (LookupError, ValueError, OSError) as error:
        detail = (
            f"the relay has no time zone {shown(recurrence.zone.encode())}: it needs a later tzdata, or another name"
        )
        raise RecordError(DeadLetterReason.UNSUPPORTED, detail) from error


class RecurringWriter:
    """Writes what recurs: each occurrence as it is delivered, and the next one into the source."""

    def __init__(self, policy: Policy, zones: Zones = ZONES) -> None:
        """`zones` are those of this machine."""
        self._policy = policy
        self._zones = zones

    def write(self, schedule: Schedule, sending: Sending) -> Headers:
        """The headers of an occurrence: the record's own, and which one it is."""
        return without(schedule.headers, _REMOVED)

    def rewrite(self, rewritten: Rewritten, sending: Sending) -> Following:
        """The next occurrence, or the cancel of one that was withdrawn on its way."""
        schedule, rank = rewritten.schedule, rewritten.rank
        if not rewritten.goes_on:
            headers: Headers = [
                (DELIVER_ID, schedule.id),
                (DELIVER_ACTION, ACTION_CANCEL),
                restated_header(None, rank, schedule.offset, sending),
            ]
            return Following(Record(sending.source, None, schedule.key, headers, sending.partition))
        occurrence, missed = self._next(schedule, sending.sent_ms)
        if occurrence is None:
            return Following(None, missed)
        headers = [
            *without(schedule.headers, _ADDED),
            (OCCURRENCE, occurrence.encode()),
            restated_header(occurrence.due_ms, rank, schedule.offset, sending),
        ]
        return Following(Record(sending.source, schedule.value, schedule.key, headers, sending.partition), missed)

    def _next(self, schedule: Schedule, now_ms: int) -> tuple[Occurrence | None, int]:
        """Return what comes after a schedule, None where nothing does, and how many slots are missed before.

        Raises `RecordError`.
        """
        headers, identity = dict(schedule.headers or ()), schedule.id or b""
        if schedule.control == commands.TO_BE_RESOLVED:
            return self._first(headers, identity, schedule.timestamp_ms or 0, now_ms)
        number, nominal_ms = _occurrence_of(headers) or (0, 0)
        # An interval that is counted from a slot of its own has the same slots.
        recurrence = _read(headers, nominal_ms, self._zones)
        if recurrence is None:
            return None, 0
        former = Occurrence(number, nominal_ms, schedule.due_ms)
        with _known_zone(recurrence):
            return next_occurrence(recurrence, identity, former, now_ms, self._zones)

    def _first(self, headers: Controls, identity: bytes, timestamp_ms: int, now_ms: int) -> tuple[Occurrence, int]:
        """Return the first occurrence of a record. Raises `RecordError` where there is none within `maxDelay`."""
        recurrence = _read(headers, timestamp_ms, self._zones)
        occurrence, missed = None, 0
        if recurrence is not None:
            with _known_zone(recurrence):
                occurrence, missed = first_occurrence(recurrence, identity, now_ms, self._zones)
        if occurrence is None:
            detail = f"it has no occurrence left at {instant_text(now_ms)}, when it was read: all of its times are past"
            raise RecordError(DeadLetterReason.EXPIRED, detail)
        if occurrence.due_ms - now_ms > self._policy.max_delay_ms:
            detail = (
                f"its first occurrence is due at {instant_text(occurrence.due_ms)}, "
                f"{delay_text(occurrence.due_ms - now_ms)} after it was read;"
                f" this DelayTopic allows at most {delay_text(self._policy.max_delay_ms)} (schedule.maxDelay)"
            )
            raise RecordError(DeadLetterReason.BEYOND_MAX_DELAY, detail)
        return occurrence, missed

    def letter(self, reject: Reject, sending: Sending) -> Draft:
        """The record as it was produced: without the place that a relay has written for it."""
        return Draft(reject.key, reject.value, without(reject.headers, _ONLY_RESTATED))
