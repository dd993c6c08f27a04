"""One shard with a memory backlog and a committed state, driven in the order that the loop keeps, without the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.backlog.shards import unlisted_shard

from delaytopic_relay.backlog.redis.asks import Load, Put
from delaytopic_relay.backlog.segments import decode_segment
from delaytopic_relay.backlog.store import StoreVersion
from delaytopic_relay.core.commands import Command, DueKey, Reject, Schedule
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Bounds, plan_recovery

EVERYTHING = 1_000_000
PAGE_SLICES = 4
"""A number so small that many pages end between two slices."""


class Delivered(NamedTuple):
    """A schedule that left, and when."""

    sent_ms: int
    key: DueKey


@dataclass
class Outcome:
    """Records that left, and the fate of ids; only what was committed counts."""

    delivered: list[Delivered] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    superseded: int = 0
    cancelled: int = 0
    too_late: int = 0


@dataclass
class ShardRun:
    """The source, the backlog and the committed state outlive the shard; `recover` makes a new one from them."""

    horizon_ms: int = 10_000
    source: list[Command] = field(default_factory=list)
    store: MemoryBacklogStore = field(default_factory=MemoryBacklogStore)
    committed: Progress | None = None
    outcome: Outcome = field(default_factory=Outcome)
    most_in_memory: int = 0
    owners: int = 0

    def __post_init__(self) -> None:
        self.recover()

    def recover(self) -> None:
        """A new owner, in the order of `Takeover`."""
        self.owners += 1
        version = self.store.version(0)
        token = f"owner-{self.owners}"
        filled, counter = (version.offset, version.counter) if version is not None else (None, 0)
        plan = plan_recovery(self.committed, filled, Bounds(0, len(self.source)), token)
        self.committed, start = plan.progress, plan.progress.offset
        claim = StoreVersion(token, counter + 1, start)
        self.store.put(0, version, claim, [], {})
        self.shard = unlisted_shard(plan.progress, None, claim, self.horizon_ms)
        self._open = Outcome()

    def tick(self, now_ms: int, *, chunk: int = EVERYTHING, limit: int = EVERYTHING, room: bool = True) -> None:
        """One tick, with loads after the commit as in the loop."""
        self.ingest(now_ms, chunk)
        self.deliver(now_ms, limit)
        self.put(now_ms)
        self.commit()
        self.drop()
        self.load(now_ms, room=room)

    def ingest(self, now_ms: int, chunk: int = EVERYTHING) -> None:
        """Read what the source has, `chunk` commands at a time; what is past leaves at once."""
        shard = self.shard
        while commands := self.source[shard.position : shard.position + chunk]:
            names = shard.ids.unknown(commands)
            entries = zip(names, self.store.ids(0, shard.store_version, names), strict=True)
            found = {name: entry for name, entry in entries if entry is not None}
            leaving = shard.ingest(commands, commands[-1].offset + 1, found)
            self._open.superseded += leaving.superseded
            self._open.cancelled += leaving.cancelled
            self._open.too_late += leaving.too_late
            self._leave(leaving.schedules, leaving.rejects, now_ms)

    def deliver(self, now_ms: int, limit: int = EVERYTHING) -> None:
        """Let everything leave that is due, `limit` at a time."""
        self.most_in_memory = max(self.most_in_memory, self.shard.calendar.count)
        cursor = None
        while cursor != self.shard.cursor:
            cursor = self.shard.cursor
            leaving = self.shard.take_due(now_ms, limit)
            self._leave(leaving.schedules, leaving.rejects, now_ms)

    def _leave(self, schedules: Sequence[Schedule], rejects: Sequence[Reject], now_ms: int) -> None:
        self._open.delivered += [Delivered(now_ms, DueKey(entry.due_ms, entry.offset)) for entry in schedules]
        self._open.rejected += [entry.offset for entry in rejects]

    def put(self, now_ms: int) -> None:
        """Make the backlog hold what the commit takes for granted."""
        if self.shard.must_put:
            put = self.shard.put(now_ms)
            self._write(put)

    def _write(self, put: Put) -> None:
        self.store.put(0, put.expected, put.new, put.segments, put.ids)
        self.shard.acknowledged(put)

    def commit(self) -> None:
        """The transaction: what left becomes visible with the progress."""
        self.committed = self.shard.progress("owner")
        self.shard.committed_offset = self.committed.offset
        self.shard.settled()
        done, new = self.outcome, self._open
        self.outcome = Outcome(
            done.delivered + new.delivered,
            done.rejected + new.rejected,
            done.superseded + new.superseded,
            done.cancelled + new.cancelled,
            done.too_late + new.too_late,
        )
        self._open = Outcome()

    def drop(self) -> None:
        """Make the backlog forget what is done."""
        slices, names = self.shard.droppable()
        if slices:
            self.store.drop(0, self.shard.store_version, slices, names)
            self.shard.dropped(slices)

    def load(self, now_ms: int, *, room: bool = True) -> list[Load]:
        """Load everything within the horizon; the portions that it took."""
        loads: list[Load] = []
        while self.shard.must_list(now_ms):
            self.shard.listed(self.store.page(0, self.shard.store_version, self.shard.listed_until_ms, PAGE_SLICES))
        while (load := self.shard.next_load(now_ms, room=room)) is not None:
            loads.append(load)
            self.load_portion(load, now_ms)
        self.most_in_memory = max(self.most_in_memory, self.shard.calendar.count)
        return loads

    def load_portion(self, load: Load, now_ms: int) -> None:
        """Load one portion."""
        shard = self.shard
        data = self.store.load(0, shard.store_version, load.slice, load.first, load.segments)
        schedules = [entry for segment in data for entry in decode_segment(segment)]
        if shard.loads_whole(load):
            names = shard.ids.unknown(schedules)
            entries = zip(names, self.store.ids(0, shard.store_version, names), strict=True)
            found = {name: entry for name, entry in entries if entry is not None}
            shard.loaded(load, sum(map(len, data)), schedules, found)
        elif schedules:
            self._write(shard.cascade(load, sum(map(len, data)), schedules, now_ms))
        if len(data) < load.segments:
            shard.load_finished()
