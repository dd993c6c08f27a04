"""States of ids: the latest command for an id that has schedules pending, as memory and as the backlog hold it. Pure.

An entry lives until the last pending schedule with the id has passed; entries of schedules in the backlog live there
too, because the command itself may be below the offset that a successor reads from.

Entries reach the backlog before the tick is committed that took their commands in. Each says up to which offset it
knows, and the state of before: whoever finds one that knows of more than is committed believes the former state, and
reads the commands anew. Whether the schedule in effect has left follows from its key and the cursor, and from nothing
that is stored. docs/adr/0047 has the argument.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from delaytopic_relay.core.commands import (
    NOTHING_DELIVERED,
    TO_BE_RESOLVED,
    Cancel,
    DueKey,
    Postpone,
    Schedule,
    goes_on,
    rank_of,
)
from delaytopic_relay.core.done import NOTHING_DONE, Done


class IdEntry(NamedTuple):
    """The latest command for an id that has schedules in the backlog, as it is stored there.

    `offset` is that command's source offset; `until_due_ms` and `until_offset` are the key of the
    last pending schedule with the id: past it the entry is of no more use. `postponed` and `key` are as in `IdState`.

    With a `position`, commands below it are known, and `before` is the entry as of the last commit before that.
    """

    offset: int
    until_due_ms: int
    until_offset: int
    postponed: DueKey | None = None
    key: DueKey | None = None
    position: int | None = None
    before: IdEntry | None = None

    def believed(self) -> Self:
        """Return the same, without a doubt whether it is committed."""
        return self._replace(position=None, before=None)

    @property
    def outlives_effect(self) -> bool:
        """True if the last pending schedule is not the one in effect: that has ended, has left, or is due before."""
        return bool(self.offset & 1) or self.key not in (None, (self.until_due_ms, self.until_offset))

    def encode(self) -> bytes:
        """Return the text that is stored: numbers, joined by colons, in groups. Groups that are None at the end are
        left out.
        """
        pairs = [b"%d:%d" % pair if pair else b"" for pair in (self.postponed, self.key)]
        groups = b";".join([b"%d:%d:%d" % self[:3], *pairs])
        if self.position is None:
            return groups.rstrip(b";")
        before = self.before.encode() if self.before is not None else b""
        return b"%b;%d|%b" % (groups, self.position, before)

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read the text back. Raises `ValueError`."""
        own, bar, before = text.partition(b"|")
        first, *groups = own.split(b";")
        offset, until_due_ms, until_offset = map(int, first.split(b":"))
        postponed, key, position = [*groups, *[b""] * (3 - len(groups))]
        if bool(bar) != bool(position) or b"|" in before:
            raise ValueError("it says up to which offset it knows, or what was before, and not both")
        return cls(
            offset,
            until_due_ms,
            until_offset,
            _decode_key(postponed),
            _decode_key(key),
            int(position) if position else None,
            cls.decode(before) if before else None,
        )


def _decode_key(text: bytes) -> DueKey | None:
    if not text:
        return None
    due_ms, offset = map(int, text.split(b":"))
    return DueKey(due_ms, offset)


class IdState(NamedTuple):
    """The latest schedule or cancel of an id; `until` is the key of its last pending schedule.

    `withdrawn` says that no schedule of the id is in effect any more: the latest was a cancel, or has left.
    `postponed` is the latest time that the one in effect was put off to, and the offset of the last command to do so.
    `key` is that of the schedule in effect, or that was until it left; None where that is `until`, or after a cancel.
    `on_its_way` says of the one in effect that a relay has written it into the source, where it is not read yet.
    """

    offset: int
    withdrawn: bool
    until: DueKey
    stored: bool
    postponed: DueKey | None = None
    key: DueKey | None = None
    on_its_way: bool = False

    def to_entry(self) -> IdEntry:
        """Return the entry that the backlog stores: the lowest bit of the offset tells that the latest was a cancel."""
        cancelled = self.withdrawn and self.key is None
        return IdEntry(self.offset * 2 + cancelled, *self.until, self.postponed, self.key)

    @property
    def key_in_effect(self) -> DueKey:
        """The key of the schedule that is in effect, where one is."""
        return self.key or self.until

    def puts_off(self, schedule: Schedule) -> bool:
        """Tell whether a schedule that is in effect is due later than its record says."""
        return self.postponed is not None and self.postponed.due_ms > schedule.due_ms

    def outranks(self, schedule: Schedule) -> bool:
        """Tell whether a later command than a schedule is known.

        Its own next occurrence is none: without transactions that may be there before it is delivered.
        """
        return self.offset > rank_of(schedule) and not (self.offset == schedule.offset and goes_on(schedule))


def from_entry(entry: IdEntry, done: Done = NOTHING_DONE) -> IdState:
    """Read an entry of the backlog back; the schedule in effect has left if it is done."""
    until, cancelled = DueKey(entry.until_due_ms, entry.until_offset), bool(entry.offset & 1)
    state = IdState(entry.offset >> 1, cancelled, until, True, entry.postponed, entry.key)
    if cancelled or entry.postponed is not None or not done.has(*state.key_in_effect):
        return state
    return state._replace(withdrawn=True, key=state.key_in_effect)


class Effect(NamedTuple):
    """The effect of a command with an id: `state` is the id's new state, None if it left nothing pending."""

    state: IdState | None
    withdrew: bool


def apply_schedule(known: IdState | None, schedule: Schedule, *, far: bool) -> Effect:
    """A schedule with an id replaces the pending one; `far` ones go to the backlog."""
    key, rank = DueKey(schedule.due_ms, schedule.offset), schedule.rank
    if rank is None:
        rank = schedule.offset
    if known is None:
        return Effect(IdState(rank, False, key, far), False)
    stored, until = known.stored or far, max(known.until, key)
    if rank < known.offset:
        in_effect = known.key if known.withdrawn or until == known.until else known.key_in_effect
        return Effect(known._replace(until=until, stored=stored, key=in_effect), False)
    withdrew = not known.withdrawn and rank > known.offset
    postponed = known.postponed if rank == known.offset else None
    return Effect(IdState(rank, False, until, stored, postponed, key if key != until else None), withdrew)


def apply_done(known: IdState | None, schedule: Schedule) -> Effect:
    """A schedule that has left, or leaves at once, outranks the older ones of its id and is itself pending no more."""
    rank = rank_of(schedule)
    if known is None or rank < known.offset:
        return Effect(known, False)
    withdrew = rank > known.offset and not known.withdrawn
    key = DueKey(schedule.due_ms, schedule.offset)
    if schedule.control == TO_BE_RESOLVED and rank == known.offset and key != known.key_in_effect:
        # Its first occurrence is known, which has its rank.
        return Effect(known, False)
    return Effect(known._replace(offset=rank, withdrawn=True, postponed=None, key=key), withdrew)


def apply_cancel(known: IdState | None, cancel: Cancel) -> Effect:
    """A cancel withdraws what is pending; without anything pending it is too late, and leaves nothing."""
    rank = rank_of(cancel)
    if known is None or rank <= known.offset:
        return Effect(known, False)
    return Effect(known._replace(offset=rank, withdrawn=True, postponed=None, key=None), not known.withdrawn)


def apply_postpone(known: IdState | None, postpone: Postpone) -> IdState | None:
    """Put off what is pending; without anything pending, or to an earlier time, nothing changes."""
    if known is None or known.withdrawn or postpone.offset <= known.offset:
        return known
    former = known.postponed or NOTHING_DELIVERED
    latest = DueKey(max(former.due_ms, postpone.due_ms), max(former.offset, postpone.offset))
    return known._replace(postponed=latest)
