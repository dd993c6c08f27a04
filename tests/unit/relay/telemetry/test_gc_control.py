from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.telemetry.gc_control import AT_LEAST_MS, LITTLE_BYTES, OFTEN_MS, GarbageCollector


@pytest.fixture
def world() -> Iterator[World]:
    """Afterwards the collector works as it usually does."""
    yield World()
    gc.unfreeze()
    gc.enable()


@pytest.mark.parametrize(
    ("silent_ms", "size", "collects"),
    [
        pytest.param(OFTEN_MS - 1, 0, False, id="it did so lately"),
        pytest.param(OFTEN_MS, LITTLE_BYTES, True, id="it is time, and there is little to look at"),
        pytest.param(OFTEN_MS, LITTLE_BYTES + 1, False, id="it would take long"),
        pytest.param(AT_LEAST_MS, LITTLE_BYTES + 1, True, id="it would take long, but has waited long"),
    ],
)
def test_garbage_is_collected_when_that_costs_little_or_has_waited_long(
    world: World, silent_ms: int, size: int, collects: bool
) -> None:
    collector = GarbageCollector(WorldClock(world))

    world.now_ms += silent_ms

    assert collector.turn(size) is collects


def test_a_cycle_goes_with_the_next_collection_and_not_before(world: World) -> None:
    gone: list[str] = []

    class Cycle:
        def __del__(self) -> None:
            gone.append("cycle")

    collector = GarbageCollector(WorldClock(world))
    cycle = Cycle()
    cycle.itself = cycle  # type: ignore[attr-defined]
    del cycle
    assert gone == []

    world.now_ms += OFTEN_MS
    collector.turn(0)

    assert gone == ["cycle"]


def test_after_a_collection_it_waits_again(world: World) -> None:
    collector = GarbageCollector(WorldClock(world))
    world.now_ms += OFTEN_MS
    collector.turn(0)

    assert collector.turn(0) is False
