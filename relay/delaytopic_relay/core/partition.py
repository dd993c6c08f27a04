"""What every shard with a shelf does: sort what arrives, deliver what is due, state its progress.

Pure: every method takes plain data and the time, and returns what the caller has to do. The caller
does it in this order, which is what makes the progress true: take in, deliver, put (acknowledged),
commit, then confirm and drop. Where schedules wait that are due later is the business of the subclasses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delaytopic_relay.core.calendar import Calendar, bytes_of
from delaytopic_relay.core.commands import Cancel, Command, Key, Reject, Schedule
from delaytopic_relay.core.departures import NOTHING, Departures
from delaytopic_relay.core.id_state import IdState
from delaytopic_relay.core.id_table import IdTable
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.suspension import until_departure
from delaytopic_relay.core.terms import NOTHING_MS, Admission


class ShardCore:
    """The state machine of one source partition.

    What is due before `_frontier_ms` is held in memory; all that is due before `_loaded_until_ms` is there, and
    may leave in its turn.
    """

    def __init__(self, partition: int, progress: Progress, start: int, horizon_ms: int) -> None:
        """`progress` is what is committed, `start` where reading begins."""
        self.partition = partition
        self.position = start
        self.cursor = progress.cursor
        self.committed_offset = progress.offset
        """L of the last commit: whatever is below it and not done is on the shelf."""
        self.calendar = Calendar()
        self.ids = IdTable()
        self.admission = Admission(progress.terms)
        self.replay_until = progress.position
        self._horizon_ms = horizon_ms
        self._frontier_ms = 0
        self._loaded_until_ms = 0
        self._far: list[Schedule] = []
        self.far_bytes = 0

    @property
    def replaying(self) -> bool:
        """Whether records taken in before are being read again; until that is over nothing is delivered."""
        return self.position < self.replay_until

    def without_departures(self, commands: Sequence[Command], now_ms: int) -> Sequence[Command]:
        """Those of a chunk that can be taken in while only what is due by then may leave."""
        return until_departure(commands, self.cursor, self.replay_until, now_ms)

    @property
    def size(self) -> int:
        """About how many bytes of memory the schedules take."""
        return self.calendar.size + self.far_bytes

    @property
    def ids_bytes(self) -> int:
        """About how many bytes of memory ids take whose schedules are on the shelf: none, where it keeps them, too."""
        return 0

    @property
    def counted(self) -> bool:
        """Whether all that waits is known, so that it can be counted."""
        return True

    # -- taking in

    def renew_terms(self, now_ms: int, max_delay_ms: int, *, ids_full: bool) -> None:
        """Decide what is taken in from now on; to be called before records are."""
        self.admission.renew(now_ms, max(self.position, self.replay_until), max_delay_ms, ids_full=ids_full)

    def take_in(self, commands: Sequence[Command], next_position: int, found: Mapping[bytes, IdState]) -> Departures:
        """Sort a chunk into memory, shelf and what leaves at once.

        `found` are the shelf's entries for the names that `ids.unknown(commands)` asked for.
        """
        self.ids.learn(found, self.cursor)
        near: list[Schedule] = []
        far: list[Schedule] = []
        leaving = Departures([], [])
        cursor_ms, frontier_ms = self.cursor.due_ms, self._frontier_ms
        counts = [0, 0, 0]
        for command in self._admitted(commands, leaving.rejects):
            if type(command) is Schedule:
                due_ms = command.due_ms
                if due_ms <= cursor_ms and (due_ms, command.offset) <= self.cursor:
                    self._past(command, leaving, counts)
                    continue
                if command.id is not None:
                    withdrew = self.ids.schedule(command, far=due_ms >= frontier_ms)
                    counts[0] += withdrew and command.offset >= self.replay_until
                if due_ms < frontier_ms:
                    near.append(command)
                else:
                    far.append(command)
            elif type(command) is Reject:
                if command.offset >= self.replay_until:
                    leaving.rejects.append(command)
            elif isinstance(command, Cancel):
                withdrew = self.ids.cancel(command)
                if command.offset >= self.replay_until:
                    counts[1 if withdrew else 2] += 1
        self.calendar.add(near, only_here=True)
        leaving.rejects.extend(self._keep_far(far))
        self.position = max(self.position, next_position)
        leaving.schedules.sort(key=_key)
        return leaving._replace(superseded=counts[0], cancelled=counts[1], too_late=counts[2])

    def _admitted(self, commands: Sequence[Command], rejects: list[Reject]) -> Sequence[Command]:
        """Those that the terms at their offsets allow; the others are rejects, unless they were refused before."""
        _, latest_ms, ids = self.admission.now if not self.replaying else (0, NOTHING_MS, False)
        doubtful = [
            c for c in commands if type(c) is Schedule and (c.due_ms > latest_ms or (c.id is not None and not ids))
        ]
        refused = [reject for reject in map(self.admission.refusal, doubtful) if reject is not None]
        if not refused:
            return commands
        rejects += [reject for reject in refused if reject.offset >= self.replay_until]
        gone = {reject.offset for reject in refused}
        return [command for command in commands if command.offset not in gone]

    def _past(self, schedule: Schedule, leaving: Departures, counts: list[int]) -> None:
        """A schedule at or below the cursor: done, if it was taken in before; otherwise it leaves at once."""
        fresh = schedule.offset >= self.replay_until
        if schedule.id is not None:
            withdrew = self.ids.done(schedule)
            counts[0] += withdrew and fresh
        if fresh:
            leaving.schedules.append(schedule)

    def reached_end(self, end: int) -> None:
        """The source has no further records below `end`; what lies between was removed or is a marker."""
        self.position = max(self.position, end)

    # -- delivering

    def take_due(self, now_ms: int, limit: int) -> Departures:
        """Remove and return what is due, in order; superseded and cancelled ones are done, and left out."""
        if self.replaying:
            return NOTHING
        taken = self.calendar.take(min(now_ms, self._loaded_until_ms - 1), limit)
        if not taken:
            return NOTHING
        self.cursor = max(self.cursor, Key(taken[-1].due_ms, taken[-1].offset))
        return Departures(self.ids.without_superseded(taken), [])

    def _keep_far(self, far: list[Schedule]) -> Sequence[Reject]:
        """Keep what waits for the next put; what the shelf can never take is returned."""
        self._far += far
        self.far_bytes += sum(map(bytes_of, far))
        return ()

    # -- what the loop asks

    @property
    def must_put(self) -> bool:
        """Whether a commit has to wait for a put."""
        return bool(self._far) or self.ids.must_put

    def progress(self, owner: str) -> Progress:
        """What to commit now. Only true when nothing waits for a put and all that was handed out is sent."""
        lowest = self.calendar.lowest_offset()
        offset = self.position if lowest is None else min(self.position, lowest)
        position = max(self.position, self.replay_until)
        return Progress(offset, position, self.cursor, owner, terms=self.admission.kept(self.cursor))

    def wake_ms(self) -> int | None:
        """When something is due; None when nothing in memory is."""
        if self.replaying:
            return None
        next_due_ms = self.calendar.next_due_ms()
        return next_due_ms if next_due_ms is not None and next_due_ms < self._loaded_until_ms else None

    def full(self, now_ms: int, *, paused: bool) -> bool:
        """Whether reading on can wait; with a shelf it never can."""
        return False


def _key(schedule: Schedule) -> tuple[int, int]:
    return (schedule.due_ms, schedule.offset)
