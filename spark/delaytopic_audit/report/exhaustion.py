"""The time at which an error budget is spent, if records go on being late or lost at the present pace. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from delaytopic_api.values import Duration
from delaytopic_audit.model.report import Budget, BurnRate, Exhaustion
from delaytopic_audit.report.text import instant, rough_length

HOUR_MS: Final = 3_600_000
ALERTING: Final = ((HOUR_MS, 14.4), (6 * HOUR_MS, 6.0), (72 * HOUR_MS, 1.0))
"""The long windows of the SRE workbook's alerts, each with the burn rate above which it alerts, as the chart's do."""
LEAST_BAD: Final = 10
"""The least number of bad records that tells of a pace, as in the chart's alerts: one late record of a few does not."""


def exhaustion(budget: Budget, rates: Sequence[BurnRate], end_ms: int) -> Exhaustion | None:
    """Return when the budget is spent, counted from `end_ms`; None without a budget, or when nothing was due."""
    if budget.remaining is None or not budget.allowed:
        return None
    pace = pace_of(rates)
    if pace is None or pace.rate is None:
        return None
    begin = f"At the pace of the last {pace.window}"
    if budget.remaining <= 0:
        return Exhaustion(window=pace.window, rate=pace.rate, at_ms=end_ms, sentence="The error budget is spent.")
    resets = budget.until_ms is not None
    window_ms = budget.until_ms - budget.from_ms if budget.until_ms is not None else Duration(budget.window).ms
    age_ms = end_ms - budget.from_ms
    left_ms = time_left_ms(budget.remaining, pace.rate, age_ms=age_ms, window_ms=window_ms, resets=resets)
    if left_ms is None:
        return Exhaustion(window=pace.window, rate=pace.rate, at_ms=None, sentence=f"{begin} the error budget lasts.")
    at_ms = end_ms + left_ms
    told = f"{begin} the error budget is spent in {rough_length(left_ms)}, at {instant(at_ms // 60_000 * 60_000)} UTC."
    return Exhaustion(window=pace.window, rate=pace.rate, at_ms=at_ms, sentence=told)


def pace_of(rates: Sequence[BurnRate]) -> BurnRate | None:
    """Return the burn rate that stands for the present pace; None when nothing was due in any window.

    That is the one of the shortest window that alerts; of those that do not, the longest, as it is the steadiest.
    """
    by_length = {Duration(each.window).ms: each for each in rates if each.rate is not None}
    for length_ms, threshold in ALERTING:
        found = by_length.get(length_ms)
        if found is not None and (found.rate or 0) > threshold and found.bad >= LEAST_BAD:
            return found
    usual = [length_ms for length_ms in by_length if length_ms <= ALERTING[-1][0]]
    return by_length[max(usual)] if usual else None


def time_left_ms(remaining: float, rate: float, *, age_ms: int, window_ms: int, resets: bool = False) -> int | None:
    """Return how long a budget lasts of which `remaining` is left; None where it is not spent within a window's length.

    A budget younger than its window (`age_ms`) still grows with what is due. That spending leaves a rolling window in
    time is left out: until then the answer is exact, and after it the budget lasts longer. One that `resets` is whole
    again after the window.
    """
    age_ms = min(age_ms, window_ms)
    if rate > 1:
        while_it_grows = remaining * age_ms / (rate - 1)
        if age_ms + while_it_grows <= window_ms:
            return round(while_it_grows)
    if rate <= 0 or resets:
        return None
    left_ms = round((window_ms - (1 - remaining) * age_ms) / rate)
    return left_ms if left_ms <= window_ms else None
