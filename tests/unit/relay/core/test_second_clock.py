from __future__ import annotations

import pytest

from delaytopic_relay.core.second_clock import AGAIN_MS, BOUND_MS, CALM_MS, ClockState, ClockWatch, Reading

TIME_MS = 1_795_269_686_000
"""The time as it is when the monotonic clock shows 0."""


def watch_that_was_told(at_ms: int = 0, round_trip_ms: int = 0) -> ClockWatch:
    """A watch with an answer to a question of this moment, given halfway; the own clock was right."""
    watch = ClockWatch("the other")
    answered_ms = at_ms + round_trip_ms
    reading = Reading(at_ms, answered_ms, TIME_MS + at_ms + round_trip_ms // 2)
    watch.answered(reading, TIME_MS + answered_ms, answered_ms)
    return watch


def test_a_clock_is_not_believed_before_the_second_one_has_answered() -> None:
    assert not ClockWatch("the other").believes(TIME_MS, 0)


def test_a_clock_is_believed_as_long_as_it_goes_on_like_the_monotonic_one() -> None:
    assert watch_that_was_told().believes(TIME_MS + 50_000, 50_000)


@pytest.mark.parametrize(("ahead_ms", "believed"), [(BOUND_MS, True), (BOUND_MS + 1, False), (-3_600_000, True)])
def test_a_clock_that_jumps_is_believed_if_it_is_not_ahead_by_more_than_the_bound(
    ahead_ms: int, *, believed: bool
) -> None:
    assert watch_that_was_told().believes(TIME_MS + 500 + ahead_ms, 500) == believed


def test_an_answer_that_was_long_on_its_way_proves_nothing() -> None:
    watch = watch_that_was_told(round_trip_ms=3 * BOUND_MS)

    assert not watch.believes(TIME_MS + 3 * BOUND_MS, 3 * BOUND_MS)


def test_an_answer_that_was_long_on_its_way_takes_nothing_away_from_a_former_one() -> None:
    watch = watch_that_was_told()

    watch.answered(Reading(60_000, 66_000, TIME_MS + 60_100), TIME_MS + 66_000, 66_000)

    assert watch.believes(TIME_MS + 66_000, 66_000)


def test_an_answer_that_shows_that_the_clock_is_ahead_takes_the_belief_away() -> None:
    watch = watch_that_was_told()

    watch.answered(Reading(60_000, 60_001, TIME_MS + 55_000), TIME_MS + 60_001, 60_001)

    assert not watch.believes(TIME_MS + 60_001, 60_001)


def test_no_answer_takes_nothing_away_from_a_former_one() -> None:
    watch = watch_that_was_told()

    watch.failed("it is away")

    assert watch.believes(TIME_MS + 60_000, 60_000)


def test_the_second_clock_is_asked_each_second_until_the_own_one_is_believed() -> None:
    watch = ClockWatch("the other")

    asked = [at_ms for at_ms in (0, 1, AGAIN_MS - 1, AGAIN_MS) if watch.asks(TIME_MS + at_ms, at_ms)]

    assert asked == [0, AGAIN_MS]


def test_the_second_clock_is_asked_each_minute_while_the_own_one_is_believed() -> None:
    watch = watch_that_was_told()
    assert watch.asks(TIME_MS, 0)

    asked = [at_ms for at_ms in range(0, 3 * CALM_MS, 500) if watch.asks(TIME_MS + at_ms, at_ms)]

    assert asked == [CALM_MS, 2 * CALM_MS]


def test_a_jump_has_the_second_clock_asked_within_a_second() -> None:
    watch = watch_that_was_told()
    assert watch.asks(TIME_MS, 0)

    assert watch.asks(TIME_MS + 3_600_000 + AGAIN_MS, AGAIN_MS)


@pytest.mark.parametrize(
    ("ahead_ms", "message"),
    [
        (0, None),
        (
            -3_600_000,
            "the clock of this relay is 3600.0 s behind that of the other: records are delivered late by that",
        ),
        (
            3_600_000,
            "nothing is delivered: the clock of this relay is 3600.0 s ahead of that of the other, and it is not known "
            "which is right; delivery goes on by itself when both agree, so have a time server set them",
        ),
    ],
)
def test_a_state_says_how_far_the_clocks_differ_and_what_follows(ahead_ms: int, message: str | None) -> None:
    state = watch_that_was_told().state(TIME_MS + ahead_ms, 0)

    assert (state.ahead_ms, state.believed, state.message) == (ahead_ms, ahead_ms <= 0, message)


def test_a_state_before_any_answer_says_why_there_was_none() -> None:
    watch = ClockWatch("the other")
    watch.failed("it is away")

    state = watch.state(TIME_MS, 0)

    assert state == ClockState("the other", believed=False, ahead_ms=None, trouble="it is away")
    assert state.message == (
        "nothing is delivered until this relay's clock was compared with that of the other, which does not answer: it "
        "is away"
    )
