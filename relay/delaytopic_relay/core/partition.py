"""The state machine of every shard with a backlog: sort what arrives, deliver what is due, state its progress.

Pure: every method takes plain data and the time, and returns what the caller has to do. The caller
does it in this order, which is what makes the progress true: take in, deliver, put (acknowledged),
commit, then confirm and drop. Where schedules wait that are due later is the business of the subclasses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from delaytopic_api.relay import BucketStatus
from delaytopic_relay.core.admission_limits import ANY_SIZE, NOTHING_MS, Admission
from delaytopic_relay.core.calendar import SLOT_MS, Calendar
from delaytopic_relay.core.commands import (
    NOTHING,
    Cancel,
    Command,
    DueKey,
    End,
    Leaving,
    Postpone,
    Reject,
    Schedule,
    goes_on,
)
from delaytopic_relay.core.entries import Summary, due_at, sizes, summary, unnamed
from delaytopic_relay.core.epochs import Epochs
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.ids import IdTable
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.rules import Generation, Generations
from delaytopic_relay.core.suspension import until_departure

MOST_LOOKED_AT = 10_000
"""Schedules in the memory of one shard, for a list: up to 3 ms of the loop's time for a burst, else some tenths."""


class Stored(NamedTuple):
    """The part of a shard that is not in memory, at one moment."""

    from_ms: int | None = None
    """The due time up to which everything is in memory; None when everything is."""
    state: Any = None
    """The facts that a reader of this backlog needs; opaque to everybody else."""


class Wanted(NamedTuple):
    """Schedules for a list: of those that are due in a span and that `takes` selects, so many of the first."""

    from_ms: int
    before_ms: int
    records: int
    takes: Callable[[Schedule], bool] | None = None

    def takes_in_time(self, schedule: Schedule) -> bool:
        """Tell whether a schedule is selected."""
        return self.from_ms <= schedule.due_ms < self.before_ms and (self.takes is None or self.takes(schedule))


class Share(NamedTuple):
    """The memory that a shard takes in its backlog, and the most that it may take."""

    used_bytes: int
    limit_bytes: int
    full: bool
    """Reading pauses until a part of it is free."""
    refused_bytes: int = 0
    """Schedules that the backlog had no room for, and that wait in memory: reading pauses until it is there."""


class ShardCore(ABC):
    """The state machine of one source partition.

    What is due before `_frontier_ms` is held in memory; all that is due before `_loaded_until_ms` is there, and
    may leave in its turn.
    """

    def __init__(self, partition: int, progress: Progress, start: int, horizon_ms: int) -> None:
        """`progress` is what is committed, `start` where reading begins."""
        self.partition = partition
        self.position = start
        self.done = progress.done
        self.committed_offset = progress.offset
        """L of the last commit: whatever is below it and not done is in the backlog."""
        self.calendar = Calendar()
        self.ids = IdTable(progress.position)
        self.admission = Admission(progress.admission_limits)
        self.rules = Generations(progress.generations, progress.floor)
        self.epochs = Epochs(progress, start)
        self.replay_until = progress.position
        self.looks_ahead = False
        """True if it is still being looked ahead for commands that relays have written into the source."""
        self._known_on_their_way = progress.on_their_way
        self._horizon_ms = horizon_ms
        self._frontier_ms = 0
        self._loaded_until_ms = 0
        self._far: list[Schedule] = []
        self.far_bytes = 0

    @property
    @abstractmethod
    def pending(self) -> int:
        """Schedules not yet done, in memory and in the backlog."""

    @abstractmethod
    def waiting(self) -> Iterator[tuple[int, int, int]]:
        """Yield the spans in which schedules wait that are not in the calendar: start, width, and how many."""

    @abstractmethod
    def stored(self) -> Stored:
        """Return what is not in memory, as of now."""

    @property
    def cursor(self) -> DueKey:
        """The key of the last delivered schedule, or the time at which the clock has come back to."""
        return self.done.cursor

    def come_back(self, now_ms: int) -> None:
        """Let the cursor go back to the clock if it is far ahead of it, so that what comes is delivered in time."""
        self.done = self.done.back_at(now_ms, max(self.position, self.replay_until))

    @property
    def record_bytes(self) -> int:
        """The largest schedule that the backlog takes."""
        return ANY_SIZE

    @property
    def replaying(self) -> bool:
        """Return whether records taken in before are being read again; until that is over nothing is delivered."""
        return self.position < self.replay_until or self.looks_ahead

    def without_departures(self, commands: Sequence[Command], now_ms: int) -> Sequence[Command]:
        """Return those of a chunk that can be taken in while only what is due by then may leave."""
        kept = until_departure(commands, self.cursor, self.replay_until, now_ms)
        return self.ids.until_rewritten(kept, self.replay_until)

    @property
    def size(self) -> int:
        """Return about how many bytes of memory the schedules take."""
        return self.calendar.size + self.far_bytes

    @property
    def ids_bytes(self) -> int:
        """Return about how many bytes of memory ids take whose schedules are in the backlog: none, where it keeps them,
        too.
        """
        return 0

    @property
    def refuses_ids(self) -> bool:
        """Return whether schedules with an id are refused."""
        return not self.admission.now.ids

    @property
    def counted(self) -> bool:
        """Return whether all that waits is known, so that it can be counted."""
        return True

    @property
    def share(self) -> Share | None:
        """The part of the backlog that is this shard's, where that is bounded or known; None elsewhere."""
        return None

    def follow(self, generations: Sequence[Generation], floor: int) -> None:
        """Go on with these generations of rules, which are committed."""
        self.rules = Generations(generations, floor)

    @property
    def tells_ends(self) -> bool:
        """See `Shard.tells_ends`."""
        return self.ids.tells

    @tells_ends.setter
    def tells_ends(self, tells: bool) -> None:
        self.ids.tells = tells

    def settled(self) -> None:
        """Take note that what was taken in is committed."""
        self.ids.settled(max(self.position, self.replay_until))

    def _learn(self, found: Mapping[bytes, IdEntry]) -> None:
        """Take note of what the backlog knows of ids."""
        self.ids.learn(found, self.done, max(self.position, self.replay_until))

    # -- taking in

    def look_ahead(self, commands: Sequence[Command], found: Mapping[bytes, IdEntry]) -> None:
        """Take note of what relays have written into the source, of commands that are read properly later on.

        `found` is as for `ingest`.
        """
        self._learn(found)
        for command in commands:
            if isinstance(command, Schedule | Cancel) and command.rank is not None:
                # Without transactions an occurrence may be there before the record is committed that it follows, and
                # which is read again as if it were not.
                if goes_on(command) and command.rank >= self.replay_until:
                    continue
                self.ids.announce(command, self.position)

    def not_written(self, offsets: Iterable[int]) -> Sequence[End]:
        """Take note that nothing was written into the source for schedules at these offsets; see the protocol."""
        return self.ids.not_written(offsets)

    def unknown_ids(self, commands: Sequence[Command]) -> Sequence[bytes]:
        """Return the ids that the backlog has to be asked about before these commands are taken in."""
        return self.ids.unknown(commands)

    def renew_admission_limits(self, now_ms: int, *, ids_share: float) -> None:
        """Decide what is taken in from now on; to be called before records are."""
        offset = max(self.position, self.replay_until)
        max_delay_ms = self.rules.max_delay_ms(offset)
        self.admission.renew(now_ms, offset, max_delay_ms, ids_share=ids_share, record_bytes=self.record_bytes)

    def ingest(self, commands: Sequence[Command], next_position: int, found: Mapping[bytes, IdEntry]) -> Leaving:
        """Sort a chunk into memory, backlog and what leaves at once.

        `found` are the backlog's entries for the names that `ids.unknown(commands)` asked for.
        """
        self._learn(found)
        if commands and unnamed(commands) and self._waits(commands, span := summary(commands)):
            self._ingest_unnamed(commands, span)
            self._passed(next_position)
            return Leaving([], [], rewritten=self.ids.take_rewritten())
        near: list[Schedule] = []
        far: list[Schedule] = []
        leaving = Leaving([], [])
        done, last_done_ms, frontier_ms = self.done, self.done.last_ms, self._frontier_ms
        counts = [0, 0, 0]
        for command in self._admitted(commands, leaving.rejects):
            if type(command) is Schedule:
                due_ms = command.due_ms
                if due_ms <= last_done_ms and done.has(due_ms, command.offset):
                    self._past(command, leaving, counts)
                    continue
                if command.id is not None:
                    counts[0] += self._named(command, far=due_ms >= frontier_ms)
                if due_ms < frontier_ms:
                    near.append(command)
                else:
                    far.append(command)
            elif type(command) is Reject:
                ended = command.rank is not None and self.ids.refused(command)
                if command.offset >= self.replay_until and not ended:
                    leaving.rejects.append(command)
            else:
                self._other(command, leaving, counts)
        self.rules.gave(near)
        self.rules.gave(far)
        self._take_in(near, far)
        self._passed(next_position)
        leaving.schedules.sort(key=_key)
        superseded, cancelled, too_late = counts
        rewritten, ends = self.ids.take_rewritten(), self.ids.take_ends()
        return Leaving(*leaving[:2], superseded, cancelled, too_late, rewritten, ends)

    def _waits(self, schedules: Sequence[Schedule], span: Summary) -> bool:
        """Return whether all schedules without an id are taken in, and none leaves at once, without a look at each."""
        # They come in the order of their offsets, so that none is at or below the cursor if the least such key is not.
        in_time = self.cursor < (span.first_ms, schedules[0].offset) and span.last_ms <= self.admission.now.latest_ms
        return in_time and not self.replaying

    def _ingest_unnamed(self, schedules: Sequence[Schedule], span: Summary) -> None:
        """Sort schedules without an id into memory and backlog."""
        frontier_ms = self._frontier_ms
        near: Sequence[Schedule] = []
        far: Sequence[Schedule] = []
        if span.last_ms < frontier_ms:
            near = schedules
        elif span.first_ms >= frontier_ms:
            far = schedules
        else:
            near = [schedule for schedule in schedules if schedule.due_ms < frontier_ms]
            far = [schedule for schedule in schedules if schedule.due_ms >= frontier_ms]
        self.rules.gave(schedules, span)
        self._take_in(near, far)

    def _take_in(self, near: Sequence[Schedule], far: Sequence[Schedule]) -> None:
        self.calendar.add(near, only_here=True)
        self._keep_far(far)

    def _named(self, schedule: Schedule, *, far: bool) -> bool:
        """Apply a schedule with an id; whether it withdrew a pending one for the first time."""
        fresh = schedule.offset >= self.replay_until
        if schedule.rank is not None and fresh:
            self.ids.arrive(schedule, self.position, far=far)
            return False
        return self.ids.schedule(schedule, far=far) and fresh

    def _other(self, command: Command, leaving: Leaving, counts: list[int]) -> None:
        """Apply a command that delivers nothing; one that puts off may be refused by the limits at its offset."""
        fresh = command.offset >= self.replay_until
        if type(command) is Cancel:
            withdrew = self.ids.cancel(command)
            if fresh and command.rank is None:
                counts[1 if withdrew else 2] += 1
        elif type(command) is Postpone:
            refused = self.admission.refuse_postponing(command)
            if refused is None:
                self.ids.postpone(command)
            elif fresh:
                leaving.rejects.append(refused)

    def _admitted(self, commands: Sequence[Command], rejects: list[Reject]) -> Sequence[Command]:
        """Return those that the limits at their offsets allow.

        The others are rejects, unless they were refused before.
        """
        now = self.admission.now
        latest_ms, ids = (now.latest_ms, now.ids) if not self.replaying else (NOTHING_MS, False)
        large = self._large(commands)
        doubtful = [
            c
            for c in commands
            if type(c) is Schedule and (c.due_ms > latest_ms or (c.id is not None and not ids) or c.offset in large)
        ]
        asked = (self.admission.refusal(schedule, large.get(schedule.offset, 0)) for schedule in doubtful)
        refused = [reject for reject in asked if reject is not None]
        if not refused:
            return commands
        gone = {reject.offset for reject in refused}
        written = [schedule for schedule in doubtful if schedule.rank is not None and schedule.offset in gone]
        ended = {schedule.offset for schedule in written if self.ids.refused(schedule)}
        rejects += [each for each in refused if each.offset >= self.replay_until and each.offset not in ended]
        return [command for command in commands if command.offset not in gone]

    def _large(self, commands: Sequence[Command]) -> Mapping[int, int]:
        """Return offset and size of those that the backlog may be too small for, but for what leaves at once."""
        return {}

    def _past(self, schedule: Schedule, leaving: Leaving, counts: list[int]) -> None:
        """A schedule that is done, if it was taken in before; otherwise one below the cursor, which leaves at once."""
        fresh = schedule.offset >= self.replay_until
        if fresh and (schedule.rank is not None or goes_on(schedule)):
            leaves, withdrew = self.ids.leaves_at_once(schedule, self.position)
            counts[0] += withdrew and schedule.rank is None
            if leaves:
                leaving.schedules.append(schedule)
            return
        if schedule.id is not None:
            withdrew = self.ids.done(schedule)
            counts[0] += withdrew and fresh
        if fresh:
            leaving.schedules.append(schedule)

    def _passed(self, next_position: int) -> None:
        """Note that all below an offset is taken in, and that a record lies right in front of it."""
        self.position = max(self.position, next_position)
        self.epochs.passed(next_position)

    def reached_end(self, end: int) -> None:
        """The source has no further records below `end`; what lies between was removed or is a marker."""
        self.position = max(self.position, end)

    # -- delivering

    def take_due(self, now_ms: int, limit: int) -> Leaving:
        """Remove and return what is due, in order; superseded and cancelled ones are done, and left out.

        One that was put off is done, too, by being written into the source again, and so is one that was resolved.
        """
        if self.replaying:
            return NOTHING
        until_ms = min(now_ms, self._loaded_until_ms - 1)
        taken = self.calendar.take(until_ms, limit)
        if len(taken) < limit:
            self.done = self.done.moved(self.rules.passed(until_ms, self.position))
        if not taken:
            self._end_rules()
            return NOTHING
        self.done = self.done.moved(DueKey(taken[-1].due_ms, taken[-1].offset))
        due = self.ids.without_superseded(taken, self.position)
        return Leaving(due, [], rewritten=self.ids.take_rewritten())

    def _keep_far(self, far: Sequence[Schedule]) -> None:
        """Keep what waits for the next put."""
        self._far += far
        self.far_bytes += sizes(far).total

    # -- what the loop asks

    @property
    def must_put(self) -> bool:
        """Return whether a commit has to wait for a put."""
        return bool(self._far) or self.ids.must_put

    def progress(self, owner: str) -> Progress:
        """Return what to commit now. Only true when nothing waits for a put and all that was handed out is sent."""
        lowest = self.calendar.lowest_offset()
        offset = self.position if lowest is None else min(self.position, lowest)
        position = max(self.position, self.replay_until)
        if (held := self.ids.held_from) is not None:
            # What lies in front of a record that is on its way has to be read again, done or not.
            offset = min(offset, held)
        self._end_rules()
        offset = max(offset, self.rules.floor)
        admission_limits, generations, floor = self.admission.kept(self.cursor), self.rules.kept, self.rules.floor
        cursor, ahead = self.done
        identity = self.epochs.identity(position, self.position)
        return Progress(
            *(offset, position, cursor, owner, None, admission_limits, generations, floor, identity, ahead),
            on_their_way=max(self.ids.on_their_way, self._known_on_their_way if self.looks_ahead else 0),
        )

    def _end_rules(self) -> None:
        """Forget former rules by which nothing waits any more, and that nobody has to read by again."""
        if self.looks_ahead:
            # Commands may have to be read again for what is on its way, which is not known yet.
            return
        position, held = max(self.position, self.replay_until), self.ids.held_from
        self.rules.end_done(position if held is None else min(position, held), self.cursor)

    def wake_ms(self) -> int | None:
        """Return when something is due; None when nothing in memory is."""
        if self.replaying:
            return None
        next_due_ms = self.calendar.next_due_ms()
        return next_due_ms if next_due_ms is not None and next_due_ms < self._loaded_until_ms else None

    def full(self, now_ms: int, *, paused: bool) -> bool:
        """Return whether reading on can wait; with a backlog it never can."""
        return False

    # -- for the pages

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Yield the spans in which schedules wait: start, width, and how many."""
        yield from ((start_ms, 1, records) for start_ms, records in self.calendar.counts())
        yield from self.waiting()

    def withdrawn(self) -> Iterator[tuple[int, int, int]]:
        """See `Shard.withdrawn`."""
        return self.ids.withdrawn.spans(self.cursor.due_ms)

    def next_due_ms(self) -> int | None:
        """Return when the first schedule is due, wherever it waits; None without any."""
        elsewhere = min((start_ms for start_ms, _, _ in self.waiting()), default=None)
        return min((due_ms for due_ms in (self.calendar.next_due_ms(), elsewhere) if due_ms is not None), default=None)

    def first_in_memory(self, wanted: Wanted) -> tuple[list[Schedule], int | None]:
        """Return the first schedules that are in effect, and from when on some could not be looked at."""
        found: list[Schedule] = []
        put_off: list[Schedule] = []
        allowance = MOST_LOOKED_AT
        all_count = not len(self.ids) and wanted.takes is None
        for start_ms, slot in self.calendar.upcoming():
            if start_ms >= wanted.before_ms or len(found) >= wanted.records:
                break
            if start_ms + SLOT_MS <= wanted.from_ms and not self.ids.puts_off:
                continue
            if len(slot.entries) - slot.head > allowance and not slot.in_order:
                return [*found, *put_off], start_ms
            last = slot.head + (min(allowance, wanted.records) if slot.in_order and all_count else allowance)
            found += self._in_effect(slot.entries[slot.head : last], wanted, put_off)
            if last < len(slot.entries) and len(found) < wanted.records:
                return [*found, *put_off], slot.entries[last].due_ms
            allowance -= min(last, len(slot.entries)) - slot.head
        return [*found, *put_off], None

    def _in_effect(self, schedules: Sequence[Schedule], wanted: Wanted, put_off: list[Schedule]) -> Iterable[Schedule]:
        """Return those of a slot that are wanted and would be delivered; of copies one.

        What is put off has its new time, and goes to `put_off`: it may come after what was not looked at.
        """
        in_effect: dict[tuple[int, int], Schedule] = {}
        for schedule in schedules:
            if schedule.id is not None and not self.ids.in_effect(schedule):
                continue
            due_ms = self.ids.put_off_to(schedule) if self.ids.puts_off else None
            if due_ms is not None:
                later = due_at(schedule, due_ms)
                put_off += [later] if wanted.takes_in_time(later) else []
            elif wanted.takes_in_time(schedule):
                in_effect[schedule.due_ms, schedule.offset] = schedule
        return in_effect.values()

    @property
    def former_rules(self) -> Sequence[Generation]:
        """Return the generations of rules before the one in force, by which schedules may wait."""
        return self.rules.kept[:-1]

    def bucket_status(self) -> list[BucketStatus]:
        """Return the state of each bucket, where there are any."""
        return []


def _key(schedule: Schedule) -> tuple[int, int]:
    return (schedule.due_ms, schedule.offset)
