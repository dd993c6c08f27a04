"""Deliveries of a RecurringRecord by hand, beside what recurs: one now, and those of times that are past. Pure."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from delaytopic_api import RecurringRecord
from delaytopic_api.policy import recurring_slots
from delaytopic_api.records import BACKFILLED, TRIGGERED, rfc_3339
from delaytopic_gateway.documents import HeaderDocument, NewRecord
from delaytopic_process.errors import InputError

MOST_SLOTS: Final = 10_000
"""The most slots of one command: a rule of minutes has as many in a week, and a person who asks for more has mostly
mistaken the year."""
AT_ONCE: Final = "0s"
"""Said, as a DelayTopic may have a delay for what says nothing."""


def triggered(record: RecurringRecord, now_ms: int) -> NewRecord:
    """Return the record that is delivered now. It has no id, so that nothing that waits is replaced by it."""
    return _new(record, TRIGGERED, now_ms)


def backfilled(record: RecurringRecord, slot_ms: int) -> NewRecord:
    """Return the record that is delivered now for a time that is past."""
    return _new(record, BACKFILLED, slot_ms)


def slots_within(record: RecurringRecord, begin_ms: int, end_ms: int, now_ms: int) -> list[int]:
    """Return the times of the rule from one instant to another, both included, without jitter. Raises InputError."""
    if begin_ms > end_ms:
        raise InputError(f"--from {rfc_3339(begin_ms)} is later than --to {rfc_3339(end_ms)}")
    if end_ms > now_ms:
        raise InputError(f"--to {rfc_3339(end_ms)} is to come: what is not past yet recurs by itself")
    found = recurring_slots(record, begin_ms - 1, MOST_SLOTS + 1, end_ms)
    if len(found) > MOST_SLOTS:
        raise InputError(
            f"there are more than {MOST_SLOTS:,} times from {rfc_3339(begin_ms)} to {rfc_3339(end_ms)}: choose a "
            f"shorter span, such as --to {rfc_3339(found[MOST_SLOTS - 1])}"
        )
    return found


def _new(record: RecurringRecord, mark: str, instant_ms: int) -> NewRecord:
    headers = [*record.spec.headers.items(), (mark, f"{instant_ms}:{record.full_name}")]
    try:
        return NewRecord(
            deliver_after=AT_ONCE,
            key=record.spec.key,
            value=record.spec.value,
            headers=[HeaderDocument(name=name, value=text) for name, text in headers],
        )
    except ValidationError as error:
        # Objects may have headers that a gateway writes for nobody: without a name, or with a very long one.
        raise InputError(f"spec.headers: a header cannot be written: {error.errors()[0]['msg']}") from error
