"""The time over which a budget is counted."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.audit.sample_report import RULES

from delaytopic_api.values import Calendar, TimeZone
from delaytopic_audit.report.periods import CLOCK_CHANGE_MS, LONGEST_MS, budget_period, period_before, period_of


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


BERLIN, HAVANA, SAO_PAULO, APIA = (
    TimeZone(name).zone for name in ("Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Pacific/Apia")
)


@pytest.mark.parametrize(
    ("zone", "calendar", "moment", "start", "end"),
    [
        # In UTC, where a summer's midnight of Berlin is at 22:00 and a winter's at 23:00.
        (BERLIN, Calendar.MONTH, "2026-03-31 21:59", "2026-02-28 23:00", "2026-03-31 22:00"),
        (BERLIN, Calendar.MONTH, "2026-03-31 22:00", "2026-03-31 22:00", "2026-04-30 22:00"),
        (BERLIN, Calendar.MONTH, "2026-10-15 00:00", "2026-09-30 22:00", "2026-10-31 23:00"),
        (BERLIN, Calendar.DAY, "2026-03-29 12:00", "2026-03-28 23:00", "2026-03-29 22:00"),
        (BERLIN, Calendar.DAY, "2026-10-25 12:00", "2026-10-24 22:00", "2026-10-25 23:00"),
        (BERLIN, Calendar.WEEK, "2026-10-25 22:59", "2026-10-18 22:00", "2026-10-25 23:00"),
        # Midnight comes twice: the day begins with the first, and has 25 hours.
        (HAVANA, Calendar.DAY, "2026-11-01 05:30", "2026-11-01 04:00", "2026-11-02 05:00"),
        # There is no midnight: the day begins when clocks go from 0 to 1 o'clock.
        (SAO_PAULO, Calendar.DAY, "2018-11-04 12:00", "2018-11-04 03:00", "2018-11-05 02:00"),
        # There was no 30 December.
        (APIA, Calendar.DAY, "2011-12-30 09:59", "2011-12-29 10:00", "2011-12-30 10:00"),
        (APIA, Calendar.DAY, "2011-12-30 10:00", "2011-12-30 10:00", "2011-12-31 10:00"),
    ],
)
def test_a_period_of_a_zone_is_from_its_midnight_to_its_midnight(
    zone: ZoneInfo, calendar: Calendar, moment: str, start: str, end: str
) -> None:
    assert period_of(calendar, minute(moment), zone) == (minute(start), minute(end))


@given(
    zone=st.sampled_from(
        ["Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Cairo"]
    ),
    calendar=st.sampled_from(Calendar),
    moment=st.integers(minute("1990-01-01 00:00"), minute("2037-01-01 00:00")),
)
def test_periods_of_a_zone_follow_each_other_without_gap_and_each_begins_a_day(
    zone: str, calendar: Calendar, moment: int
) -> None:
    offsets = TimeZone(zone).zone

    found = period_of(calendar, moment, offsets)

    assert found.start <= moment < found.end
    assert period_of(calendar, found.start, offsets) == period_of(calendar, found.end - 1, offsets) == found
    assert period_of(calendar, found.end, offsets).start == found.end
    assert period_of(calendar, found.start - 1, offsets).end == found.start
    assert (found.end - found.start) * 60_000 <= LONGEST_MS[calendar] + CLOCK_CHANGE_MS
    days = [datetime.fromtimestamp(each * 60, offsets).date() for each in (found.start - 1, found.start)]
    assert days[0] < days[1]
    assert (calendar is Calendar.DAY) or (days[1].weekday() == 0 if calendar is Calendar.WEEK else days[1].day == 1)


def test_the_budget_of_a_zone_is_of_its_period_beside_the_one_before() -> None:
    rules = RULES.model_copy(update={"calendar": Calendar.MONTH, "time_zone": TimeZone("Europe/Berlin")})

    now = budget_period(rules, minute("2026-11-30 23:00"))
    before = period_before(rules, minute("2026-11-30 23:00"))

    assert (now.start, now.end) == (minute("2026-10-31 23:00"), minute("2026-11-30 23:00"))
    assert before == (minute("2026-09-30 22:00"), minute("2026-10-31 23:00"))


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
