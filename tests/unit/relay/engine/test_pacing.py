from __future__ import annotations

import pytest

from delaytopic_relay.engine.pacing import (
    BRIEF_TICK_MS,
    BURST,
    CROWD,
    LARGEST_FAR_BYTES,
    LONGEST_SLEEP_MS,
    LONGEST_TICK_MS,
    MARKERS_MS,
    MOST_SENT,
    PLAIN_TICK_MS,
    QUIET_TICK_MS,
    SETTLED_MS,
    SHORTEST_TICK_MS,
    Pace,
    TickState,
    closes_at_ms,
    sleep_ms,
)

PACE = Pace(50, transactional=True)
NOTHING_OPEN = TickState(1_000, sent=0, moved=False, far_bytes=0)


@pytest.mark.parametrize(
    ("precision_ms", "last_commit_ms", "tick_ms"),
    [
        (50, 0, 16),  # a third of the precision
        (30, 0, BRIEF_TICK_MS),  # but not that brief
        (20, 0, 10),  # if half of it is longer
        (50, 40, 40),  # at least as long as the last commit
        (50, 100, 50),  # but within the precision
        (1_000, 0, LONGEST_TICK_MS),  # and never long
        (1_000, 500, LONGEST_TICK_MS),
        (1, 0, SHORTEST_TICK_MS),  # nor too short
        (1, 100, SHORTEST_TICK_MS),
    ],
)
def test_a_transactional_tick_is_as_long_as_precision_and_commits_allow(
    precision_ms: int, last_commit_ms: int, tick_ms: int
) -> None:
    assert Pace(precision_ms, transactional=True).tick_ms(last_commit_ms) == tick_ms


@pytest.mark.parametrize("last_commit_ms", [0, 500])
def test_without_transactions_a_tick_is_always_as_long(last_commit_ms: int) -> None:
    assert Pace(1, transactional=False).tick_ms(last_commit_ms) == PLAIN_TICK_MS


@pytest.mark.parametrize(
    ("tick", "close_ms"),
    [
        pytest.param(NOTHING_OPEN, None, id="nothing to commit"),
        pytest.param(NOTHING_OPEN._replace(sent=1), 1_016, id="sent"),
        pytest.param(NOTHING_OPEN._replace(sent=CROWD - 1), 1_016, id="more sent"),
        pytest.param(NOTHING_OPEN._replace(sent=CROWD), 1_050, id="a crowd sent"),
        pytest.param(NOTHING_OPEN._replace(sent=MOST_SENT), 1_000, id="much sent"),
        pytest.param(NOTHING_OPEN._replace(moved=True), 1_000 + QUIET_TICK_MS, id="only the position moved"),
        pytest.param(NOTHING_OPEN._replace(sent=1, moved=True), 1_016, id="sent and moved"),
        pytest.param(NOTHING_OPEN._replace(moved=True, taken=BURST, idle=True), 1_000, id="a burst is over"),
        pytest.param(NOTHING_OPEN._replace(moved=True, taken=BURST), 1_500, id="a burst goes on"),
        pytest.param(NOTHING_OPEN._replace(moved=True, taken=BURST - 1, idle=True), 1_500, id="a few were taken in"),
        pytest.param(NOTHING_OPEN._replace(moved=True, far_bytes=LARGEST_FAR_BYTES), 1_500, id="much for the backlog"),
        pytest.param(NOTHING_OPEN._replace(moved=True, far_bytes=LARGEST_FAR_BYTES + 1), 1_000, id="too much for it"),
    ],
)
def test_a_tick_closes_sooner_the_more_there_is_in_it(tick: TickState, close_ms: int | None) -> None:
    assert closes_at_ms(tick, PACE, last_commit_ms=0) == close_ms


@pytest.mark.parametrize(
    ("tick", "close_ms"),
    [
        pytest.param(NOTHING_OPEN._replace(sent=1, came_ms=1_100), 1_000 + PLAIN_TICK_MS, id="sent"),
        pytest.param(
            NOTHING_OPEN._replace(sent=1, taken=BURST, came_ms=1_100), 1_100 + SETTLED_MS, id="a burst was taken in"
        ),
        pytest.param(
            NOTHING_OPEN._replace(sent=1, taken=BURST, came_ms=1_490), 1_000 + PLAIN_TICK_MS, id="a burst goes on"
        ),
        pytest.param(
            NOTHING_OPEN._replace(sent=1, taken=BURST - 1, came_ms=1_100),
            1_000 + PLAIN_TICK_MS,
            id="a few were taken in",
        ),
    ],
)
def test_without_transactions_a_tick_closes_when_a_burst_is_over(tick: TickState, close_ms: int) -> None:
    assert closes_at_ms(tick, PACE._replace(transactional=False), last_commit_ms=0) == close_ms


@pytest.mark.parametrize(
    ("wake_ms", "close_ms", "slept_ms"),
    [
        pytest.param(None, None, LONGEST_SLEEP_MS, id="nothing to wait for"),
        pytest.param(100_020, None, 20, id="something is due"),
        pytest.param(100_900, None, LONGEST_SLEEP_MS, id="something is due later"),
        pytest.param(None, 7_030, 30, id="the tick closes"),
        pytest.param(100_020, 7_010, 10, id="the tick closes first"),
        pytest.param(100_005, 7_010, 5, id="something is due first"),
        pytest.param(99_000, None, 0, id="something is overdue"),
        pytest.param(None, 6_000, 0, id="the tick should have closed"),
    ],
)
def test_it_sleeps_until_something_is_due_or_the_tick_closes(
    wake_ms: int | None, close_ms: int | None, slept_ms: int
) -> None:
    assert sleep_ms(100_000, wake_ms, 7_000, close_ms) == slept_ms


@pytest.mark.parametrize(
    ("pace", "hold_ms"),
    [
        pytest.param(Pace(100, transactional=True), MARKERS_MS, id="while markers are written"),
        pytest.param(Pace(20, transactional=True), 5, id="but no longer than half of a tick"),
        pytest.param(Pace(100, transactional=False), 0, id="without transactions there are none"),
    ],
)
def test_nothing_is_sent_for_a_moment_after_a_commit(pace: Pace, hold_ms: int) -> None:
    assert pace.hold_ms() == hold_ms
