"""The backlog is only an index: it may be away, lose its last writes or everything."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.support.flaky_shelf import FlakyShelf
from tests.support.memory_store import MemoryBacklogStore
from tests.support.relay_in_world import Setup, delivered_offsets, deliveries, produce, produce_cancel, run_all, start
from tests.support.world import World

from delaytopic_relay.errors import BacklogUnavailable, SegmentError

FAR_MS = 40_000


def test_what_is_in_memory_is_delivered_while_the_shelf_is_away() -> None:
    world = World()
    shelf = FlakyShelf(world)
    relay = start(world, shelf)
    relay.run(1_000)
    due_ms = world.now_ms + 2_000
    produce(world, 2_000)
    relay.run(1_000)

    shelf.away = True
    relay.run(3_000)

    assert [delivery.sent_ms - due_ms for delivery in deliveries(world)] == [0]


@pytest.mark.parametrize("away_ms", [3_000, 30_000, 120_000])
def test_a_shelf_that_comes_back_has_cost_no_record_and_repeated_none(away_ms: int) -> None:
    # Given near, far and named records, some in the backlog already
    world = World()
    shelf = FlakyShelf(world)
    relay = start(world, shelf)
    for after_ms in (5_000, FAR_MS, 2 * FAR_MS):
        produce(world, after_ms)
    produce(world, FAR_MS, name=b"a")
    relay.run(2_000)

    # When more of them arrive while the backlog is away
    shelf.away = True
    for after_ms in (1_000, FAR_MS, 3 * FAR_MS):
        produce(world, after_ms)
    produce(world, FAR_MS, name=b"b")
    relay.run(away_ms)
    shelf.away = False
    relay.run(4 * FAR_MS)

    assert sorted(delivered_offsets(world)) == [*range(8)]


def test_a_shelf_that_is_away_at_the_start_is_waited_for() -> None:
    world = World()
    shelf = FlakyShelf(world)
    shelf.away = True
    produce(world, 1_000)
    relay = start(world, shelf)

    relay.run(5_000)
    before = (delivered_offsets(world), [*relay.loop.waiting])
    shelf.away = False
    relay.run(2_000)

    assert (before, delivered_offsets(world)) == (([], [0]), [0])
    assert {type(error) for error in relay.events.errors} == {BacklogUnavailable}


def test_a_put_that_happened_without_an_answer_is_repeated_without_effect() -> None:
    world = World()
    shelf = FlakyShelf(world)
    relay = start(world, shelf)
    relay.run(1_000)
    for _ in range(3):
        produce(world, FAR_MS)

    shelf.deaf_puts = 2
    relay.run(2_000)

    assert sum(shelf.slices(0).values()) == 3
    relay.run(FAR_MS)
    assert delivered_offsets(world) == [0, 1, 2]


def test_a_put_that_happened_without_an_answer_before_the_relay_gave_up_is_harmless() -> None:
    # Given a backlog that takes the put, and then goes away for longer than the relay's patience
    world = World()
    shelf = FlakyShelf(world)
    relay = start(world, shelf)
    relay.run(1_000)
    for _ in range(3):
        produce(world, FAR_MS)
    shelf.deaf_puts = 1_000_000

    relay.run(15_000)
    shelf.deaf_puts = 0
    relay.run(2 * FAR_MS)

    assert relay.events.counts["aborted"] >= 1
    assert delivered_offsets(world) == [0, 1, 2]


@pytest.mark.parametrize("wait_ms", [1_000, 20_000, FAR_MS - 500])
def test_a_wiped_shelf_is_filled_again_from_the_source(wait_ms: int) -> None:
    # Given records that were delivered, are in memory and are in the backlog
    world, shelf = World(), MemoryBacklogStore()
    relay = start(world, shelf)
    for after_ms in (500, FAR_MS, FAR_MS + 20_000, 2_500_000):
        produce(world, after_ms)
    relay.run(wait_ms)

    shelf.wipe()
    relay.run(3 * FAR_MS)
    relay.run(2_500_000, step_ms=500)

    assert delivered_offsets(world) == [0, 1, 2, 3]
    assert relay.events.counts["backlog-moved"] == 1


@pytest.mark.parametrize("wait_ms", [1_000, 20_000, FAR_MS - 500])
def test_a_shelf_that_lost_its_last_writes_is_filled_again_from_the_source(wait_ms: int) -> None:
    world, shelf = World(), MemoryBacklogStore()
    relay = start(world, shelf)
    produce(world, FAR_MS)
    relay.run(1_000)
    old = shelf.snapshot()
    for after_ms in (500, FAR_MS, FAR_MS + 20_000):
        produce(world, after_ms)
    produce_cancel(world, produced_name(world))
    relay.run(wait_ms)

    shelf.restore(old)
    relay.run(3 * FAR_MS)

    assert delivered_offsets(world) == [1, 0, 2, 3]
    assert relay.events.counts["backlog-moved"] == 1


def produced_name(world: World) -> bytes:
    """The id of a further far record."""
    produce(world, FAR_MS, name=b"withdrawn")
    return b"withdrawn"


def test_an_idle_relay_notices_a_lost_shelf_within_seconds() -> None:
    world, shelf = World(), MemoryBacklogStore()
    relay = start(world, shelf)
    produce(world, 10 * FAR_MS)
    relay.run(5_000)

    shelf.wipe()
    relay.run(3_000)

    assert sum(shelf.slices(0).values()) == 1


def test_a_shelf_that_is_lost_between_two_owners_is_filled_by_the_second() -> None:
    world, shelf = World(), MemoryBacklogStore()
    first = start(world, shelf, "first")
    for after_ms in (500, FAR_MS, 2 * FAR_MS):
        produce(world, after_ms)
    first.run(3_000)
    first.loop.finish()

    shelf.wipe()
    start(world, shelf, "second").run(3 * FAR_MS)

    assert delivered_offsets(world) == [0, 1, 2]


def test_a_zombie_that_still_fills_its_shelf_does_no_harm() -> None:
    # Given a relay that is frozen with far records taken in and not yet put
    world, shelf = World(), MemoryBacklogStore()
    zombie = start(world, shelf, "zombie")
    zombie.run(1_000)
    for _ in range(3):
        produce(world, FAR_MS)
    zombie.run(100)

    successor = start(world, shelf, "successor")
    successor.run(1_000)
    run_all(world, [zombie, successor], 2 * FAR_MS)

    assert delivered_offsets(world) == [0, 1, 2]


def test_damaged_segments_of_one_shard_do_not_stop_the_others() -> None:
    # Given two shards with a record each in the backlog, of which one cannot be read any more
    world = World()
    shelf = FlakyShelf(world)
    relay = start(world, shelf, setup=Setup(shards=(0, 1)))
    for shard in (0, 1):
        produce(world, FAR_MS, shard)
    relay.run(2_000)

    shelf.damaged = {0}
    relay.run(2 * FAR_MS)

    assert delivered_offsets(world, 1) == [0]


def test_what_is_behind_a_damaged_segment_is_delivered_from_the_source_once_the_shelf_was_wiped() -> None:
    world = World()
    shelf = FlakyShelf(world)
    produce(world, FAR_MS)
    relay = start(world, shelf, "first")
    relay.run(2_000)
    shelf.damaged = {0}
    with suppress(SegmentError):
        relay.run(2 * FAR_MS)

    # When somebody does what the message says
    shelf.wipe()
    shelf.damaged = set()
    start(world, shelf, "second").run(2 * FAR_MS)

    assert delivered_offsets(world) == [0]
