"""The backlog of a DelayTopic with a fixed delay: source order is due order, so a queue is all it takes.

Nothing is stored and there is no calendar: what is further away than the horizon stays on the source topic, and the
caller pauses the partition while `full` says so. A partition in which records wait that were read by other rules is
none of its: it needs a backlog until they are done.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from delaytopic_api.relay import BucketStatus
from delaytopic_relay.backlog.protocol import EmptyReader, Forgotten, PendingReader, Shard
from delaytopic_relay.core.calendar import bytes_of
from delaytopic_relay.core.commands import NOTHING, Command, DueKey, End, Leaving, Record, Reject, Schedule
from delaytopic_relay.core.epochs import Epochs
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.partition import MOST_LOOKED_AT, Share, Stored, Wanted
from delaytopic_relay.core.progress import Progress, fresh_progress
from delaytopic_relay.core.recovery import Bounds, FormerLife, Plan
from delaytopic_relay.core.rules import Generation
from delaytopic_relay.errors import QueueImpossible

NO_IDS: Mapping[bytes, IdEntry] = MappingProxyType({})


class FixedShard:
    """The state machine of one source partition whose records all wait equally long.

    A record that cannot be delivered keeps its place in the queue, so that everything below the
    committed offset is done, and nothing at or above it.
    """

    def __init__(self, partition: int, progress: Progress, start: int, horizon_ms: int) -> None:
        """`progress` is what is committed, `start` where reading begins."""
        self.partition = partition
        self.position = start
        self.done = progress.done
        self.committed_offset = progress.offset
        self.replay_until = progress.position
        self.epochs = Epochs(progress, start)
        self._taken = progress
        self._horizon_ms = horizon_ms
        self._queue: deque[Schedule | Reject] = deque()
        self._sizes: deque[int] = deque()
        self._last_due_ms = 0
        self.size = 0
        self.far_bytes = 0
        self.replaying = self.must_put = self.refuses_ids = self.looks_ahead = self.tells_ends = False
        self.former_rules: Sequence[Generation] = ()
        self.ids_bytes = 0
        self.counted = True
        self.share: Share | None = None

    @property
    def cursor(self) -> DueKey:
        """The key of the last delivered record."""
        return self.done.cursor

    def come_back(self, now_ms: int) -> None:
        """Do nothing: no record leaves before those in front of it, and each waits for its own time."""

    def follow(self, generations: Sequence[Generation], floor: int) -> None:
        """Go on with these generations of rules. Raises `QueueImpossible` for others than those that it began with."""
        self._taken = self._taken._replace(generations=tuple(generations), floor=floor)
        if not _is_queue(self._taken):
            raise QueueImpossible(f"the rules of partition {self.partition} were edited while records wait")

    def without_departures(self, commands: Sequence[Command], now_ms: int) -> Sequence[Command]:
        """Return those of a chunk that can be taken in while only what is due by then may leave: all, they only
        queue.
        """
        return commands

    @property
    def pending(self) -> int:
        """Records in memory that are not yet done."""
        return len(self._queue)

    def unknown_ids(self, commands: Sequence[Command]) -> Sequence[bytes]:
        """None: records that all wait equally long have no ids."""
        return ()

    def renew_admission_limits(self, now_ms: int, *, ids_share: float) -> None:
        """Change nothing: nothing is refused, as the broker's time is not ahead of the clock, and there are no ids."""

    def ingest(
        self, commands: Sequence[Command], next_position: int, found: Mapping[bytes, IdEntry] = NO_IDS
    ) -> Leaving:
        """Append a chunk, leaving out what an earlier owner has done."""
        queue = self._queue
        for command in commands:
            if type(command) is Schedule:
                if command.offset < self.replay_until and self._taken.done.has(command.due_ms, command.offset):
                    continue
                self._last_due_ms = command.due_ms
            elif type(command) is not Reject or command.offset < self.replay_until:
                continue
            queue.append(command)
            self._sizes.append(bytes_of(command))
            self.size += self._sizes[-1]
        again = bisect_left(commands, self.replay_until, key=_offset)
        if again:
            self.epochs.passed(commands[again - 1].offset + 1)
        self.position = max(self.position, next_position)
        return NOTHING

    def settled(self) -> None:
        """Do nothing: nothing is remembered of commands."""

    def look_ahead(self, commands: Sequence[Command], found: Mapping[bytes, IdEntry]) -> None:
        """Do nothing: a relay of fixed delays writes nothing into the source."""

    def not_written(self, offsets: Iterable[int]) -> Sequence[End]:
        """Return no ends: a relay of fixed delays writes nothing into the source."""
        return ()

    def take_due(self, now_ms: int, limit: int) -> Leaving:
        """Remove and return what is due, and the refused records before it."""
        queue = self._queue
        due: list[Schedule] = []
        rejects: list[Reject] = []
        behind = 0
        while queue and len(due) < limit:
            head = queue[0]
            if type(head) is Reject:
                rejects.append(head)
            elif head.due_ms > now_ms:
                break
            else:
                due.append(head)
            queue.popleft()
            behind = head.offset + 1
            self.size -= self._sizes.popleft()
        self.epochs.passed(behind)
        if due:
            self.done = self.done.moved(DueKey(due[-1].due_ms, due[-1].offset))
        return Leaving(due, rejects)

    def reached_end(self, end: int) -> None:
        """The source has no further records below `end`."""
        self.position = max(self.position, end)

    def full(self, now_ms: int, *, paused: bool) -> bool:
        """Return whether the queue reaches beyond the horizon (half of it, once paused), so that reading on can
        wait.
        """
        reach_ms = self._horizon_ms // 2 if paused else self._horizon_ms
        return bool(self._queue) and self._last_due_ms > now_ms + reach_ms

    def progress(self, owner: str) -> Progress:
        """Return what to commit once all that was handed out is sent."""
        offset = self._queue[0].offset if self._queue else self.position
        position = max(offset, self.replay_until)
        cursor, ahead = self.done
        identity = self.epochs.identity(position, self.position)
        return self._taken._replace(
            offset=offset, position=position, cursor=cursor, owner=owner, identity=identity, ahead=ahead
        )

    def wake_ms(self) -> int | None:
        """Return when the first record is due; None for an empty queue."""
        if not self._queue:
            return None
        head = self._queue[0]
        return 0 if type(head) is Reject else head.due_ms

    # -- for the pages

    def _upcoming(self) -> Iterator[Schedule]:
        return (entry for entry in self._queue if type(entry) is not Reject)

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Yield when each queued record is due."""
        return ((entry.due_ms, 1, 1) for entry in self._upcoming())

    def withdrawn(self) -> Iterator[tuple[int, int, int]]:
        """See `Shard.withdrawn`: without ids nothing is."""
        return iter(())

    def next_due_ms(self) -> int | None:
        """Return when the first record is due; None for an empty queue."""
        return next((entry.due_ms for entry in self._upcoming()), None)

    def first_in_memory(self, wanted: Wanted) -> tuple[list[Schedule], int | None]:
        """Return the first queued records; of a longer queue the rest could not be looked at."""
        looked_at = list(islice(self._upcoming(), MOST_LOOKED_AT + 1))
        cut_ms = looked_at.pop().due_ms if len(looked_at) > MOST_LOOKED_AT else None
        found = list(islice(filter(wanted.takes_in_time, looked_at), wanted.records))
        return found, cut_ms if len(found) < wanted.records else None

    def stored(self) -> Stored:
        """Return that everything is in memory, or still on the source."""
        return Stored()

    def bucket_status(self) -> list[BucketStatus]:
        """Return that there are no buckets."""
        return []


class FixedManager:
    """A `BacklogManager` with nothing to do."""

    awaits = False
    unreadable: Mapping[int, str] = MappingProxyType({})

    def look_up(self, shard: Shard, names: Sequence[bytes]) -> Mapping[bytes, IdEntry]:
        """Return that no id is known."""
        return NO_IDS

    def put_early(self, shards: Iterable[Shard]) -> Sequence[Record]:
        """Store nothing: the source has it."""
        return ()

    def put_all(self, shards: Iterable[Shard]) -> Sequence[Record]:
        """Store nothing: the source has it."""
        return ()

    def drop_done(self, shards: Iterable[Shard]) -> None:
        """Do nothing, as nothing was stored."""

    def hand_over(self, shards: Iterable[Shard]) -> None:
        """Do nothing, as nothing was stored."""

    def lost(self) -> Collection[int]:
        """Return no partition, as nothing was stored."""
        return ()

    def list_next(self, shards: Sequence[Shard]) -> None:
        """Do nothing, as nothing was stored."""

    def load_next(self, shards: Sequence[Shard], room_bytes: int) -> bool:
        """Load nothing, as nothing was stored."""
        return False


class FixedBacklog:
    """A `Backlog` for a fixed delay: the source topic itself."""

    transactional = False
    largest_batch_bytes = None

    def __init__(self, horizon_ms: int) -> None:
        self._horizon_ms = horizon_ms
        self.manager = FixedManager()

    def begin(self, partitions: int) -> None:
        """Do nothing: no share has to be bounded."""

    def plan(
        self, partition: int, committed: Progress | None, bounds: Bounds, owner: str, *, offset_reset: bool
    ) -> Plan:
        """Start at the committed offset."""
        was = committed or fresh_progress(bounds.low)
        start = min(max(was.offset, was.floor, bounds.low), bounds.end)
        return Plan(was._replace(offset=start, position=min(max(was.position, start), bounds.end), owner=owner))

    def former_life(self, partition: int, *, offset_reset: bool) -> FormerLife | None:
        """Return None, as nothing was stored."""
        return None

    def forget(self, partition: int, marks: Collection[str], committed: Progress | None) -> Forgotten:
        """Forget nothing, as nothing was stored."""
        return Forgotten()

    def prepare(self, partitions: Sequence[int]) -> None:
        """Do nothing, as nothing was stored."""

    def open(self, partition: int, plan: Plan) -> FixedShard:
        """Return the shard; there is nothing to claim. Raises `QueueImpossible`."""
        if not _is_queue(plan.progress):
            raise QueueImpossible(f"records wait in partition {partition} that were read by other rules")
        return FixedShard(partition, plan.progress, plan.progress.offset, self._horizon_ms)

    def follow(self, shard: Any, generations: Sequence[Generation]) -> None:
        """Do nothing: nothing is stored."""

    def reader(self, states: Mapping[int, Any]) -> PendingReader:
        """Return a reader that finds nothing: shards have everything in memory."""
        return EmptyReader()

    def close(self) -> None:
        """Do nothing, as no connection was opened."""


def _offset(command: Command) -> int:
    return command.offset


def _is_queue(progress: Progress) -> bool:
    """Tell whether all that waits is at or above the committed offset, and waits equally long."""
    former = [each for each in progress.generations if each.rules.delay_ms is None or each.last > progress.cursor]
    return not former and len(progress.generations) < 2 and progress.buckets is None
