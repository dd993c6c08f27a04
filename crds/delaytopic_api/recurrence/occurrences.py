"""Occurrences: which slots of a recurrence are delivered, under which number, and when.

The first of a record is decided when the record is read, each other one when the one before it is delivered. Numbers
are those of deliveries, from 1 on, without a hole: a slot that is missed has none.
"""

from __future__ import annotations

import re
from datetime import tzinfo
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from delaytopic_api.recurrence.rules import LAST_SLOT_MS, Missed, Recurrence, Rule
from delaytopic_api.recurrence.zones import ZONES, Zones

MOST_MISSED_COUNTED: Final = 1_000
"""The most missed slots of one record at a time that are counted; more count as so many: a rule of seconds has half a
million in a week."""
_HEADER: Final = re.compile(rb"([0-9]{1,9}):([0-9]{1,15})")
_FIRST_STEP_MS: Final = 1_000


class Occurrence(NamedTuple):
    """One delivery of a recurring record."""

    number: int
    nominal_ms: int
    """The slot."""
    due_ms: int
    """The slot and its jitter."""

    def encode(self) -> bytes:
        """Return the value of the header `delay-occurrence`: `<number>:<slot in epoch milliseconds>`."""
        return b"%d:%d" % (self.number, self.nominal_ms)

    @classmethod
    def parse(cls, value: bytes | None, due_ms: int) -> Occurrence | None:
        """Return the occurrence that a header tells, of a record with a due time; None for what no relay wrote."""
        found = _HEADER.fullmatch(value or b"")
        return cls(int(found[1]), int(found[2]), due_ms) if found is not None else None


def first_occurrence(
    recurrence: Recurrence, identity: bytes, now_ms: int, zones: Zones = ZONES
) -> tuple[Occurrence | None, int]:
    """Return the first occurrence of a record that is read at an instant, and how many slots before it are missed.

    None where no slot is left.
    """
    return _occurrence(recurrence, identity, 1, recurrence.from_ms - 1, now_ms, zones)


def next_occurrence(
    recurrence: Recurrence, identity: bytes, occurrence: Occurrence, now_ms: int, zones: Zones = ZONES
) -> tuple[Occurrence | None, int]:
    """Return the occurrence behind one that is delivered at an instant, and how many slots between them are missed.

    None where no slot is left.
    """
    return _occurrence(recurrence, identity, occurrence.number + 1, occurrence.nominal_ms, now_ms, zones)


class Passed(NamedTuple):
    """The slots between an instant and the occurrence that follows."""

    missed: int
    """The number of slots that the policy for missed ones left out."""
    skipped: int = 0
    """The number of slots that it would have delivered."""
    skipped_ms: int | None = None
    """The first of these."""


def passed_over(
    recurrence: Recurrence, after_ms: int, following: Occurrence, now_ms: int, zones: Zones = ZONES
) -> Passed:
    """Return the slots between an instant and an occurrence that was chosen at another instant, or before that."""
    zone, rule = zones(recurrence.zone), recurrence.rule
    past_ms = now_ms - (following.due_ms - following.nominal_ms)
    if recurrence.missed is Missed.LATEST:
        # Whatever lies before a slot that is past; before one that is ahead nothing.
        kept_ms = None if following.nominal_ms <= past_ms else rule.slot_after(after_ms, zone)
    else:
        kept_ms = rule.slot_after(max(after_ms, past_ms - _kept_for_ms(recurrence)), zone)
    if kept_ms is None or kept_ms >= following.nominal_ms:
        return Passed(_missed(rule, zone, after_ms, following.nominal_ms - 1))
    skipped = _missed(rule, zone, kept_ms - 1, following.nominal_ms - 1)
    return Passed(_missed(rule, zone, after_ms, kept_ms - 1), skipped, kept_ms)


def left_out(recurrence: Recurrence, after_ms: int, zones: Zones = ZONES) -> tuple[int, int] | None:
    """Return how many slots are left behind an instant, and from which instant on the policy for missed ones leaves all
    of them out; None where none is left, or where it delivers one of them at any time.
    """
    zone, rule = zones(recurrence.zone), recurrence.rule
    end_ms = LAST_SLOT_MS if recurrence.until_ms is None else min(recurrence.until_ms, LAST_SLOT_MS)
    first_ms = rule.slot_after(after_ms, zone)
    if first_ms is None or first_ms > end_ms or recurrence.missed is Missed.LATEST:
        return None
    from_ms = _newest(rule, first_ms, end_ms, zone) + _kept_for_ms(recurrence)
    return _missed(rule, zone, after_ms, end_ms), from_ms


def _kept_for_ms(recurrence: Recurrence) -> int:
    """Return for how long a slot that is past is delivered where not the newest one is."""
    return 0 if recurrence.missed is Missed.NONE or recurrence.catch_up_ms is None else recurrence.catch_up_ms + 1


def upcoming(
    recurrence: Recurrence, identity: bytes, occurrence: Occurrence | None, most: int, zones: Zones = ZONES
) -> list[Occurrence]:
    """Return the occurrences behind one, or from the first on with None, if each is delivered when it is due."""
    found: list[Occurrence] = []
    while len(found) < most:
        number, after_ms = (
            (1, recurrence.from_ms - 1) if occurrence is None else (occurrence.number + 1, occurrence.nominal_ms)
        )
        # Before all of them nothing is missed.
        occurrence, _ = _occurrence(recurrence, identity, number, after_ms, after_ms, zones)
        if occurrence is None:
            break
        found.append(occurrence)
    return found


def _occurrence(
    recurrence: Recurrence, identity: bytes, number: int, after_ms: int, now_ms: int, zones: Zones
) -> tuple[Occurrence | None, int]:
    """Return the occurrence with a number, of a slot later than an instant, and how many slots it passes over."""
    if recurrence.count is not None and number > recurrence.count:
        return None, 0
    zone, rule = zones(recurrence.zone), recurrence.rule
    put_off_ms = _jitter_ms(identity, number, recurrence.jitter_ms)
    # A slot is past when it would be due by now. `last_ms` is where the slots end that may be.
    past_ms = now_ms - put_off_ms
    last_ms = past_ms if recurrence.until_ms is None else min(past_ms, recurrence.until_ms)
    slot_ms = rule.slot_after(after_ms, zone)
    missed = 0
    if rule.recurs and slot_ms is not None and slot_ms <= last_ms:
        chosen_ms = _chosen(recurrence, slot_ms, last_ms, past_ms, zone)
        missed = _missed(rule, zone, after_ms, last_ms if chosen_ms is None else min(chosen_ms - 1, last_ms))
        slot_ms = chosen_ms
    if slot_ms is None or (recurrence.until_ms is not None and slot_ms > recurrence.until_ms):
        return None, missed
    return Occurrence(number, slot_ms, slot_ms + put_off_ms), missed


def _chosen(recurrence: Recurrence, oldest_ms: int, last_ms: int, past_ms: int, zone: tzinfo) -> int | None:
    """Return the slot to deliver, by the policy for missed ones, where the oldest is past."""
    if recurrence.missed is Missed.LATEST:
        return _newest(recurrence.rule, oldest_ms, last_ms, zone)
    if recurrence.missed is Missed.NONE:
        return recurrence.rule.slot_after(last_ms, zone)
    if recurrence.catch_up_ms is None or oldest_ms >= past_ms - recurrence.catch_up_ms:
        return oldest_ms
    return recurrence.rule.slot_after(past_ms - recurrence.catch_up_ms - 1, zone)


def _newest(rule: Rule, oldest_ms: int, last_ms: int, zone: tzinfo) -> int:
    """Return the last slot up to an instant, where there is one; the rule is asked some dozens of times, at most."""
    newest_ms, step_ms, late_ms = oldest_ms, _FIRST_STEP_MS, last_ms
    # Backwards in growing steps to an instant whose next slot is not late, then by halves to the last such instant.
    while True:
        asked_ms = max(oldest_ms, last_ms - step_ms)
        slot_ms = rule.slot_after(asked_ms, zone)
        if slot_ms is not None and slot_ms <= last_ms:
            newest_ms = slot_ms
            break
        if asked_ms == oldest_ms:
            return oldest_ms
        late_ms, step_ms = asked_ms, step_ms * 2
    while newest_ms < late_ms:
        asked_ms = (newest_ms + late_ms) // 2
        slot_ms = rule.slot_after(asked_ms, zone)
        if slot_ms is not None and slot_ms <= last_ms:
            newest_ms = slot_ms
        else:
            late_ms = asked_ms
    return newest_ms


# All records of one rule that were missed together ask the same.
@lru_cache(maxsize=1024)
def _missed(rule: Rule, zone: tzinfo, after_ms: int, last_ms: int) -> int:
    """Return how many slots lie between an instant and the last one that counts."""
    missed, slot_ms = 0, rule.slot_after(after_ms, zone)
    while slot_ms is not None and slot_ms <= last_ms and missed < MOST_MISSED_COUNTED:
        missed, slot_ms = missed + 1, rule.slot_after(slot_ms, zone)
    return missed


def _jitter_ms(identity: bytes, number: int, jitter_ms: int) -> int:
    """Return a length below the jitter that follows from id and number alone: whoever computes it again finds it."""
    if not jitter_ms:
        return 0
    hashed = blake2b(b"%d:%b" % (number, identity), digest_size=8).digest()
    return int.from_bytes(hashed) * jitter_ms >> 64
