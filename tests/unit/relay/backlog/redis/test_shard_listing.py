"""The schedule in the backlog is read page by page: what comes near before anything is delivered, the rest by and
by.
"""

from __future__ import annotations

from tests.support.relay.backlog.flaky_store import FlakyStore
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.backlog.shards import unlisted_shard
from tests.support.relay.in_world import HORIZON_MS, Setup, delivered_offsets, produce, start
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.schedules import schedule
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.backlog.redis.manager import LOADING_MS, PAGE_SLICES, RedisManager
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.segments import pack
from delaytopic_relay.backlog.slices import EARLIEST_MS, NARROW_MS
from delaytopic_relay.backlog.store import END_MS, Page, Slice, StoreVersion
from delaytopic_relay.core.commands import NOTHING_DELIVERED
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.suspension import Suspension

CLAIM = StoreVersion("me", 1, 0)
NOW_MS = 1_795_269_600_000
HOUR_MS = 3_600_000
PLENTY = 1 << 30


class PagedStore(FlakyStore):
    """Counts pages, each of which takes its time."""

    pages = 0

    def page(self, partition: int, expected: StoreVersion, from_ms: int, count: int) -> Page:
        self.pages += 1
        self.world.now_ms += LOADING_MS
        return super().page(partition, expected, from_ms, count)


def a_shard() -> RedisShard:
    return unlisted_shard(Progress(9_000, 9_000, NOTHING_DELIVERED), claim=CLAIM, horizon_ms=HORIZON_MS)


def a_year(store: MemoryBacklogStore) -> int:
    """Put a record into each hour of a year, and into each of the next 1,200 seconds; how many there are."""
    seconds = [schedule(NOW_MS + number * NARROW_MS, number) for number in range(1_200)]
    hours = [schedule(NOW_MS + (24 + number) * HOUR_MS, 1_200 + number) for number in range(365 * 24)]
    store.put(0, None, CLAIM, pack([*seconds, *hours], NOW_MS), {})
    return len(seconds) + len(hours)


def test_before_anything_is_loaded_only_the_pages_near_are_read() -> None:
    world = World(now_ms=NOW_MS)
    store, shard = PagedStore(world), a_shard()
    slices = a_year(store)
    manager = RedisManager(store, WorldClock(world), QuietEvents())

    manager.list_next([shard])
    manager.load_next([shard], PLENTY)

    near_ms = shard.listed_until_ms - NOW_MS
    assert (store.pages, shard.counted, slices > 9 * PAGE_SLICES) == (2, False, True)
    assert near_ms >= EARLIEST_MS + HORIZON_MS
    assert [each.offset for each in shard.take_due(NOW_MS + 5_000, 100).schedules] == [0, 1, 2, 3, 4, 5]


def test_all_that_waits_is_counted_after_some_turns_and_nothing_is_read_from_then_on() -> None:
    world = World(now_ms=NOW_MS)
    store, shard = PagedStore(world), a_shard()
    slices = a_year(store)
    manager = RedisManager(store, WorldClock(world), QuietEvents())

    turns = 0
    while not shard.counted:
        manager.list_next([shard])
        turns += 1
    pages = store.pages
    manager.list_next([shard])

    assert (shard.pending, store.pages, pages > turns > 5) == (slices, pages, True)


def test_what_is_put_into_a_slice_that_is_not_listed_yet_is_found_with_its_page() -> None:
    world = World(now_ms=NOW_MS)
    store, shard = PagedStore(world), a_shard()
    slices = a_year(store)
    manager = RedisManager(store, WorldClock(world), QuietEvents())
    manager.list_next([shard])
    near, far = schedule(NOW_MS + 60_000, 9_000), schedule(NOW_MS + 300 * 24 * HOUR_MS, 9_001)

    shard.ingest([near, far], 9_002, {})
    manager.put_all([shard])
    while not shard.counted:
        manager.list_next([shard])

    assert shard.pending == slices + 2
    assert shard.index[Slice(NOW_MS + 60_000, NARROW_MS)] == 2


def test_a_shard_waits_from_the_end_of_what_is_listed_until_all_is() -> None:
    shard, slice_ = a_shard(), Slice(5_000, 1_000)

    found = [shard.stored().from_ms]
    for page in (Page({}, 4_000), Page({slice_: 1}, 9_000), Page({}, END_MS)):
        shard.listed(page)
        found.append(shard.stored().from_ms)

    assert found == [0, 4_000, 5_000, 5_000]


def test_a_successor_that_finds_many_pages_delivers_each_record_once_and_in_order() -> None:
    # Given several records a second for longer than two pages reach
    world, store = World(), MemoryBacklogStore()
    due_ms = [60_000 + (number * 7_919) % 2_500 * 1_000 for number in range(2_500)]
    for after_ms in due_ms:
        produce(world, after_ms)
    start(world, store, "first").run(1_000)
    successor = start(world, store, "second")

    successor.run(2_700_000, step_ms=1_000)

    assert delivered_offsets(world) == sorted(range(2_500), key=lambda offset: (due_ms[offset], offset))


def test_while_delivery_is_suspended_what_waits_is_counted_all_the_same() -> None:
    world, store = World(), MemoryBacklogStore()
    for after_ms in (60_000, 90_000_000):
        produce(world, after_ms)
    relay = start(world, store, "first")
    relay.run(1_000)
    relay.finish()

    suspended = start(world, store, "second", Setup(suspension=Suspension(delivery=True)))
    suspended.run(1_000)

    (shard,) = suspended.loop.shards.values()
    assert isinstance(shard, RedisShard)
    assert (shard.counted, shard.pending) == (True, 2)
