from __future__ import annotations

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.backlog.protocol import EmptyReader
from delaytopic_relay.backlog.redis.backlog import RedisBacklog
from delaytopic_relay.backlog.store import StoreVersion
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.progress import Progress, fresh_progress
from delaytopic_relay.core.recovery import Bounds, Plan

C = DueKey(5_000, 42)
WHOLE = Bounds(0, 1_000)
"""A source that still has everything."""


def progress(offset: int, position: int, cursor: DueKey = C) -> Progress:
    return Progress(offset, position, cursor, "new")


def claim(counter: int, offset: int) -> StoreVersion:
    return StoreVersion("relay-1", counter, offset)


def recovered(
    committed: Progress | None, position: StoreVersion | None, bounds: Bounds, *, offset_reset: bool = False
) -> tuple[Plan, StoreVersion | None]:
    """Return what is planned with a backlog at this position, and where the backlog is once the shard is open."""
    store = MemoryBacklogStore()
    if position is not None:
        store.put(0, None, position, [], {})
    backlog = RedisBacklog(store, "relay", 1_000, WorldClock(World()), QuietEvents(), EmptyReader)
    plan = backlog.plan(0, committed, bounds, "new", offset_reset=offset_reset)
    backlog.open(0, plan)
    return plan, store.version(0)


@pytest.mark.parametrize(
    ("committed", "store", "bounds", "plan", "claimed"),
    [
        pytest.param(
            None,
            None,
            WHOLE,
            Plan(progress(0, 0, NOTHING_DELIVERED)),
            claim(1, 0),
            id="first start: from the beginning of the source",
        ),
        pytest.param(
            None,
            None,
            Bounds(70, 1_000),
            Plan(progress(70, 70, NOTHING_DELIVERED)),
            claim(1, 70),
            id="first start on an old source: from what it still has",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            StoreVersion("old", 9, 120),
            WHOLE,
            Plan(progress(100, 120)),
            claim(10, 100),
            id="ordinary: from the committed offset",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            StoreVersion("old", 9, 150),
            WHOLE,
            Plan(progress(100, 120)),
            claim(10, 100),
            id="a put that was never committed: the backlog is ahead",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            StoreVersion("old", 4, 80),
            WHOLE,
            Plan(progress(80, 120)),
            claim(5, 80),
            id="rolled-back backlog: from where the backlog really is",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            None,
            WHOLE,
            Plan(progress(0, 120)),
            claim(1, 0),
            id="wiped backlog: from the beginning of the source",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            None,
            Bounds(30, 1_000),
            Plan(progress(30, 120), doubtful_offsets=30),
            claim(1, 30),
            id="wiped backlog, old source: from what the source still has",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            None,
            Bounds(105, 1_000),
            Plan(progress(105, 120), missing_offsets=5, doubtful_offsets=100),
            claim(1, 105),
            id="wiped backlog, and retention passed the committed offset: five are gone for certain",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            StoreVersion("old", 9, 120),
            Bounds(110, 1_000),
            Plan(progress(110, 120), missing_offsets=10),
            claim(10, 110),
            id="retention passed the committed offset: ten are gone",
        ),
        pytest.param(
            Progress(0, 120, C, "old"),
            StoreVersion("old", 9, 120),
            Bounds(4, 1_000),
            Plan(progress(4, 120), missing_offsets=4),
            claim(10, 4),
            id="retention passed the committed offset 0: four are gone",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            StoreVersion("old", 4, 80),
            Bounds(95, 1_000),
            Plan(progress(95, 120), missing_offsets=15),
            claim(5, 95),
            id="rolled-back backlog, and retention passed its position: fifteen are gone",
        ),
        pytest.param(
            Progress(100, 120, C, "old"),
            StoreVersion("old", 9, 120),
            Bounds(500, 1_000),
            Plan(progress(500, 500), missing_offsets=400),
            claim(10, 500),
            id="retention passed even the position: what was taken in goes on from there",
        ),
        pytest.param(
            Progress(7, 7, NOTHING_DELIVERED, "old"),
            None,
            WHOLE,
            Plan(progress(0, 7, NOTHING_DELIVERED)),
            claim(1, 0),
            id="wiped backlog before anything was delivered: all that was taken in is read again",
        ),
    ],
)
def test_a_new_owner_starts_at_the_lower_of_what_is_committed_and_what_the_backlog_has(
    committed: Progress | None, store: StoreVersion | None, bounds: Bounds, plan: Plan, claimed: StoreVersion
) -> None:
    assert recovered(committed, store, bounds) == (plan, claimed)


@pytest.mark.parametrize("store", [None, StoreVersion("old", 9, 60), StoreVersion("old", 9, 500)])
@pytest.mark.parametrize(("low", "start"), [(0, 100), (130, 130)])
def test_an_offset_that_was_set_by_hand_is_where_reading_starts(
    store: StoreVersion | None, low: int, start: int
) -> None:
    found = recovered(fresh_progress(100), store, Bounds(low, 1_000), offset_reset=True)

    counter = 1 if store is None else 10
    fresh = progress(start, start, NOTHING_DELIVERED)
    assert found == (Plan(fresh, missing_offsets=start - 100), claim(counter, start))


@pytest.mark.parametrize(
    ("committed", "bounds", "planned"),
    [
        pytest.param(None, WHOLE, progress(0, 0, NOTHING_DELIVERED), id="first start"),
        pytest.param(None, Bounds(70, 90), progress(70, 70, NOTHING_DELIVERED), id="first start on an old source"),
        pytest.param(Progress(100, 100, C, "old"), WHOLE, progress(100, 100), id="ordinary"),
        pytest.param(Progress(100, 120, C, "old"), WHOLE, progress(100, 120), id="progress of a backlog"),
        pytest.param(Progress(100, 100, C, ""), Bounds(300, 900), progress(300, 300), id="retention passed it"),
        pytest.param(Progress(100, 120, C, ""), Bounds(0, 110), progress(100, 110), id="truncated after it"),
        pytest.param(Progress(100, 120, C, ""), Bounds(0, 50), progress(50, 50), id="truncated before it"),
    ],
)
def test_with_a_fixed_delay_a_new_owner_starts_at_the_committed_offset(
    committed: Progress | None, bounds: Bounds, planned: Progress
) -> None:
    assert FixedBacklog(1_000).plan(0, committed, bounds, "new", offset_reset=False) == Plan(planned)
