"""The times of a cron line, as far as it takes to say when an audit is missing. Pure."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(\*|\?|(\w+)(?:-(\w+))?)(?:/([0-9]{1,4}))?", re.ASCII)
_UNRESTRICTED: Final = ("*", "?", "*/1", "?/1")
_FIRST_DAY: Final = date(2027, 1, 1)
_LOOKED_AT: Final = timedelta(days=9 * 366)
"""The time that is looked at, with two leap years in it: a line may name the 29th of February."""
_DAY_MS: Final = 86_400_000
_MINUTE_MS: Final = 60_000


@lru_cache(1_024)
def longest_gap_ms(line: str) -> int | None:
    """Return the longest time between two runs of a cron line; None where Kubernetes takes it for none."""
    fields = _MACROS.get(line.strip(), line).lower().split()
    if len(fields) != 5:
        return None
    minutes, hours = _values(fields[0], 0, 59), _values(fields[1], 0, 23)
    days, months = _values(fields[2], 1, 31), _values(fields[3], 1, 12, _MONTHS)
    weekdays = _values(fields[4], 0, 7, _DAYS)
    if not (minutes and hours and days and months and weekdays):
        return None
    weekdays = frozenset(day % 7 for day in weekdays)
    times = sorted((hour * 60 + minute) * _MINUTE_MS for hour in hours for minute in minutes)
    # As Kubernetes' cron has it: where both kinds of days are restricted, one of them is enough.
    either = not any(part in _UNRESTRICTED for field in (fields[2], fields[4]) for part in field.split(","))
    last: int | None = None
    longest = max((later - earlier for earlier, later in pairwise(times)), default=0)
    for number in range(_LOOKED_AT.days):
        day = _FIRST_DAY + timedelta(days=number)
        by_date, by_weekday = day.day in days, day.isoweekday() % 7 in weekdays
        if day.month not in months or not (by_date or by_weekday if either else by_date and by_weekday):
            continue
        if last is not None:
            longest = max(longest, number * _DAY_MS + times[0] - last)
        last = number * _DAY_MS + times[-1]
    return longest or None


def _is_any(part: str) -> bool:
    return part[0] in "*?"


def _values(field: str, least: int, most: int, names: tuple[str, ...] = ()) -> frozenset[int]:
    """Return the values of a field; empty where it is none."""
    found: set[int] = set()
    for text in field.split(","):
        part = _PART.fullmatch(text)
        if part is None:
            return frozenset()
        step = int(part[4] or 1)
        start = least if _is_any(text) else _value(part[2], least, names)
        end = start
        if part[3] is not None:
            end = _value(part[3], least, names)
        elif _is_any(text) or part[4] is not None:
            end = most
        if start is None or end is None or step == 0 or not least <= start <= end <= most:
            return frozenset()
        found.update(range(start, end + 1, step))
    return frozenset(found)


def _value(text: str, least: int, names: tuple[str, ...]) -> int | None:
    if text in names:
        return names.index(text) + (least if least == 1 else 0)
    return int(text) if text.isdecimal() and len(text) <= 4 else None
