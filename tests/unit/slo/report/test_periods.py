"""The time over which a budget is counted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.unit.slo.sample_report import RULES

from delaytopic_api.values import Calendar
from delaytopic_slo.report.periods import LONGEST_MS, budget_period, period_before, period_of


def minute(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) // 60


@pytest.mark.parametrize(
    ("calendar", "moment", "start", "end"),
    [
        (Calendar.DAY, "2026-11-21 14:07", "2026-11-21", "2026-11-22"),
        (Calendar.DAY, "2026-12-31 23:59", "2026-12-31", "2027-01-01"),
        (Calendar.WEEK, "2026-11-21 14:07", "2026-11-16", "2026-11-23"),
        (Calendar.WEEK, "2026-11-16 00:00", "2026-11-16", "2026-11-23"),
        (Calendar.WEEK, "2026-11-15 23:59", "2026-11-09", "2026-11-16"),
        (Calendar.MONTH, "2026-11-21 14:07", "2026-11-01", "2026-12-01"),
        (Calendar.MONTH, "2026-12-31 23:59", "2026-12-01", "2027-01-01"),
        (Calendar.MONTH, "2028-02-29 00:00", "2028-02-01", "2028-03-01"),
    ],
)
def test_a_period_has_its_first_minute_and_all_up_to_the_next_one(
    calendar: Calendar, moment: str, start: str, end: str
) -> None:
    found = period_of(calendar, minute(moment))

    assert found == (minute(start), minute(end))
    assert (found.end - found.start) * 60_000 <= LONGEST_MS[calendar]


def test_the_budget_is_of_the_period_of_the_last_graded_minute() -> None:
    rules = RULES.model_copy(update={"calendar": Calendar.MONTH})

    last = budget_period(rules, minute("2026-12-01 00:00"))
    first = budget_period(rules, minute("2026-12-01 00:01"))

    assert last == (minute("2026-11-01"), minute("2026-12-01"))
    assert first == (minute("2026-12-01"), minute("2027-01-01"))
    assert period_before(rules, minute("2026-12-01 00:01")) == last


def test_without_a_calendar_it_is_of_the_window_that_ends_now() -> None:
    assert budget_period(RULES, 100_000) == (100_000 - 720 * 60, 100_000)
    assert period_before(RULES, 100_000) is None
