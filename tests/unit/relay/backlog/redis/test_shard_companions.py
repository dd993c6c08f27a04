"""Thin slices that are fetched in the request for the one before them."""

from __future__ import annotations

from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.schedules import offsets, schedule
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.backlog.redis.manager import RedisManager
from delaytopic_relay.backlog.redis.shard import MOST_COMPANIONS, PORTION_BYTES, RedisShard
from delaytopic_relay.backlog.segments import pack
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.core.entries import Schedule, size
from delaytopic_relay.core.progress import fresh_progress

NOW_MS = 1_000_000_000
HORIZON_MS = 10_000
CLAIM = StoreVersion("me", 1, 0)
PLENTY = 1 << 30
RECORD_BYTES = PORTION_BYTES // 100
"""The size at which a hundred records make a portion."""


def second(number: int) -> Slice:
    """A narrow slice, within the horizon up to 10."""
    return Slice(NOW_MS + number * 1_000, 1_000)


WIDE = Slice(NOW_MS + 123_000, 60_000)
"""To be split in three seconds."""


def shard_with(index: dict[Slice, int]) -> RedisShard:
    """A shard that has loaded a record of a known size, and finds these slices in its backlog."""
    shard = redis_shard(fresh_progress(100), None, CLAIM, {second(-99): 1, **index}, HORIZON_MS)
    load = shard.next_load(NOW_MS, room=True)
    assert load is not None
    shard.loaded(load, RECORD_BYTES, [schedule(second(-99).start_ms, 1)], {})
    shard.load_finished()
    assert (shard.next_load(NOW_MS, room=True) is None) == (not index)
    return shard


def test_the_next_slices_within_the_horizon_come_along() -> None:
    shard = shard_with({second(number): 1 for number in (1, 4, 10, 11)})

    assert shard.companions(NOW_MS, PLENTY) == [second(4), second(10)]


def test_no_more_come_along_than_a_portion_holds() -> None:
    shard = shard_with({second(1): 40, second(2): 40, second(3): 20, second(4): 1})

    assert shard.companions(NOW_MS, PLENTY) == [second(2), second(3)]


def test_behind_a_thick_slice_none_comes_along() -> None:
    shard = shard_with({second(1): 101, second(2): 1})

    assert shard.companions(NOW_MS, PLENTY) == []


def test_no_more_come_along_than_memory_has_room_for() -> None:
    shard = shard_with({second(number): 1 for number in range(1, 9)})

    room_bytes = 4 * size(Schedule(NOW_MS, 1, None, b"v" * RECORD_BYTES, None))

    assert shard.companions(NOW_MS, room_bytes) == [second(2), second(3), second(4)]


def test_a_wide_slice_and_what_is_behind_it_do_not_come_along() -> None:
    # Given a minute that is to be split before the last of these seconds begins
    shard = shard_with({second(1): 1, second(2): 1, WIDE: 1, second(5): 1})

    assert shard.companions(NOW_MS, PLENTY) == [second(2)]


def test_a_bounded_number_comes_along() -> None:
    shard = shard_with({second(-number): 1 for number in range(MOST_COMPANIONS + 2)})

    assert len(shard.companions(NOW_MS, PLENTY)) == MOST_COMPANIONS


def test_nothing_comes_along_before_the_size_of_a_record_is_known() -> None:
    shard = redis_shard(fresh_progress(100), None, CLAIM, {second(1): 1, second(2): 1}, HORIZON_MS)
    shard.next_load(NOW_MS, room=True)

    assert shard.companions(NOW_MS, PLENTY) == []


class CountingStore(MemoryBacklogStore):
    """Counts requests for segments."""

    requests = 0

    def load(self, *args: object) -> list[bytes]:
        self.requests += 1
        return super().load(*args)  # type: ignore[arg-type]

    def load_first(self, *args: object) -> list[list[bytes]]:
        self.requests += 1
        return super().load_first(*args)  # type: ignore[arg-type]


def test_a_backlog_of_thin_slices_takes_few_requests_and_leaves_whole_and_in_order() -> None:
    # Given a record for each of ten overdue minutes' seconds
    world, store = World(now_ms=NOW_MS), CountingStore()
    schedules = [schedule(second(-number).start_ms, number) for number in range(600)]
    store.put(0, None, CLAIM, pack(schedules, NOW_MS), {})
    shard = redis_shard(fresh_progress(600), None, CLAIM, store.slices(0), HORIZON_MS)

    RedisManager(store, WorldClock(world), QuietEvents()).load_next([shard], PLENTY)

    assert offsets(shard.take_due(NOW_MS, 1_000).schedules) == [*range(599, -1, -1)]
    assert store.requests == 1 + -(-599 // (1 + MOST_COMPANIONS))
