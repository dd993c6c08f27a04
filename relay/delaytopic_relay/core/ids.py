"""Replace, cancel and put off: the ids of what is in memory, and what is on its way into the source.

A schedule is superseded when a later command carries its id.

What was put off cannot wait under another key than its record's: when it leaves, it is written into the source again,
and is `InTransit` until it is read there. Commands that lie between count as later than it: it has the rank of the
command that has put it off. docs/adr/0022 has the argument.

So does an occurrence of a record that recurs, of which the one before it is the origin: it has that one's offset as its
rank. The former is delivered all the same. docs/adr/0050 has the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from delaytopic_api.relay import Ending
from delaytopic_relay.core.commands import (
    NOTHING_DELIVERED,
    OCCURRENCE,
    TO_BE_RESOLVED,
    Cancel,
    Command,
    DueKey,
    End,
    Postpone,
    Reject,
    Rewritten,
    Schedule,
    goes_on,
    rank_of,
    requested_by_of,
)
from delaytopic_relay.core.done import Done
from delaytopic_relay.core.entries import unnamed
from delaytopic_relay.core.id_states import (
    IdEntry,
    IdState,
    apply_cancel,
    apply_done,
    apply_postpone,
    apply_schedule,
    from_entry,
)
from delaytopic_relay.core.withdrawn import Withdrawn


class EndedBy(NamedTuple):
    """The command that has ended a schedule before that was read."""

    ending: Ending
    offset: int
    requested_by: bytes | None


class OnItsWay(NamedTuple):
    """A command that a relay has written into the source and that is not read there yet.

    `origin` is the offset of the schedule that it stands for, or follows; -1 where that is not known. `left` is the
    state of the id as of then, if nothing is written for that schedule after all: it has left. What `withdraws` has the
    rank behind that of the schedule that it ends, which may be the rank of another schedule.
    """

    rank: int
    origin: int = -1
    left: IdState | None = None
    ended_by: EndedBy | None = None
    withdraws: bool = False


class InTransit(NamedTuple):
    """The commands of one id that are on their way, in the order in which they are in the source.

    `position` is where whoever comes next has to begin to read, so that what lies in front of them is known.
    """

    commands: tuple[OnItsWay, ...]
    position: int

    def and_then(self, command: OnItsWay) -> InTransit:
        """Return it with one command more."""
        return InTransit((*self.commands, command), self.position)

    def overtaken(self, offset: int, ended_by: EndedBy) -> InTransit:
        """Return it with the commands ended that count as earlier than an offset."""
        ends = [each.rank < offset and each.ended_by is None for each in self.commands]
        changed = (
            each._replace(ended_by=ended_by) if its else each for each, its in zip(self.commands, ends, strict=True)
        )
        return self._replace(commands=tuple(changed))

    def ended_by(self, rank: int) -> EndedBy | None:
        """Return what has ended the schedule of this rank."""
        return next((each.ended_by for each in self.commands if each.rank == rank and not each.withdraws), None)

    def without(self, rank: int, *, withdraws: bool) -> InTransit:
        """Return it without the command of this rank and kind, and those of lower ranks."""
        others = (
            each for each in self.commands if each.rank > rank or (each.rank, not each.withdraws) == (rank, withdraws)
        )
        return self._replace(commands=tuple(others))


def _ended_by(schedule: Schedule, in_transit: InTransit | None, known: IdState) -> EndedBy:
    """Return what has ended a schedule that is read, and that what is known outranks.

    Without transactions that may be there before anything is committed of it: then the latest command has.
    """
    ended_by = in_transit.ended_by(rank_of(schedule)) if in_transit is not None else None
    ending = Ending.CANCELLED if known.withdrawn and known.key is None else Ending.REPLACED
    return ended_by or EndedBy(ending, known.offset, None)


class AtOnce(NamedTuple):
    """The effect of a schedule that a relay has written, or that goes on, and that is past due when it is read."""

    leaves: bool
    withdrew: bool = False


_NAMED = (Schedule, Cancel, Postpone)


class IdTable:
    """Latest command per id, bounded by what is in memory; the rest lives in the backlog and is looked up."""

    def __init__(self, position: int = 0) -> None:
        """`position` is the committed one: commands below it were taken in before."""
        self._position = position
        self._before: dict[bytes, IdState] = {}
        """The states as of the last commit of ids that commands since have changed."""
        self._ends: list[End] = []
        self.tells = False
        """True if it is asked for what commands have ended."""
        self._states: dict[bytes, IdState] = {}
        self._last_in_memory: dict[bytes, DueKey] = {}
        self._found: Mapping[bytes, IdState] = {}
        self._to_put: dict[bytes, IdState] = {}
        self._to_forget: set[bytes] = set()
        self._in_transit: dict[bytes, InTransit] = {}
        """The names on their way, in the order of their positions. Their states stay in memory."""
        self._withdrawals: set[tuple[bytes, int]] = set()
        """The ids and ranks of withdrawals that are on their way besides."""
        self._rewritten: list[Rewritten] = []
        self.puts_off = False
        """True if anything was ever put off here: the pages ask."""
        self.withdrawn = Withdrawn()
        """The schedules that wait and will not be delivered, as far as is known."""

    def __len__(self) -> int:
        return len(self._states)

    def unknown(self, commands: Sequence[Command]) -> list[bytes]:
        """The ids that the backlog has to be asked about before these commands are applied."""
        if unnamed(commands):
            return []
        # A tuple: a union of types would be made anew for each command.
        names = {command.id for command in commands if isinstance(command, _NAMED) and command.id is not None}
        return [name for name in names if name not in self._states and name not in self._to_put]

    def learn(self, found: Mapping[bytes, IdEntry], done: Done, position: int) -> None:
        """Take note of what the backlog knows; entries whose last schedule has passed are to be forgotten.

        `position` is the offset up to which commands were applied: an entry that knows of more is of a tick that was
        never committed.
        """
        self._found = {}
        for name, entry in found.items():
            if entry.position is not None and entry.position > position:
                self._mend(name, entry, done)
                continue
            state = from_entry(entry, done)
            if state.until > done.cursor:
                self._found[name] = state
            else:
                # By a cursor that may not be committed yet.
                self._keep_before(name, state)
                self._to_forget.add(name)
        self.puts_off = self.puts_off or any(entry.postponed is not None for entry in found.values())

    def _mend(self, name: bytes, entry: IdEntry, done: Done) -> None:
        """Have an entry written as it was before it was changed by what was not committed.

        Once the position has passed what it knows, it would be believed.
        """
        state = from_entry(entry.before, done) if entry.before is not None else None
        if state is None or state.until <= done.cursor:
            state = IdState(-1, True, DueKey(entry.until_due_ms, entry.until_offset), True)
        self._to_put[name] = state
        self._to_forget.discard(name)

    def settled(self, position: int) -> None:
        """All commands below a position are committed."""
        self._position = position
        self._before.clear()

    def take_ends(self) -> Sequence[End]:
        """Return what commands that were read for the first time have ended, and forget it."""
        if not self._ends:
            return ()
        taken, self._ends = tuple(self._ends), []
        return taken

    def _note(self, name: bytes, known: IdState | None, offset: int) -> bool:
        """Keep the state as of the last commit that a command changes; whether the command is read for the first
        time.
        """
        fresh = offset >= self._position
        if fresh and known is not None:
            self._keep_before(name, known)
        return fresh

    def _keep_before(self, name: bytes, state: IdState) -> None:
        if state.offset < self._position:
            self._before.setdefault(name, state)

    def _note_end(self, known: IdState, by: Schedule | Cancel, *, fresh: bool) -> None:
        """A command has ended a schedule: that is told when it is read for the first time.

        The end of a schedule that is on its way is told when that is read, as its place is not known before.
        """
        if self.tells and fresh and not known.on_its_way:
            due_ms, offset = known.key_in_effect
            ending = Ending.REPLACED if isinstance(by, Schedule) else Ending.CANCELLED
            self._ends.append(End(ending, offset, due_ms, by.id, by.offset, requested_by_of(by)))

    def _overtake(self, command: Schedule | Cancel) -> None:
        """A command of an application ends what is on its way and counts as earlier, unless that had ended before."""
        in_transit = self._in_transit.get(command.id) if command.id is not None and command.rank is None else None
        if in_transit is None or command.id is None or not self.tells:
            return
        ending = Ending.REPLACED if isinstance(command, Schedule) else Ending.CANCELLED
        ended_by = EndedBy(ending, command.offset, requested_by_of(command))
        self._in_transit[command.id] = in_transit.overtaken(command.offset, ended_by)

    def _end_on_its_way(self, schedule: Schedule | Reject, ended_by: EndedBy | None) -> None:
        """A schedule is read that was ended on its way."""
        if self.tells and ended_by is not None and schedule.offset >= self._position:
            ending, by, requested = ended_by
            self._ends.append(End(ending, schedule.offset, schedule.due_ms, schedule.id, by, requested))

    def schedule(self, schedule: Schedule, *, far: bool) -> bool:
        """Apply a schedule with an id; whether it withdrew a pending one."""
        assert schedule.id is not None
        known = self._known(schedule.id)
        if known is None and not far and schedule.rank is None:
            self._first_in_memory(schedule.id, schedule)
            return False
        effect = apply_schedule(known, schedule, far=far)
        assert effect.state is not None
        fresh = self._note(schedule.id, known, schedule.offset)
        if effect.withdrew and known is not None:
            self._note_end(known, schedule, fresh=fresh)
        self._overtake(schedule)
        self._keep(schedule.id, effect.state, None if far else DueKey(schedule.due_ms, schedule.offset))
        return self._count(effect.withdrew, known)

    def _first_in_memory(self, name: bytes, schedule: Schedule) -> None:
        """Keep the first schedule of an id, as most are: the same as for any other, for 0.8 us less."""
        offset, new = schedule.offset, tuple.__new__
        key = new(DueKey, (schedule.due_ms, offset))
        self._states[name] = new(IdState, (offset, False, key, False, None, None, False))
        self._last_in_memory[name] = max(key, former) if (former := self._last_in_memory.get(name)) else key

    def cancel(self, cancel: Cancel) -> bool:
        """Apply a cancel; whether it withdrew a pending schedule."""
        known = self._known(cancel.id)
        effect = apply_cancel(known, cancel)
        fresh = self._note(cancel.id, known, cancel.offset)
        self._overtake(cancel)
        if cancel.rank is None:
            if effect.withdrew and known is not None:
                self._note_end(known, cancel, fresh=fresh)
            elif fresh and self.tells:
                by = requested_by_of(cancel)
                self._ends.append(End(Ending.NOT_PENDING, cancel.offset, None, cancel.id, None, by))
        if effect.state is not None:
            self._keep(cancel.id, effect.state, None)
        if cancel.rank is not None:
            self._withdrawals.discard((cancel.id, cancel.rank))
            self._land(cancel.id, cancel.rank, withdraws=True)
        return self._count(effect.withdrew, known)

    def postpone(self, postpone: Postpone) -> None:
        """Apply a command that puts off what is pending."""
        known = self._known(postpone.id)
        state = apply_postpone(known, postpone)
        if state is not None and state is not known:
            self._note(postpone.id, known, postpone.offset)
            self._keep(postpone.id, state, None)
            self.puts_off = True

    def done(self, schedule: Schedule) -> bool:
        """Apply a schedule that is done or leaves at once; whether it withdrew a pending one."""
        assert schedule.id is not None
        known = self._known(schedule.id)
        effect = apply_done(known, schedule)
        fresh = self._note(schedule.id, known, schedule.offset)
        if effect.withdrew and known is not None:
            self._note_end(known, schedule, fresh=fresh)
        self._overtake(schedule)
        if effect.state is not None:
            self._keep(schedule.id, effect.state, None)
        if schedule.rank is not None:
            self._land(schedule.id, schedule.rank)
        return self._count(effect.withdrew, known)

    def _count(self, withdrew: bool, known: IdState | None) -> bool:
        """Count the schedule that was withdrawn, if one was; return whether one was.

        One that is on its way waits nowhere yet, and is not taken in when it is read.
        """
        if withdrew and known is not None and not known.on_its_way:
            self.withdrawn.add(known.key_in_effect.due_ms)
        return withdrew

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

    # -- what is written into the source again

    def arrive(self, schedule: Schedule, position: int, *, far: bool) -> None:
        """Apply a schedule that was written again, and is read for the first time.

        What came in front of it may have withdrawn it, or put it off further. Both are said behind it, for whoever
        reads it without what came before.
        """
        assert schedule.id is not None
        known, in_transit = self._known(schedule.id), self._in_transit.get(schedule.id)
        self.schedule(schedule, far=far)
        self._land(schedule.id, rank_of(schedule))
        if known is None:
            return
        if known.offset > rank_of(schedule):
            self._rewritten.append(Rewritten(schedule, rank_of(schedule) + 1))
            self._withdrawals.add((schedule.id, rank_of(schedule) + 1))
            self._end_on_its_way(schedule, _ended_by(schedule, in_transit, known))
        elif in_transit is not None and known.puts_off(schedule):
            state = self._known(schedule.id)
            assert state is not None
            self._put_off(schedule, state, position)

    def leaves_at_once(self, schedule: Schedule, position: int) -> AtOnce:
        """Apply a schedule that was written again, or that goes on, and that is past due when it is read."""
        assert schedule.id is not None
        known, in_transit = self._known(schedule.id), self._in_transit.get(schedule.id)
        if known is not None and known.offset == rank_of(schedule) and known.puts_off(schedule):
            self._put_off(schedule, known, position)
            return AtOnce(leaves=False)
        in_effect = known is None or not known.outranks(schedule)
        withdrew = self.done(schedule)
        if not in_effect and known is not None:
            self._end_on_its_way(schedule, _ended_by(schedule, in_transit, known))
        if in_effect and goes_on(schedule):
            self._go_on(schedule, self._known(schedule.id), position)
            return AtOnce(schedule.control == OCCURRENCE, withdrew)
        return AtOnce(in_effect, withdrew)

    def _put_off(self, schedule: Schedule, state: IdState, position: int) -> None:
        """Have a schedule written again: from now on that is what counts.

        The backlog is not told. It may hear of more than is committed, and would not know the schedule any more if that
        has to be written again.
        """
        assert schedule.id is not None
        assert state.postponed is not None
        due_ms, rank = state.postponed
        self._rewritten.append(Rewritten(schedule, rank, due_ms))
        self._sets_out(schedule, rank, state, position)

    def _go_on(self, schedule: Schedule, state: IdState | None, position: int) -> None:
        """Have what comes after a schedule by its own rule written: from now on that is what counts of its id."""
        self._rewritten.append(Rewritten(schedule, schedule.offset, goes_on=True))
        self._sets_out(schedule, schedule.offset, state, position)

    def _sets_out(self, schedule: Schedule, rank: int, state: IdState | None, position: int) -> None:
        assert schedule.id is not None
        key = DueKey(schedule.due_ms, schedule.offset)
        if state is not None:
            self._keep_before(schedule.id, state)
        was = state or IdState(rank, False, key, stored=False)
        left = was._replace(offset=rank_of(schedule), withdrawn=True, postponed=None, key=key, on_its_way=False)
        former = self._in_transit.get(schedule.id, InTransit((), position))
        self._in_transit[schedule.id] = former.and_then(OnItsWay(rank, schedule.offset, left))
        self._states[schedule.id] = IdState(rank, False, was.until, stored=False, on_its_way=True)

    def take_rewritten(self) -> Sequence[Rewritten]:
        """Return what has to be written into the source, and forget it."""
        taken, self._rewritten = tuple(self._rewritten), []
        return taken

    def announce(self, command: Schedule | Cancel, position: int) -> None:
        """Take note of a command that some relay has written into the source, and that will be read later on."""
        assert command.id is not None
        known = self._known(command.id)
        if isinstance(command, Schedule):
            state = apply_schedule(known, command, far=False).state
        else:
            nothing = IdState(-1, True, NOTHING_DELIVERED, False)
            state = apply_cancel(known or nothing, command).state
        assert state is not None
        if isinstance(command, Schedule) and state.offset == rank_of(command):
            state = state._replace(on_its_way=True)
        former = self._in_transit.get(command.id, InTransit((), position))
        withdraws = isinstance(command, Cancel)
        self._in_transit[command.id] = former.and_then(OnItsWay(rank_of(command), withdraws=withdraws))
        self._states[command.id] = state

    def refused(self, schedule: Schedule | Reject) -> bool:
        """A schedule that was written again is not taken in: it is a dead letter, unless this returns that it was ended
        on its way.
        """
        assert schedule.id is not None
        assert schedule.rank is not None
        name, rank = schedule.id, schedule.rank
        in_transit, state = self._in_transit.get(name), self._states.get(name)
        ended_by = in_transit.ended_by(rank) if in_transit is not None else None
        self._end_on_its_way(schedule, ended_by)
        if state is not None and state.on_its_way and state.offset == rank:
            self._states[name] = state._replace(withdrawn=True, on_its_way=False)
        self._land(name, rank)
        return ended_by is not None

    def not_written(self, offsets: Iterable[int]) -> Sequence[End]:
        """Note that nothing was written for the schedules at these offsets: they are dead letters, or the last of their
        kind.

        Returns what is told of commands instead that were taken for their ends.
        """
        origins = {*offsets}
        ends: list[End] = []
        for name, in_transit in [*self._in_transit.items()]:
            missing = [each for each in in_transit.commands if each.origin in origins]
            if not missing:
                continue
            state, last = self._states[name], missing[-1]
            if state.on_its_way and state.offset == last.rank and not state.withdrawn and last.left is not None:
                # Older ones may have come since, which wait in vain.
                until, stored = max(last.left.until, state.until), last.left.stored or state.stored
                self._keep(name, last.left._replace(until=until, stored=stored), None)
            ends += [
                End(Ending.NOT_PENDING, by.offset, None, name, None, by.requested_by)
                for each in missing
                if (by := each.ended_by) is not None and by.ending is Ending.CANCELLED
            ]
            left = tuple(each for each in in_transit.commands if each not in missing)
            self._keep_in_transit(name, in_transit._replace(commands=left))
        return ends

    def _land(self, name: bytes, rank: int, *, withdraws: bool = False) -> None:
        """A command that was on its way is here, and with it all that were written before."""
        in_transit = self._in_transit.get(name)
        if in_transit is not None:
            self._keep_in_transit(name, in_transit.without(rank, withdraws=withdraws))

    def _keep_in_transit(self, name: bytes, in_transit: InTransit) -> None:
        """Keep what is still on its way of an id; with nothing, its state is needed for what is in memory alone."""
        if in_transit.commands:
            self._in_transit[name] = in_transit
            return
        del self._in_transit[name]
        if name not in self._last_in_memory and (state := self._states.pop(name, None)) is not None:
            # The backlog was not asked about it for what follows in this chunk.
            self._found = {**self._found, name: state}

    @property
    def on_their_way(self) -> int:
        """Return how much whoever comes next has to know of before it is read."""
        return len(self._in_transit) + len(self._withdrawals)

    @property
    def held_from(self) -> int | None:
        """The offset that whoever comes next has to read from, so that it knows of what is on its way."""
        return next((in_transit.position for in_transit in self._in_transit.values()), None)

    def until_rewritten(self, commands: Sequence[Command], position: int) -> Sequence[Command]:
        """Return the commands before the first for which something would have to be written into the source.

        `position` is the committed one: for what is below that was done.
        """
        if not self._in_transit:
            return commands
        touched: set[bytes] = set()
        for place, command in enumerate(commands):
            if not isinstance(command, Schedule | Cancel | Postpone) or command.id not in self._in_transit:
                continue
            assert command.id is not None
            state = self._states[command.id]
            if isinstance(command, Schedule) and command.rank is not None and command.offset >= position:
                if command.id in touched or state.offset > command.rank or state.puts_off(command):
                    return commands[:place]
            else:
                touched.add(command.id)
        return commands

    # -- the backlog

    @property
    def must_put(self) -> bool:
        """Return whether entries wait to be written to the backlog."""
        return bool(self._to_put)

    @property
    def waiting(self) -> int:
        """Return how many entries wait to be written to the backlog."""
        return len(self._to_put)

    def to_put(self, position: int) -> dict[bytes, IdEntry]:
        """The entries to write with the next put, before all below a position is committed."""
        return {name: self._entry(name, state, position) for name, state in self._to_put.items()}

    def _entry(self, name: bytes, state: IdState, position: int) -> IdEntry:
        before = self._before.get(name)
        if before is None and state.offset < self._position:
            return state.to_entry()
        return state.to_entry()._replace(position=position, before=before.to_entry() if before is not None else None)

    def put_done(self) -> None:
        """The entries were written."""
        self._to_put = {}

    def loaded(self, schedules: Sequence[Schedule]) -> None:
        """Schedules came into memory from the backlog."""
        if unnamed(schedules):
            return
        for schedule in schedules:
            if schedule.id is None:
                continue
            name, key = schedule.id, DueKey(schedule.due_ms, schedule.offset)
            state = apply_schedule(self._known(name), schedule, far=True).state
            assert state is not None
            self._states[name] = state
            self._last_in_memory[name] = max(key, self._last_in_memory.get(name, key))

    def without_superseded(self, taken: list[Schedule], position: int) -> list[Schedule]:
        """Return of schedules that leave memory in order those that no later command withdrew or put off.

        `position` is the offset up to which all was read.
        """
        if not self._states:
            return taken
        return [schedule for schedule in taken if schedule.id is None or self._leave(schedule.id, schedule, position)]

    def _leave(self, name: bytes, schedule: Schedule, position: int) -> bool:
        """A schedule leaves memory; whether it is delivered."""
        state = self._states.get(name)
        if state is None:
            if goes_on(schedule):
                self._go_on(schedule, None, position)
            return schedule.control != TO_BE_RESOLVED
        # Only compared: a named tuple would cost as much as all the rest here.
        key, rank = (schedule.due_ms, schedule.offset), schedule.rank
        if rank is None:
            rank = schedule.offset
        in_effect = state.offset <= rank or not state.outranks(schedule)
        is_last = state.until <= key
        if is_last and state.stored:
            self._keep_before(name, state)
            state = state._replace(stored=False)
            self._to_forget.add(name)
            # Once this is committed, nothing of the id waits: nobody is to take it for pending.
            self._to_put.pop(name, None)
        delivered = in_effect
        if not in_effect:
            self.withdrawn.left(schedule.due_ms)
        if in_effect and goes_on(schedule):
            self._go_on(schedule, state, position)
            delivered = schedule.control == OCCURRENCE
        elif in_effect and state.postponed is not None and state.puts_off(schedule):
            self._put_off(schedule, state, position)
            delivered = False
        elif in_effect and (not is_last or name in self._in_transit):
            self._keep(name, state._replace(offset=rank, withdrawn=True, postponed=None, key=DueKey(*key)), None)
        self._forget_last(name, key)
        return delivered

    def _forget_last(self, name: bytes, key: tuple[int, int]) -> None:
        """Forget the state of an id once the last of its schedules in memory has left, if none is on its way."""
        if key >= self._last_in_memory.get(name, key):
            self._last_in_memory.pop(name, None)
            if name not in self._in_transit:
                del self._states[name]

    def in_effect(self, schedule: Schedule) -> bool:
        """Return whether a schedule in memory would be delivered if its time came now; nothing is changed."""
        state = self._states.get(schedule.id) if schedule.id is not None else None
        return state is None or not state.outranks(schedule)

    def put_off_to(self, schedule: Schedule) -> int | None:
        """Return the time that a schedule in memory is put off to; None if its own counts."""
        state = self._states.get(schedule.id) if schedule.id is not None else None
        return state.postponed.due_ms if state is not None and state.postponed and state.puts_off(schedule) else None

    def to_forget(self) -> list[bytes]:
        """Entries in the backlog that are of no more use once the cursor is committed."""
        return sorted(self._to_forget - self._to_put.keys())

    def forgotten(self) -> None:
        """The backlog dropped them."""
        self._to_forget.clear()
