"""Replace and cancel: which command is the latest for an id that still has schedules pending.

A schedule is superseded when a later command carries its id. An entry lives until the last pending
schedule with the id has passed; entries of schedules in the backlog live there too, because the
command itself may be below the offset that a successor reads from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from delaytopic_relay.core.commands import Cancel, Command, DueKey, Schedule


class IdEntry(NamedTuple):
    """The latest command for an id that has schedules in the backlog, as it is stored there.

    `offset` is that command's source offset; `until_due_ms` and `until_offset` are the key of the
    last pending schedule with the id: past it the entry is of no more use.
    """

    offset: int
    until_due_ms: int
    until_offset: int


class IdState(NamedTuple):
    """The latest command of an id; `until` is the key of its last pending schedule.

    `withdrawn` says that no schedule of the id is in effect any more: the latest was a cancel, or has left.
    """

    offset: int
    withdrawn: bool
    until: DueKey
    stored: bool

    def to_entry(self) -> IdEntry:
        """Return the entry that the backlog stores: the lowest bit of the offset tells `withdrawn`."""
        return IdEntry(self.offset * 2 + self.withdrawn, self.until.due_ms, self.until.offset)


def from_entry(entry: IdEntry) -> IdState:
    """Read an entry of the backlog back."""
    return IdState(entry.offset >> 1, bool(entry.offset & 1), DueKey(entry.until_due_ms, entry.until_offset), True)


class Effect(NamedTuple):
    """The effect of a command with an id: `state` is the id's new state, None if it left nothing pending."""

    state: IdState | None
    withdrew: bool


def apply_schedule(known: IdState | None, schedule: Schedule, *, far: bool) -> Effect:
    """A schedule with an id replaces the pending one; `far` ones go to the backlog."""
    key = DueKey(schedule.due_ms, schedule.offset)
    if known is None:
        return Effect(IdState(schedule.offset, False, key, far), False)
    if schedule.offset < known.offset:
        return Effect(known._replace(until=max(known.until, key), stored=known.stored or far), False)
    withdrew = not known.withdrawn and schedule.offset > known.offset
    return Effect(IdState(schedule.offset, False, max(known.until, key), known.stored or far), withdrew)


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


class IdTable:
    """Latest command per id, bounded by what is in memory; the rest lives in the backlog and is looked up."""

    def __init__(self) -> None:
        self._states: dict[bytes, IdState] = {}
        self._last_in_memory: dict[bytes, DueKey] = {}
        self._found: Mapping[bytes, IdState] = {}
        self._to_put: dict[bytes, IdState] = {}
        self._to_forget: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._states)

    def unknown(self, commands: Iterable[Command]) -> list[bytes]:
        """The ids that the backlog has to be asked about before these commands are applied."""
        named = (command for command in commands if isinstance(command, Schedule | Cancel))
        names = {command.id for command in named if command.id is not None}
        return [name for name in names if name not in self._states and name not in self._to_put]

    def learn(self, found: Mapping[bytes, IdState], cursor: DueKey) -> None:
        """Take note of what the backlog knows; entries whose last schedule has passed are to be forgotten."""
        self._found = {name: state for name, state in found.items() if state.until > cursor}
        self._to_forget.update(name for name in found if name not in self._found)

    def schedule(self, schedule: Schedule, *, far: bool) -> bool:
        """Apply a schedule with an id; whether it withdrew a pending one."""
        assert schedule.id is not None
        effect = apply_schedule(self._known(schedule.id), schedule, far=far)
        assert effect.state is not None
        self._keep(schedule.id, effect.state, None if far else DueKey(schedule.due_ms, schedule.offset))
        return effect.withdrew

    def cancel(self, cancel: Cancel) -> bool:
        """Apply a cancel; whether it withdrew a pending schedule."""
        effect = apply_cancel(self._known(cancel.id), cancel)
        if effect.state is not None:
            self._keep(cancel.id, effect.state, None)
        return effect.withdrew

    def done(self, schedule: Schedule) -> bool:
        """Apply a schedule that is done or leaves at once; whether it withdrew a pending one."""
        assert schedule.id is not None
        effect = apply_done(self._known(schedule.id), schedule)
        if effect.state is not None:
            self._keep(schedule.id, effect.state, None)
        return effect.withdrew

    def _known(self, name: bytes) -> IdState | None:
        return self._states.get(name) or self._to_put.get(name) or self._found.get(name)

    def _keep(self, name: bytes, state: IdState, in_memory: DueKey | None) -> None:
        if state.stored:
            self._to_put[name] = state
            self._to_forget.discard(name)
        if in_memory is not None:
            self._last_in_memory[name] = max(in_memory, self._last_in_memory.get(name, in_memory))
        if in_memory is not None or name in self._states:
            self._states[name] = state

    @property
    def must_put(self) -> bool:
        """Return whether entries wait to be written to the backlog."""
        return bool(self._to_put)

    @property
    def waiting(self) -> int:
        """Return how many entries wait to be written to the backlog."""
        return len(self._to_put)

    def to_put(self) -> dict[bytes, IdEntry]:
        """The entries to write with the next put."""
        return {name: state.to_entry() for name, state in self._to_put.items()}

    def put_done(self) -> None:
        """The entries were written."""
        self._to_put = {}

    def loaded(self, schedules: Iterable[Schedule]) -> None:
        """Schedules came into memory from the backlog."""
        for schedule in schedules:
            if schedule.id is None:
                continue
            name, key = schedule.id, DueKey(schedule.due_ms, schedule.offset)
            state = apply_schedule(self._known(name), schedule, far=True).state
            assert state is not None
            self._states[name] = state
            self._last_in_memory[name] = max(key, self._last_in_memory.get(name, key))

    def without_superseded(self, taken: list[Schedule]) -> list[Schedule]:
        """Of schedules that leave memory in order, those that no later command withdrew."""
        if not self._states:
            return taken
        return [schedule for schedule in taken if schedule.id is None or self._leave(schedule.id, schedule)]

    def _leave(self, name: bytes, schedule: Schedule) -> bool:
        """A schedule leaves memory; whether it is still in effect."""
        state = self._states.get(name)
        if state is None:
            return True
        key = DueKey(schedule.due_ms, schedule.offset)
        in_effect = state.offset <= schedule.offset
        if state.until <= key:
            self._to_forget.update([name] if state.stored else [])
        elif in_effect:
            self._keep(name, state._replace(offset=schedule.offset, withdrawn=True), None)
        if key >= self._last_in_memory[name]:
            del self._states[name], self._last_in_memory[name]
        return in_effect

    def in_effect(self, schedule: Schedule) -> bool:
        """Return whether a schedule in memory would be delivered if its time came now; nothing is changed."""
        state = self._states.get(schedule.id) if schedule.id is not None else None
        return state is None or state.offset <= schedule.offset

    def to_forget(self) -> list[bytes]:
        """Entries in the backlog that are of no more use once the cursor is committed."""
        return sorted(self._to_forget - self._to_put.keys())

    def forgotten(self) -> None:
        """The backlog dropped them."""
        self._to_forget.clear()
