"""`spec.suspend`: what stands still on purpose, and goes on when it is lifted."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import (
    Setup,
    dead_offsets,
    delivered_offsets,
    produce,
    produce_cancel,
    produce_nonsense,
    start,
)
from tests.support.relay.schedules import cancel, reject, schedule
from tests.support.relay.world import World

from delaytopic_api.values import Suspend
from delaytopic_relay.core.commands import Command, DueKey
from delaytopic_relay.core.suspension import NOTHING_DUE_MS, Suspension, until_departure
from delaytopic_relay.errors import KafkaUnavailable

FAR_MS = 40_000
NO_DELIVERY = Setup(suspension=Suspension(delivery=True))
NO_INGEST = Setup(suspension=Suspension(ingest=True))
NEITHER = Setup(suspension=Suspension(ingest=True, delivery=True))


@pytest.mark.parametrize(
    ("suspend", "suspension"),
    [
        (Suspend.NONE, Suspension()),
        (Suspend.INGEST, Suspension(ingest=True)),
        (Suspend.DELIVERY, Suspension(delivery=True)),
        (Suspend.ALL, Suspension(ingest=True, delivery=True)),
    ],
)
def test_each_choice_says_what_stands_still(suspend: Suspend, suspension: Suspension) -> None:
    assert Suspension.of(suspend) == suspension


CURSOR = DueKey(100, 5)


@pytest.mark.parametrize("now_ms", [NOTHING_DUE_MS, 98])
@pytest.mark.parametrize("early", [schedule(99, 21), schedule(100, 5)])
def test_a_chunk_is_taken_in_up_to_the_first_record_that_would_leave_before_its_time(
    early: Command, now_ms: int
) -> None:
    before: list[Command] = [schedule(500, 1), cancel(2, b"a"), reject(3)]

    assert until_departure([*before, early, schedule(500, 22)], CURSOR, 0, now_ms) == before


def test_a_record_that_is_due_may_leave_at_once() -> None:
    commands: list[Command] = [schedule(98, 21), schedule(99, 22), schedule(100, 23), schedule(500, 24)]

    assert until_departure(commands, CURSOR, 0, now_ms=99) == commands


def test_what_was_taken_in_before_does_not_leave_and_is_taken_in_again() -> None:
    commands: list[Command] = [schedule(99, 7), reject(8), schedule(500, 9)]

    assert until_departure(commands, CURSOR, 10, NOTHING_DUE_MS) == commands


def test_while_delivery_is_suspended_nothing_is_delivered_and_records_are_taken_in() -> None:
    world, store = World(), MemoryBacklogStore()
    for after_ms in (0, 1_000, FAR_MS):
        produce(world, after_ms)
    relay = start(world, store, setup=NO_DELIVERY)

    relay.run(2 * FAR_MS)

    assert (delivered_offsets(world), sum(store.slices(0).values())) == ([], 3)


def test_when_the_suspension_of_delivery_is_lifted_everything_leaves_once_and_in_order() -> None:
    world, store = World(), MemoryBacklogStore()
    for after_ms in (FAR_MS, 2 * FAR_MS, 1_000, 500):
        produce(world, after_ms)
    suspended = start(world, store, "suspended", NO_DELIVERY)
    suspended.run(FAR_MS + 5_000)
    suspended.loop.finish()

    start(world, store, "resumed").run(2 * FAR_MS)

    assert delivered_offsets(world) == [3, 2, 0, 1]


def test_while_delivery_is_suspended_a_record_that_cannot_be_read_is_dead_lettered_all_the_same() -> None:
    world = World()
    produce_nonsense(world)
    produce(world, 0)
    relay = start(world, MemoryBacklogStore(), setup=NO_DELIVERY)

    relay.run(5_000)

    assert (dead_offsets(world), delivered_offsets(world)) == ([0], [])


def test_when_reading_cannot_be_paused_at_once_nothing_of_what_was_read_is_skipped() -> None:
    # Given a shard of which something was delivered, and a record due before that
    world, store = World(), MemoryBacklogStore()
    produce(world, 0)
    start(world, store, "before").run(1_000)
    late = produce(world, -60_000)
    suspended = start(world, store, "suspended", NO_DELIVERY)

    # When Kafka is not ready to pause it, while more arrives
    suspended.source.pause = not_ready  # type: ignore[method-assign]
    for _ in range(3):
        suspended.run(2_000)
        produce(world, FAR_MS)
    start(world, store, "resumed").run(2 * FAR_MS)

    assert delivered_offsets(world) == [0, late, 2, 3, 4]


def not_ready(partitions: Iterable[int]) -> None:
    raise KafkaUnavailable("not now")


def test_while_delivery_is_suspended_a_record_due_before_the_last_delivered_one_stays_on_the_source() -> None:
    # Given a relay that has delivered something
    world, store = World(), MemoryBacklogStore()
    produce(world, 0)
    start(world, store, "before").run(1_000)

    # When an older one arrives while delivery is suspended
    late = produce(world, -60_000)
    later = produce(world, FAR_MS)
    suspended = start(world, store, "suspended", NO_DELIVERY)
    suspended.run(5_000)
    during = (delivered_offsets(world), world.committed[0].offset)
    start(world, store, "resumed").run(2 * FAR_MS)

    assert during == ([0], late)
    assert delivered_offsets(world) == [0, late, later]


def test_while_delivery_is_suspended_schedules_can_be_cancelled() -> None:
    world, store = World(), MemoryBacklogStore()
    produce(world, FAR_MS, name=b"a")
    kept = produce(world, FAR_MS, name=b"b")
    suspended = start(world, store, "suspended", NO_DELIVERY)
    suspended.run(2_000)
    produce_cancel(world, b"a")
    suspended.run(2_000)

    start(world, store, "resumed").run(2 * FAR_MS)

    assert delivered_offsets(world) == [kept]


def test_while_ingest_is_suspended_what_was_taken_in_before_is_delivered_and_nothing_else() -> None:
    # Given records taken in, one in memory only and one in the backlog
    world, store = World(), MemoryBacklogStore()
    for after_ms in (5_000, FAR_MS):
        produce(world, after_ms)
    start(world, store, "before").run(1_000)
    for after_ms in (0, 6_000):
        produce(world, after_ms)

    suspended = start(world, store, "suspended", NO_INGEST)
    suspended.run(2 * FAR_MS)
    during = delivered_offsets(world)
    start(world, store, "resumed").run(2_000)

    assert (during, delivered_offsets(world)) == ([0, 1], [0, 1, 2, 3])


def test_while_all_is_suspended_nothing_moves_and_nothing_is_lost() -> None:
    world, store = World(), MemoryBacklogStore()
    for after_ms in (5_000, FAR_MS):
        produce(world, after_ms)
    start(world, store, "before").run(1_000)
    produce(world, 0)

    start(world, store, "suspended", NEITHER).run(2 * FAR_MS)
    during = delivered_offsets(world)
    start(world, store, "resumed").run(2_000)

    assert (during, sorted(delivered_offsets(world))) == ([], [0, 1, 2])


@pytest.mark.parametrize("setup", [NO_DELIVERY, NO_INGEST, NEITHER])
def test_a_fixed_delay_can_be_suspended_as_well(setup: Setup) -> None:
    world = World()
    suspended = start(world, MemoryBacklogStore(), "suspended", setup._replace(delay_ms=30_000))
    for _ in range(5):
        world.produce(0, b"k", b"v", None)

    suspended.run(60_000)
    during = delivered_offsets(world)
    suspended.loop.finish()
    start(world, MemoryBacklogStore(), "resumed", Setup(delay_ms=30_000)).run(2_000)

    assert (during, delivered_offsets(world)) == ([], [*range(5)])
