"""Replace and cancel: which command is the latest for an id that still has schedules pending.

A schedule is superseded when a later command carries its id. An entry lives until the last pending
schedule with the id has passed; entries of schedules on the shelf live there too, because the
command itself may be below the offset that a successor reads from.
"""

from __future__ import annotations

from typing import NamedTuple

from delaytopic_relay.backlog.store import IdEntry
from delaytopic_relay.core.commands import Cancel, Key, Schedule


class IdState(NamedTuple):
    """The latest command of an id; `until` is the key of its last pending schedule.

    `withdrawn` says that no schedule of the id is in effect any more: the latest was a cancel, or has left.
    """

    offset: int
    withdrawn: bool
    until: Key
    on_shelf: bool

    def to_entry(self) -> IdEntry:
        """As the shelf stores it: the lowest bit of the offset tells `withdrawn`."""
        return IdEntry(self.offset * 2 + self.withdrawn, self.until.due_ms, self.until.offset)


def from_entry(entry: IdEntry) -> IdState:
    """Read an entry of the shelf back."""
    return IdState(entry.offset >> 1, bool(entry.offset & 1), Key(entry.until_due_ms, entry.until_offset), True)


class Effect(NamedTuple):
    """What a command with an id did: `state` is the id's new state, None if it left nothing pending."""

    state: IdState | None
    withdrew: bool


def apply_schedule(known: IdState | None, schedule: Schedule, *, far: bool) -> Effect:
    """A schedule with an id replaces the pending one; `far` ones go to the shelf."""
    key = Key(schedule.due_ms, schedule.offset)
    if known is None:
        return Effect(IdState(schedule.offset, False, key, far), False)
    if schedule.offset < known.offset:
        return Effect(known._replace(until=max(known.until, key), on_shelf=known.on_shelf or far), False)
    withdrew = not known.withdrawn and schedule.offset > known.offset
    return Effect(IdState(schedule.offset, False, max(known.until, key), known.on_shelf or far), withdrew)


def apply_done(known: IdState | None, schedule: Schedule) -> Effect:
    """A schedule that has left, or leaves at once, outranks the older ones of its id and is itself pending no more."""
    if known is None or schedule.offset < known.offset:
        return Effect(known, False)
    withdrew = schedule.offset > known.offset and not known.withdrawn
    return Effect(known._replace(offset=schedule.offset, withdrawn=True), withdrew)


def apply_cancel(known: IdState | None, cancel: Cancel) -> Effect:
    """A cancel withdraws what is pending; without anything pending it is too late, and leaves nothing."""
    if known is None or cancel.offset <= known.offset:
        return Effect(known, False)
    return Effect(known._replace(offset=cancel.offset, withdrawn=True), not known.withdrawn)
