"""A relay whose clock is wrong: nothing is early, and nothing is lost or twice once it is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.world.clocks import SimulatedSecondClock
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import (
    Delivery,
    Relay,
    Setup,
    delivered_offsets,
    deliveries,
    produce,
    start,
)
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.core.commands import DueKey, Leaving
from delaytopic_relay.core.done import Ahead
from delaytopic_relay.core.progress import decode_progress

HOUR_MS = 3_600_000
BACKENDS = [pytest.param(Setup(), id="Redis"), pytest.param(Setup(buckets=12), id="buckets")]


class WrongClock(WorldClock):
    """A wall clock that a test sets."""

    wrong_ms = 0

    def now_ms(self) -> int:
        return self.world.now_ms + self.wrong_ms


def wrong_by(wrong_ms: int) -> Callable[[World], WorldClock]:
    def clock(world: World) -> WorldClock:
        made = WrongClock(world)
        made.wrong_ms = wrong_ms
        return made

    return clock


def compared(setup: Setup, wrong_ms: int = 0, *, silent: Callable[[], bool] = lambda: False) -> Setup:
    """Relays with a clock that is wrong by so much, who compare it with one that is right."""
    return setup._replace(
        clock=wrong_by(wrong_ms), second_clock=lambda world: SimulatedSecondClock(world.kafka, silent, 0)
    )


def set_clock(relay: Relay, wrong_ms: int) -> None:
    clock: Any = relay.clock
    clock.wrong_ms = wrong_ms


def believed(relay: Relay) -> bool:
    state = relay.loop.snapshot().clock
    assert state is not None
    return state.believed


@pytest.mark.parametrize("setup", BACKENDS)
def test_a_relay_whose_clock_is_an_hour_ahead_at_its_start_delivers_nothing(setup: Setup) -> None:
    world, store = World(), MemoryBacklogStore()
    for after_ms in (0, 500, 30_000):
        produce(world, after_ms)

    relay = start(world, store, "ahead", compared(setup, HOUR_MS))
    relay.run(3_000)

    assert (deliveries(world), believed(relay)) == ([], False)


@pytest.mark.parametrize("setup", BACKENDS)
def test_what_was_held_is_delivered_once_when_the_clock_is_right(setup: Setup) -> None:
    world, store = World(), MemoryBacklogStore()
    for after_ms in (500, 30_000, 8_000):
        produce(world, after_ms)
    relay = start(world, store, "ahead", compared(setup, HOUR_MS))
    relay.run(3_000)

    set_clock(relay, 0)
    relay.run(40_000)

    assert (delivered_offsets(world), believed(relay)) == ([0, 2, 1], True)


@pytest.mark.parametrize("setup", BACKENDS)
def test_intake_goes_on_while_delivery_is_held(setup: Setup) -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "ahead", compared(setup, HOUR_MS))
    relay.run(1_000)

    for after_ms in (500, 30_000, 8_000):
        produce(world, after_ms)
    relay.run(1_000)

    assert (relay.loop.shards[0].position, relay.loop.shards[0].pending) == (3, 3)


@pytest.mark.parametrize("setup", BACKENDS)
def test_a_clock_that_jumps_ahead_holds_delivery_at_once(setup: Setup) -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "jumps", compared(setup))
    relay.run(2_000)
    due_ms = world.now_ms + 5_000
    produce(world, 5_000)
    relay.run(1_000)

    set_clock(relay, HOUR_MS)
    relay.run(2_000)
    assert deliveries(world) == []
    set_clock(relay, 0)
    relay.run(3_000, step_ms=10)

    assert deliveries(world) == [Delivery(due_ms, 0, 0)]


def test_a_relay_that_holds_delivery_does_not_turn_without_pause() -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "jumps", compared(Setup()))
    produce(world, 5_000)
    relay.run(1_000)

    set_clock(relay, HOUR_MS)
    relay.step()

    assert relay.loop._timeout_ms() > 0


def test_a_relay_that_has_no_answer_from_the_second_clock_delivers_nothing_until_it_has_one() -> None:
    world, store, answers = World(), MemoryBacklogStore(), [False]
    produce(world, 500)
    relay = start(world, store, "alone", compared(Setup(), silent=lambda: not answers[0]))
    relay.run(3_000)
    assert deliveries(world) == []
    answers[0] = True

    relay.run(2_000)

    assert delivered_offsets(world) == [0]


def test_a_relay_whose_clock_is_believed_delivers_on_while_the_second_one_does_not_answer() -> None:
    world, store, answers = World(), MemoryBacklogStore(), [True]
    relay = start(world, store, "alone", compared(Setup(), silent=lambda: not answers[0]))
    relay.run(1_000)
    answers[0] = False
    relay.run(120_000, step_ms=500)
    due_ms = world.now_ms + 1_000
    produce(world, 1_000)

    relay.run(2_000, step_ms=10)

    assert deliveries(world) == [Delivery(due_ms, 0, 0)]


def test_a_clock_that_jumps_after_it_was_decided_what_leaves_has_nothing_expire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "jumps", compared(Setup()))
    relay.run(1_000)
    due_ms = world.now_ms + 1_000
    world.produce(0, b"k", b"v", [("deliver-at", b"%d" % due_ms), ("deliver-expires-at", b"%d" % (due_ms + 60_000))])

    def jump(leaving: Leaving) -> None:
        if leaving.schedules:
            set_clock(relay, HOUR_MS)

    monkeypatch.setattr(relay.events, "commands", jump)
    relay.run(3_000)

    assert [(each.offset, each.dead) for each in deliveries(world)] == [(0, False)]


def test_a_clock_that_is_behind_delivers_late_and_says_so() -> None:
    world, store = World(), MemoryBacklogStore()
    due_ms = world.now_ms + 1_000
    produce(world, 1_000)
    relay = start(world, store, "behind", compared(Setup(), -5_000))

    relay.run(8_000, step_ms=10)

    state = relay.loop.snapshot().clock
    assert deliveries(world) == [Delivery(due_ms + 5_000, 0, 0)]
    assert state is not None
    assert state.ahead_ms == pytest.approx(-5_000, abs=10)
    assert (state.believed, "5.0 s behind" in (state.message or "")) == (True, True)


# -- a clock that comes back


def delivered_early(world: World, store: MemoryBacklogStore, setup: Setup) -> None:
    """Two records that are due within the hour, which a relay delivers whose clock is an hour ahead, and one later."""
    for after_ms in (3_000_000, 1_000_000, 4_000_000):
        produce(world, after_ms)
    start(world, store, "ahead", setup._replace(clock=wrong_by(HOUR_MS))).run(3_000)
    assert delivered_offsets(world) == [1, 0]


@pytest.mark.parametrize("setup", BACKENDS)
def test_what_comes_after_a_clock_has_come_back_is_delivered_in_time(setup: Setup) -> None:
    world, store = World(), MemoryBacklogStore()
    delivered_early(world, store, setup)
    relay = start(world, store, "right", setup)
    relay.run(1_000)
    now_ms = world.now_ms

    # The first one is due before what left early, and after all that follow it.
    for after_ms in (2_000_000, 0, 1_000, 60_000):
        produce(world, after_ms)
    relay.run(5_000, step_ms=10)
    relay.run(4_100_000, step_ms=5_000)

    found = deliveries(world)[2:]
    assert [each.offset for each in found] == [4, 5, 6, 3, 2]
    assert found[1].sent_ms == now_ms + 1_000
    late_ms = [found[place].sent_ms - now_ms - after_ms for place, after_ms in ((2, 60_000), (3, 2_000_000))]
    assert all(0 <= each <= 5_000 for each in late_ms)


@pytest.mark.parametrize("setup", BACKENDS)
def test_what_was_delivered_early_is_not_delivered_again_by_whoever_reads_all_of_it_again(setup: Setup) -> None:
    world, store = World(), MemoryBacklogStore()
    delivered_early(world, store, setup)
    relay = start(world, store, "right", setup)
    relay.run(1_000)
    produce(world, 60_000)
    relay.run(1_000)
    store.wipe()

    relay = start(world, store, "again", setup._replace(buckets=0 if setup.buckets else 12))
    relay.run(4_100_000, step_ms=5_000)

    assert delivered_offsets(world) == [1, 0, 3, 2]


@pytest.mark.parametrize("setup", BACKENDS)
def test_a_relay_whose_own_clock_comes_back_goes_on_taking_in(setup: Setup) -> None:
    world, store = World(), MemoryBacklogStore()
    for after_ms in (3_000_000, 4_000_000):
        produce(world, after_ms)
    relay = start(world, store, "back", setup._replace(clock=wrong_by(HOUR_MS)))
    relay.run(3_000)

    set_clock(relay, 0)
    produce(world, 60_000)
    relay.run(90_000, step_ms=500)

    assert delivered_offsets(world) == [0, 2]
    progress = decode_progress(*world.kafka.committed[0])
    assert (progress.ahead is not None, progress.position) == (True, 3)


def test_progress_names_what_was_delivered_early_until_the_cursor_has_passed_it() -> None:
    world, store = World(), MemoryBacklogStore()
    due_ms = world.now_ms + 3_000_000
    delivered_early(world, store, Setup())
    relay = start(world, store, "right")
    produce(world, 60_000)
    relay.run(1_000)

    named = decode_progress(*world.kafka.committed[0]).ahead
    relay.run(4_100_000, step_ms=5_000)

    assert (named, decode_progress(*world.kafka.committed[0]).ahead) == (Ahead(3, DueKey(due_ms, 0)), None)
