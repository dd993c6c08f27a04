"""The backlog is only an index: it may be away, lose its last writes or everything."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.support.relay.backlog.flaky_store import FlakyStore
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Setup, delivered_offsets, deliveries, produce, produce_cancel, run_all, start
from tests.support.relay.world import World

from delaytopic_relay.errors import BacklogUnavailable, SegmentError

FAR_MS = 40_000


def test_what_is_in_memory_is_delivered_while_the_backlog_is_away() -> None:
    world = World()
    store = FlakyStore(world)
    relay = start(world, store)
    relay.run(1_000)
    due_ms = world.now_ms + 2_000
    produce(world, 2_000)
    relay.run(1_000)

    store.away = True
    relay.run(3_000)

    assert [delivery.sent_ms - due_ms for delivery in deliveries(world)] == [0]


@pytest.mark.parametrize("away_ms", [3_000, 30_000, 120_000])
def test_a_backlog_that_comes_back_has_cost_no_record_and_repeated_none(away_ms: int) -> None:
    # Given near, far and named records, some in the backlog already
    world = World()
    store = FlakyStore(world)
    relay = start(world, store)
    for after_ms in (5_000, FAR_MS, 2 * FAR_MS):
        produce(world, after_ms)
    produce(world, FAR_MS, name=b"a")
    relay.run(2_000)

    # When more of them arrive while the backlog is away
    store.away = True
    for after_ms in (1_000, FAR_MS, 3 * FAR_MS):
        produce(world, after_ms)
    produce(world, FAR_MS, name=b"b")
    relay.run(away_ms)
    store.away = False
    relay.run(4 * FAR_MS)

    assert sorted(delivered_offsets(world)) == [*range(8)]


def test_a_backlog_that_is_away_at_the_start_is_waited_for() -> None:
    world = World()
    store = FlakyStore(world)
    store.away = True
    produce(world, 1_000)
    relay = start(world, store)

    relay.run(5_000)
    before = (delivered_offsets(world), [*relay.loop.waiting])
    store.away = False
    relay.run(2_000)

    assert (before, delivered_offsets(world)) == (([], [0]), [0])
    assert {type(error) for error in relay.events.errors} == {BacklogUnavailable}


def test_a_put_that_happened_without_an_answer_is_repeated_without_effect() -> None:
    world = World()
    store = FlakyStore(world)
    relay = start(world, store)
    relay.run(1_000)
    for _ in range(3):
        produce(world, FAR_MS)

    store.deaf_puts = 2
    relay.run(2_000)

    assert sum(store.slices(0).values()) == 3
    relay.run(FAR_MS)
    assert delivered_offsets(world) == [0, 1, 2]


def test_a_put_that_happened_without_an_answer_before_the_relay_gave_up_is_harmless() -> None:
    # Given a backlog that takes the put, and then goes away for longer than the relay's patience
    world = World()
    store = FlakyStore(world)
    relay = start(world, store)
    relay.run(1_000)
    for _ in range(3):
        produce(world, FAR_MS)
    store.deaf_puts = 1_000_000

    relay.run(15_000)
    store.deaf_puts = 0
    relay.run(2 * FAR_MS)

    assert relay.events.counts["aborted"] >= 1
    assert delivered_offsets(world) == [0, 1, 2]


@pytest.mark.parametrize("wait_ms", [1_000, 20_000, FAR_MS - 500])
def test_a_wiped_backlog_is_filled_again_from_the_source(wait_ms: int) -> None:
    # Given records that were delivered, are in memory and are in the backlog
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store)
    for after_ms in (500, FAR_MS, FAR_MS + 20_000, 2_500_000):
        produce(world, after_ms)
    relay.run(wait_ms)

    store.wipe()
    relay.run(3 * FAR_MS)
    relay.run(2_500_000, step_ms=500)

    assert delivered_offsets(world) == [0, 1, 2, 3]
    assert relay.events.counts["backlog-moved"] == 1


@pytest.mark.parametrize("wait_ms", [1_000, 20_000, FAR_MS - 500])
def test_a_backlog_that_lost_its_last_writes_is_filled_again_from_the_source(wait_ms: int) -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store)
    produce(world, FAR_MS)
    relay.run(1_000)
    old = store.snapshot()
    for after_ms in (500, FAR_MS, FAR_MS + 20_000):
        produce(world, after_ms)
    produce_cancel(world, produced_name(world))
    relay.run(wait_ms)

    store.restore(old)
    relay.run(3 * FAR_MS)

    assert delivered_offsets(world) == [1, 0, 2, 3]
    assert relay.events.counts["backlog-moved"] == 1


def produced_name(world: World) -> bytes:
    """The id of a further far record."""
    produce(world, FAR_MS, name=b"withdrawn")
    return b"withdrawn"


def test_an_idle_relay_notices_a_lost_backlog_within_seconds() -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store)
    produce(world, 10 * FAR_MS)
    relay.run(5_000)

    store.wipe()
    relay.run(3_000)

    assert sum(store.slices(0).values()) == 1


def test_a_backlog_that_is_lost_between_two_owners_is_filled_by_the_second() -> None:
    world, store = World(), MemoryBacklogStore()
    first = start(world, store, "first")
    for after_ms in (500, FAR_MS, 2 * FAR_MS):
        produce(world, after_ms)
    first.run(3_000)
    first.loop.finish()

    store.wipe()
    start(world, store, "second").run(3 * FAR_MS)

    assert delivered_offsets(world) == [0, 1, 2]


def test_a_zombie_that_still_fills_its_backlog_does_no_harm() -> None:
    # Given a relay that is frozen with far records taken in and not yet put
    world, store = World(), MemoryBacklogStore()
    zombie = start(world, store, "zombie")
    zombie.run(1_000)
    for _ in range(3):
        produce(world, FAR_MS)
    zombie.run(100)

    successor = start(world, store, "successor")
    successor.run(1_000)
    run_all(world, [zombie, successor], 2 * FAR_MS)

    assert delivered_offsets(world) == [0, 1, 2]


def test_damaged_segments_of_one_shard_do_not_stop_the_others() -> None:
    # Given two shards with a record each in the backlog, of which one cannot be read any more
    world = World()
    store = FlakyStore(world)
    relay = start(world, store, setup=Setup(shards=(0, 1)))
    for partition in (0, 1):
        produce(world, FAR_MS, partition)
    relay.run(2_000)

    store.damaged = {0}
    relay.run(2 * FAR_MS)

    assert delivered_offsets(world, 1) == [0]


def test_what_is_behind_a_damaged_segment_is_delivered_from_the_source_once_the_backlog_was_wiped() -> None:
    world = World()
    store = FlakyStore(world)
    produce(world, FAR_MS)
    relay = start(world, store, "first")
    relay.run(2_000)
    store.damaged = {0}
    with suppress(SegmentError):
        relay.run(2 * FAR_MS)

    # When somebody does what the message says
    store.wipe()
    store.damaged = set()
    start(world, store, "second").run(2 * FAR_MS)

    assert delivered_offsets(world) == [0]
