"""The ids that one shard has to know about now: those of schedules in memory, and of writes under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from delaytopic_relay.backlog.store import IdEntry
from delaytopic_relay.core.commands import Cancel, Command, Key, Reject, Schedule
from delaytopic_relay.core.id_state import IdState, apply_cancel, apply_done, apply_schedule


class IdTable:
    """Latest command per id, bounded by what is in memory; the rest lives on the shelf and is looked up."""

    def __init__(self) -> None:
        self._states: dict[bytes, IdState] = {}
        self._last_in_memory: dict[bytes, Key] = {}
        self._found: Mapping[bytes, IdState] = {}
        self._to_put: dict[bytes, IdState] = {}
        self._to_forget: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._states)

    def unknown(self, commands: Iterable[Command]) -> list[bytes]:
        """The ids that the shelf has to be asked about before these commands are applied."""
        names = {command.id for command in commands if not isinstance(command, Reject) and command.id is not None}
        return [name for name in names if name not in self._states and name not in self._to_put]

    def learn(self, found: Mapping[bytes, IdState], cursor: Key) -> None:
        """Take note of what the shelf knows; entries whose last schedule has passed are to be forgotten."""
        self._found = {name: state for name, state in found.items() if state.until > cursor}
        self._to_forget.update(name for name in found if name not in self._found)

    def schedule(self, schedule: Schedule, *, far: bool) -> bool:
        """Apply a schedule with an id; whether it withdrew a pending one."""
        assert schedule.id is not None
        effect = apply_schedule(self._known(schedule.id), schedule, far=far)
        assert effect.state is not None
        self._keep(schedule.id, effect.state, None if far else Key(schedule.due_ms, schedule.offset))
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

    def _keep(self, name: bytes, state: IdState, in_memory: Key | None) -> None:
        if state.on_shelf:
            self._to_put[name] = state
            self._to_forget.discard(name)
        if in_memory is not None:
            self._last_in_memory[name] = max(in_memory, self._last_in_memory.get(name, in_memory))
        if in_memory is not None or name in self._states:
            self._states[name] = state

    @property
    def must_put(self) -> bool:
        """Whether entries wait to be written to the shelf."""
        return bool(self._to_put)

    @property
    def waiting(self) -> int:
        """How many entries wait to be written to the shelf."""
        return len(self._to_put)

    def to_put(self) -> dict[bytes, IdEntry]:
        """The entries to write with the next put."""
        return {name: state.to_entry() for name, state in self._to_put.items()}

    def put_done(self) -> None:
        """The entries were written."""
        self._to_put = {}

    def loaded(self, schedules: Iterable[Schedule]) -> None:
        """Schedules came into memory from the shelf."""
        for schedule in schedules:
            if schedule.id is None:
                continue
            name, key = schedule.id, Key(schedule.due_ms, schedule.offset)
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
        key = Key(schedule.due_ms, schedule.offset)
        in_effect = state.offset <= schedule.offset
        if state.until <= key:
            self._to_forget.update([name] if state.on_shelf else [])
        elif in_effect:
            self._keep(name, state._replace(offset=schedule.offset, withdrawn=True), None)
        if key >= self._last_in_memory[name]:
            del self._states[name], self._last_in_memory[name]
        return in_effect

    def in_effect(self, schedule: Schedule) -> bool:
        """Whether a schedule in memory would be delivered if its time came now; nothing is changed."""
        state = self._states.get(schedule.id) if schedule.id is not None else None
        return state is None or state.offset <= schedule.offset

    def to_forget(self) -> list[bytes]:
        """Entries on the shelf that are of no more use once the cursor is committed."""
        return sorted(self._to_forget - self._to_put.keys())

    def forgotten(self) -> None:
        """The shelf dropped them."""
        self._to_forget.clear()
