"""The time over which an error budget is counted: a rolling window, or a period of the calendar of a zone. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from delaytopic_api.values import Calendar
from delaytopic_audit.model.manifest import MinuteRange
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.model.words import MINUTE_MS

DAY_MS: Final = 86_400_000
LONGEST_MS: Final = {Calendar.DAY: DAY_MS, Calendar.WEEK: 7 * DAY_MS, Calendar.MONTH: 31 * DAY_MS}
"""The length of a period in UTC, at the most."""
CLOCK_CHANGE_MS: Final = 3_600_000
"""The time by which a period, and two in a row, may be longer where clocks are put back."""


def period_of(calendar: Calendar, minute: int, zone: tzinfo = UTC) -> MinuteRange:
    """Return the minutes of the period that a minute is in: from midnight to midnight of this zone.

    Where clocks are put forward at midnight, a period begins with that; where it is midnight twice, with the first.
    """
    day = datetime.fromtimestamp(minute * 60, zone).replace(hour=0, minute=0, second=0, fold=0)
    if calendar is Calendar.DAY:
        start, end = day, day + timedelta(days=1)
    elif calendar is Calendar.WEEK:
        start = day - timedelta(days=day.weekday())
        end = start + timedelta(days=7)
    else:
        start = day.replace(day=1)
        end = (start + timedelta(days=32)).replace(day=1)
    return MinuteRange(int(start.timestamp()) // 60, int(end.timestamp()) // 60)


def budget_period(rules: Rules, end_minute: int) -> MinuteRange:
    """Return the minutes that the budget is of; of a calendar, the period of the last minute before `end_minute`."""
    if rules.calendar is not None:
        return period_of(rules.calendar, end_minute - 1, _zone(rules))
    return MinuteRange(end_minute - max(1, rules.window_ms // MINUTE_MS), end_minute)


def period_before(rules: Rules, end_minute: int) -> MinuteRange | None:
    """Return the period of the calendar before that of the budget; None without a calendar."""
    if rules.calendar is None:
        return None
    return period_of(rules.calendar, budget_period(rules, end_minute).start - 1, _zone(rules))


def _zone(rules: Rules) -> tzinfo:
    return rules.time_zone.zone if rules.time_zone is not None else UTC
