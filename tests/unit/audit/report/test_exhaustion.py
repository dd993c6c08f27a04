"""The time at which a budget is spent at the present pace."""

from __future__ import annotations

import pytest

from delaytopic_audit.model.report import Budget, BurnRate
from delaytopic_audit.report.exhaustion import HOUR_MS, exhaustion, pace_of, time_left_ms

END_MS = 1_700_000 * HOUR_MS
DAY_MS = 24 * HOUR_MS


def burn(window: str, rate: float | None, bad: int = 10) -> BurnRate:
    return BurnRate(window=window, total=1_000, bad=bad, rate=rate)


def budget(remaining: float | None, *, age_ms: int = 30 * DAY_MS, allowed: float = 100.0) -> Budget:
    return Budget(window="720h", from_ms=END_MS - age_ms, total=1, allowed=allowed, spent=0, remaining=remaining)


@pytest.mark.parametrize(
    ("rates", "pace"),
    [
        ([burn("1h", 14.5), burn("6h", 6.1), burn("72h", 1.1)], "1h"),
        ([burn("1h", 14.4), burn("6h", 6.1), burn("72h", 1.1)], "6h"),
        ([burn("1h", 99.0, bad=9), burn("6h", 16.5), burn("72h", 1.4)], "6h"),
        ([burn("1h", 9.0), burn("6h", 5.0), burn("24h", 2.0), burn("72h", 0.7), burn("720h", 0.1)], "72h"),
        ([burn("1h", 9.0), burn("6h", 5.0), burn("24h", 2.0)], "24h"),
        ([burn("1h", None), burn("6h", 0.5), burn("24h", None)], "6h"),
        ([burn("1h", None)], None),
    ],
)
def test_the_pace_is_that_of_the_shortest_window_that_alerts_else_the_steadiest(
    rates: list[BurnRate], pace: str | None
) -> None:
    found = pace_of(rates)

    assert (found.window if found is not None else None) == pace


@pytest.mark.parametrize(
    ("remaining", "rate", "age_days", "days"),
    [
        (1.0, 1.0, 30, 30.0),
        (1.0, 10.0, 30, 3.0),
        (0.5, 15.0, 30, 1.0),
        (0.1, 0.5, 30, 6.0),
        (0.5, 0.25, 30, None),
        (1.0, 0.0, 30, None),
        # A day old, of which half the budget is left: as much is allowed each day as on the first.
        (0.5, 2.0, 1, 0.5),
        (0.5, 3.0, 1, 0.25),
        # Its budget grows for another 29 days, and is spent after that.
        (1.0, 1.02, 1, 30 / 1.02),
        (1.0, 0.9, 1, None),
    ],
)
def test_a_budget_lasts_by_what_is_left_and_what_the_pace_takes(
    remaining: float, rate: float, age_days: int, days: float | None
) -> None:
    left_ms = time_left_ms(remaining, rate, age_ms=age_days * DAY_MS, window_ms=30 * DAY_MS)

    assert left_ms == (round(days * DAY_MS) if days is not None else None)


@pytest.mark.parametrize(
    ("left", "rates", "at_ms", "sentence"),
    [
        (
            budget(0.5),
            [burn("1h", 36.0)],
            END_MS + 10 * HOUR_MS,
            "At the pace of the last 1h the error budget is spent in 10.0 h, at 2163-12-08 18:00 UTC.",
        ),
        (budget(0.5), [burn("72h", 0.1)], None, "At the pace of the last 72h the error budget lasts."),
        (budget(0.0), [burn("72h", 0.1)], END_MS, "The error budget is spent."),
        (budget(-0.2), [burn("72h", 0.1)], END_MS, "The error budget is spent."),
    ],
)
def test_it_is_told_for_people_and_for_programs(
    left: Budget, rates: list[BurnRate], at_ms: int | None, sentence: str
) -> None:
    found = exhaustion(left, rates, END_MS)

    assert found is not None
    assert (found.at_ms, found.sentence) == (at_ms, sentence)


@pytest.mark.parametrize(
    ("remaining", "rate", "days"),
    [
        # Ten days of a month of thirty: as much is allowed on each further day.
        (0.5, 2.0, 5.0),
        (0.5, 1.25, 20.0),
        (0.5, 1.24, None),
        (0.5, 0.9, None),
    ],
)
def test_a_budget_that_is_whole_again_lasts_unless_it_is_spent_before(
    remaining: float, rate: float, days: float | None
) -> None:
    left_ms = time_left_ms(remaining, rate, age_ms=10 * DAY_MS, window_ms=30 * DAY_MS, resets=True)

    assert left_ms == (round(days * DAY_MS) if days is not None else None)


@pytest.mark.parametrize(
    ("left", "rates"),
    [(budget(None), [burn("1h", None)]), (budget(1.0, allowed=0.0), [burn("1h", 0.0)])],
    ids=["nothing was due", "an objective of all records"],
)
def test_without_a_budget_there_is_nothing_to_spend(left: Budget, rates: list[BurnRate]) -> None:
    assert exhaustion(left, rates, END_MS) is None
