"""Judges a RecurringRecord by the DelayTopic that it goes through. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from delaytopic_api.documents.recurring_record import RecurringRecord
from delaytopic_api.documents.settings import Settings
from delaytopic_api.errors import Problem
from delaytopic_api.records import rfc_3339
from delaytopic_api.recurrence import ZONES, Recurrence, RecurrenceError, read_recurrence
from delaytopic_api.recurrence.rules import duration_text
from delaytopic_api.values.choices import Dialect, Ids

NEEDS_IDS: Final = "it needs the native dialect with schedule.ids: ByHeader"


def takes_ids(settings: Settings) -> bool:
    """Return whether records of a DelayTopic are replaced and cancelled by the id in a header."""
    return settings.schedule.dialect is Dialect.NATIVE and settings.schedule.ids is Ids.BY_HEADER


def recurring_refusals(record: RecurringRecord, settings: Settings, now_ms: int) -> Iterator[Problem]:
    """Yield why the DelayTopic with these settings would not deliver a record that is written at an instant."""
    subject, topic = f"RecurringRecord {record.full_name}", f"DelayTopic {settings.namespace}/{settings.name}"
    if not takes_ids(settings):
        yield Problem("spec.delayTopic", f"the {topic} takes no ids by header: {NEEDS_IDS}", subject)
    longest_ms = settings.schedule.max_delay.ms
    allowed = f"the {topic} allows at most {duration_text(longest_ms)} (schedule.maxDelay)"
    field = "spec.every" if record.spec.every is not None else "spec.cron"
    # Nothing of it says what the time is now: it is told again and again.
    for before_ms, slot_ms in pairwise([now_ms, *recurring_slots(record, now_ms, 2)]):
        if slot_ms - before_ms > longest_ms:
            is_first = before_ms == now_ms
            waits = "too far away by now" if is_first else f"{duration_text(slot_ms - before_ms)} after the one before"
            yield Problem(field, f"its time {rfc_3339(slot_ms)} is {waits}; {allowed}", subject)
            return


def recurring_slots(record: RecurringRecord, after_ms: int, most: int, last_ms: int | None = None) -> list[int]:
    """Return the first times of its rule later than an instant, in order and without jitter; none after `last_ms`.

    An object that nobody has created yet counts an interval from that instant.
    """
    created = record.metadata.creation_timestamp
    created_ms = round(created.timestamp() * 1_000) if created is not None else after_ms
    try:
        # As of 1970, so that no time of the rule lies before the record.
        recurrence = read_recurrence(record.spec.controls(created_ms), 0)
    except RecurrenceError:  # an interval that counts from the creation may end before it
        return []
    return _slots(recurrence, after_ms, most, last_ms) if recurrence is not None else []


def _slots(recurrence: Recurrence, after_ms: int, most: int, last_ms: int | None) -> list[int]:
    found: list[int] = []
    zone = ZONES(recurrence.zone)
    ends_ms = min((each for each in (recurrence.until_ms, last_ms) if each is not None), default=None)
    slot_ms = recurrence.rule.slot_after(max(after_ms, recurrence.from_ms - 1), zone)
    while slot_ms is not None and len(found) < most:
        if ends_ms is not None and slot_ms > ends_ms:
            break
        found.append(slot_ms)
        slot_ms = recurrence.rule.slot_after(slot_ms, zone)
    return found
