"""A DelayTopic with `delay: 30s`: no backlog, no calendar, the source topic is the queue."""

from __future__ import annotations

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import (
    HORIZON_MS,
    Delivery,
    Relay,
    Setup,
    dead_offsets,
    delivered_offsets,
    deliveries,
    run_all,
    start,
)
from tests.support.relay.world import Crash, World

from delaytopic_relay.core.progress import decode_progress

DELAY_MS = 30_000
FIXED = Setup(delay_ms=DELAY_MS, chunk=10)
NO_BACKLOG = MemoryBacklogStore()


def send(world: World, *, nonsense: bool = False) -> int:
    """A record as its producer sends it; its offset."""
    return world.produce(0, b"k", b"v", [("deliver-at", b"5")] if nonsense else None)


def send_for(world: World, relay: Relay, for_ms: int, every_ms: int) -> list[int]:
    """Records at regular intervals, while the relay is at work; when each was sent."""
    sent_ms: list[int] = []
    for _ in range(for_ms // every_ms):
        sent_ms.append(world.now_ms)
        send(world)
        relay.run(every_ms)
    return sent_ms


def test_each_record_is_delivered_after_the_delay_and_in_order() -> None:
    world = World()
    relay = start(world, NO_BACKLOG, setup=FIXED)

    sent_ms = send_for(world, relay, 10_000, every_ms=500)
    relay.run(DELAY_MS)

    assert deliveries(world) == [Delivery(at_ms + DELAY_MS, 0, offset) for offset, at_ms in enumerate(sent_ms)]


def test_reading_pauses_where_the_horizon_ends_and_goes_on_in_time() -> None:
    # Given an hour's worth of records, sent before the relay starts
    world = World()
    for _ in range(600):
        send(world)
        world.now_ms += 6_000
    world.now_ms += DELAY_MS - 3_600_000
    relay = start(world, NO_BACKLOG, setup=FIXED)

    relay.run(2_000)
    in_memory = relay.loop.shards[0].pending
    relay.run(3_600_000, step_ms=1_000)

    assert in_memory <= HORIZON_MS // 6_000 + FIXED.chunk
    assert delivered_offsets(world) == [*range(600)]
    assert max(late_ms(world)) <= 1_000


def late_ms(world: World) -> list[int]:
    """Return how late each delivery was."""
    sent_at = {record.place: record.time_ms for record in world.source[0].accepted()}
    return [sent_ms - sent_at[offset] - DELAY_MS for sent_ms, _, offset, _ in deliveries(world)]


@pytest.mark.parametrize("transactional", [True, False])
def test_no_record_is_early(transactional: bool) -> None:
    world = World()
    relay = start(world, NO_BACKLOG, setup=FIXED._replace(transactional=transactional))

    send_for(world, relay, 40_000, every_ms=350)
    relay.run(DELAY_MS)

    assert len(late_ms(world)) == 40_000 // 350
    assert min(late_ms(world)) >= 0


def test_a_record_that_cannot_be_read_is_dead_lettered_in_its_turn() -> None:
    world = World()
    relay = start(world, NO_BACKLOG, setup=FIXED)
    send(world)
    refused = send(world, nonsense=True)
    send(world)

    relay.run(DELAY_MS - 1_000)
    before = dead_offsets(world)
    relay.run(2_000)

    assert (before, dead_offsets(world), delivered_offsets(world)) == ([], [refused], [0, 2])


def test_consumer_lag_is_what_was_not_yet_delivered() -> None:
    world = World()
    relay = start(world, NO_BACKLOG, "relay-1", FIXED)
    send_for(world, relay, 5_000, every_ms=1_000)

    relay.run(DELAY_MS - 2_000)

    progress = decode_progress(*world.committed[0])
    assert (progress.offset, progress.position) == (3, 3)
    assert delivered_offsets(world) == [0, 1, 2]


@pytest.mark.parametrize("point", ["before produce", "before commit", "after commit"])
def test_a_crash_neither_loses_nor_repeats_a_record(point: str) -> None:
    world = World()
    first = start(world, NO_BACKLOG, "first", FIXED)
    send_for(world, first, 20_000, every_ms=500)
    first.run(DELAY_MS - 10_000)

    world.crash = crash_at(point)
    with pytest.raises(Crash):
        first.run(DELAY_MS)
    world.crash = lambda _: None
    start(world, NO_BACKLOG, "second", FIXED).run(DELAY_MS)

    assert delivered_offsets(world) == [*range(40)]


def crash_at(point: str):  # type: ignore[no-untyped-def]  # noqa: ANN201
    def crash(reached: str) -> None:
        if reached == point:
            raise Crash(point)

    return crash


def test_a_zombie_delivers_nothing() -> None:
    world = World()
    zombie = start(world, NO_BACKLOG, "zombie", FIXED)
    send_for(world, zombie, 20_000, every_ms=500)
    successor = start(world, NO_BACKLOG, "successor", FIXED)

    run_all(world, [zombie, successor], 2 * DELAY_MS)

    assert delivered_offsets(world) == [*range(40)]


def test_a_graceful_hand_over_goes_on_where_it_stopped() -> None:
    world = World()
    first = start(world, NO_BACKLOG, "first", FIXED)
    send_for(world, first, 20_000, every_ms=500)
    first.run(DELAY_MS - 10_000)
    first.loop.finish()

    second = start(world, NO_BACKLOG, "second", FIXED)
    second.run(DELAY_MS)

    assert (delivered_offsets(world), second.events.counts["fenced"]) == ([*range(40)], 0)


def test_memory_bounds_a_burst_of_one_moment() -> None:
    # Given memory for about forty records, whichever way a loop holds them
    one = World()
    send(one)
    holder = start(one, NO_BACKLOG, setup=FIXED)
    holder.run(1_000)
    world = World()
    for _ in range(500):
        send(world)
    relay = start(world, NO_BACKLOG, setup=FIXED._replace(memory_bytes=39 * holder.loop.shards[0].size + 1))

    relay.run(DELAY_MS - 1_000)
    paused, in_memory = set(relay.source.paused), relay.loop.shards[0].pending
    relay.run(20_000)

    assert (paused, in_memory < 50, delivered_offsets(world)) == ({0}, True, [*range(500)])
