"""Mutants of the backlog, of ids, and of what is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.simulation.mutants.breaking import Mutant, Patch
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.schedules import key_of

from delaytopic_relay.backlog.redis import shard as shard_module
from delaytopic_relay.backlog.redis.asks import Put
from delaytopic_relay.backlog.redis.connection import RedisConnection
from delaytopic_relay.backlog.redis.layout import encode_version
from delaytopic_relay.backlog.redis.manager import RedisManager
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.redis.store import RedisBacklogStore, State
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.backlog.slices import is_narrow
from delaytopic_relay.core import calendar
from delaytopic_relay.core.done import Done
from delaytopic_relay.core.ids import IdTable
from delaytopic_relay.core.partition import ShardCore


def states_the_position() -> Sequence[Patch]:
    original = RedisShard._next_version

    def next_version(self: RedisShard, offset: int) -> Any:
        return original(self, max(self.position, offset))

    return [(RedisShard, "_next_version", next_version)]


def no_compare() -> Sequence[Patch]:
    put, part = MemoryBacklogStore.put, RedisBacklogStore._put_part

    def put_anyway(self: MemoryBacklogStore, partition: int, expected: Any, *arguments: Any, **keywords: Any) -> int:
        return put(self, partition, self.version(partition), *arguments, **keywords)

    def put_part_anyway(
        self: RedisBacklogStore, partition: int, before: bytes, *arguments: Any, **keywords: Any
    ) -> State:
        return part(self, partition, encode_version(self.version(partition)), *arguments, **keywords)

    return [(MemoryBacklogStore, "put", put_anyway), (RedisBacklogStore, "_put_part", put_part_anyway)]


def reads_without_comparing() -> Sequence[Patch]:
    def owned(self: MemoryBacklogStore, partition: int, expected: Any) -> Any:
        return self._shard(partition)

    original = RedisBacklogStore._read

    def read(self: RedisBacklogStore, partition: int, expected: Any, *command: Any) -> Any:
        found: Any = self.version(partition)
        return original(self, partition, found, *command)

    def refresh(self: RedisManager, shard: RedisShard) -> None:
        self._checked_ms[shard.partition] = self._clock.monotonic_ms()

    return [
        (MemoryBacklogStore, "_owned", owned),
        (RedisBacklogStore, "_read", read),
        (RedisManager, "_refresh", refresh),
    ]


def another_write_after_silence() -> Sequence[Patch]:
    original = RedisShard.touch

    def touch(self: RedisShard) -> Put:
        put = original(self)
        self._touch = None
        return put

    return [(RedisShard, "touch", touch)]


def loads_what_was_never_committed() -> Sequence[Patch]:
    original = RedisShard.loaded

    def loaded(self: RedisShard, *arguments: Any, **keywords: Any) -> None:
        position, self.position = self.position, 1 << 60
        original(self, *arguments, **keywords)
        self.position = position

    return [(RedisShard, "loaded", loaded)]


def loads_what_is_done() -> Sequence[Patch]:
    original = RedisShard.loaded

    def loaded(self: RedisShard, *arguments: Any, **keywords: Any) -> None:
        done, self.done = self.done, Done()
        original(self, *arguments, **keywords)
        self.done = done

    return [(RedisShard, "loaded", loaded)]


def keeps_copies() -> Sequence[Patch]:
    return [(calendar, "ordered", lambda schedules: sorted(schedules, key=key_of))]


def believes_that_nothing_waits() -> Sequence[Patch]:
    def list_next(self: RedisManager, shards: Any) -> None:
        """Read nothing."""

    return [(RedisManager, "list_next", list_next), (RedisShard, "must_list", lambda self, now_ms: False)]


def delivers_half_loaded() -> Sequence[Patch]:
    original = RedisShard.take_due

    def take_due(self: RedisShard, now_ms: int, limit: int) -> Any:
        loaded, self._loaded_until_ms = self._loaded_until_ms, 1 << 60
        try:
            return original(self, now_ms, limit)
        finally:
            self._loaded_until_ms = loaded

    return [(RedisShard, "take_due", take_due)]


def drops_what_is_pending() -> Sequence[Patch]:
    return [(shard_module, "_is_over", lambda slice_, next_due_ms: True)]


def no_id_entries() -> Sequence[Patch]:
    return [(IdTable, "must_put", property(lambda self: False)), (IdTable, "to_put", lambda self, position: {})]


def withdrawn_delivered() -> Sequence[Patch]:
    return [(IdTable, "without_superseded", lambda self, taken, position: taken)]


def early() -> Sequence[Patch]:
    original = RedisShard.take_due
    return [(RedisShard, "take_due", lambda self, now_ms, limit: original(self, now_ms + 40, limit))]


def cursor_ahead_of_the_clock() -> Sequence[Patch]:
    return [(RedisShard, "without_departures", lambda self, commands, now_ms: commands)]


def out_of_order() -> Sequence[Patch]:
    original = RedisShard.take_due

    def take_due(self: RedisShard, now_ms: int, limit: int) -> Any:
        leaving = original(self, now_ms, limit)
        return leaving._replace(schedules=sorted(leaving.schedules, key=lambda schedule: schedule.offset))

    return [(RedisShard, "take_due", take_due)]


def drops_a_wide_slice_once_loaded() -> Sequence[Patch]:
    return [(RedisShard, "_has_cascaded", lambda self, slice_: not is_narrow(slice_))]


def offset_past_what_is_refused() -> Sequence[Patch]:
    return [(RedisShard, "progress", ShardCore.progress)]


def counts_copies() -> Sequence[Patch]:
    return [(SegmentSigner, "tag_of", lambda self, data: None)]


def stays_with_the_demoted() -> Sequence[Patch]:
    return [(RedisConnection, "leave", lambda self: None)]


MUTANTS = (
    Mutant(
        "states-the-position",
        "states the position P in the store instead of the committed offset",
        states_the_position,
    ),
    Mutant("no-compare", "puts in the backlog without comparing its version", no_compare),
    Mutant("never-looks", "never compares the backlog's version when it reads", reads_without_comparing),
    Mutant(
        "another-write",
        "after a write without an answer, makes another from the same version",
        another_write_after_silence,
    ),
    Mutant("loads-uncommitted", "loads entries with offsets at or above its position", loads_what_was_never_committed),
    Mutant("loads-done", "loads entries at or below the cursor", loads_what_is_done),
    Mutant("keeps-copies", "does not drop copies that came from backlog and source", keeps_copies),
    Mutant("never-lists", "takes over without reading the schedule in the backlog", believes_that_nothing_waits),
    Mutant("half-loaded", "delivers from a slice that is not loaded to its end", delivers_half_loaded),
    Mutant("drops-pending", "drops slices that still have pending records in memory", drops_what_is_pending),
    Mutant("no-id-entries", "does not keep in the backlog which command is an id's latest", no_id_entries),
    Mutant("withdrawn-delivered", "delivers what a later command withdrew", withdrawn_delivered),
    Mutant("early", "delivers 40 ms before the time", early),
    Mutant(
        "ahead-of-the-clock",
        "lets records leave at once while the cursor is ahead of the clock",
        cursor_ahead_of_the_clock,
        "Clocks",
    ),
    Mutant("out-of-order", "delivers what is due by offset, not by due time", out_of_order),
    Mutant(
        "drops-as-it-is",
        "drops a wide slice that was loaded as it is before all of it has left",
        drops_a_wide_slice_once_loaded,
        "Trouble",
    ),
    Mutant(
        "offset-past-refused",
        "commits L past what a full Redis has refused",
        offset_past_what_is_refused,
        "Trouble",
    ),
    Mutant("counts-copies", "counts a copy of a segment as if it were another", counts_copies, "Trouble"),
    Mutant("stays-with-demoted", "keeps its connections to a Redis that is demoted", stays_with_the_demoted, "Trouble"),
)
