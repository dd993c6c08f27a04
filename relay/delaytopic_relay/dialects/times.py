"""Points in time and delays as producers write them in headers, strictly read into milliseconds.

Only ASCII digits count as a number: signs, blanks, underscores and other alphabets, all of which
Python's `int` takes, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Final

from delaytopic_api.records import rfc_3339
from delaytopic_api.values import Duration

LAST_INSTANT_MS = 253_402_300_799_999
"""The end of the year 9999. Well below 2**53, so that times stay exact as a score in Redis."""

_DURATION = re.compile(rb"([0-9]{1,5}(h|m|s|ms)){1,4}")
_LONGEST_DURATION = Duration("99999h")

_MAX_DURATION_BYTES = 28
_UTC = ord("Z")
_POINT = ord(".")
_SECOND_BYTES = len("2026-11-21T14:01:26")
_UNITS: tuple[int, ...] = tuple(10**digits for digits in range(10))
"""Parts of a second by the digits of its fraction."""
_MOST_SECONDS = 1024
_utc_seconds_ms: dict[bytes, int] = {}
"""Seconds in UTC that were read, by their texts: many records are due in the same one."""
_USUAL = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_SECOND = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:Z|([+-])(\d\d):(\d\d))")
_OF_GO = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))")
_MOST_NANOSECOND_DIGITS = 9
_OF_PYTHON = re.compile(
    r"(?P<year>\d{4})(?P<dash>-?)(?:(?P<month>\d\d)(?P=dash)(?P<day>\d\d)|W(?P<week>\d\d)(?:(?P=dash)(?P<weekday>\d))?)"
    r"(?:Z|\D(?P<hour>\d\d)"
    r"(?:(?P<colon>:?)(?P<minute>\d\d)(?:(?P=colon)(?P<second>\d\d)(?:[.,](?P<fraction>\d+)| (?=[+\-Z]))?)?)?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>\d\d)(?:(?P<between>:?)(?P<minutes>\d\d)(?:(?P=between)(?P<seconds>\d\d))?)?)?)?",
    re.ASCII | re.DOTALL,
)
_LEAP_YEARS: Final = (400, 146_097)
"""A calendar repeats itself after so many years, which have so many days."""
_NUMBERS = ("year", "month", "day", "week", "hour", "minute", "second", "hours", "minutes", "seconds")
_DAY_S = 86_400
_DAYS_TO_1970 = date(1970, 1, 1).toordinal()
_MOST_FRACTION_DIGITS = 64
"""The most digits of a fraction that are read; more tell nothing, and thousands would take Python long."""


def instant_ms(text: bytes) -> int | None:
    """Epoch milliseconds of digits, or of RFC 3339 with an offset; None when it is neither.

    A fraction finer than a millisecond counts up, so that nothing is due before the instant written.
    None also for instants before 1970 or after the year 9999.
    """
    if text.isdigit():
        return _number(text)
    milliseconds = rfc_3339_ms(text)
    return milliseconds if milliseconds is not None and is_instant(milliseconds) else None


def is_instant(milliseconds: int) -> bool:
    """Return whether this is a time between 1970 and the year 9999."""
    return 0 <= milliseconds <= LAST_INSTANT_MS


def delay_ms(text: bytes) -> int | None:
    """Milliseconds of digits, or of a duration like `90s`, `1h30m`, `500ms`; None when it is neither.

    None also for a number of more than eight thousand years.
    """
    if text.isdigit():
        return _number(text)
    return _duration_ms(text) if len(text) <= _MAX_DURATION_BYTES else None


def delay_text(milliseconds: int) -> str:
    """A delay as the YAML would say it, as far as the YAML could."""
    return Duration.of_ms(milliseconds) if milliseconds <= _LONGEST_DURATION.ms else f"more than {_LONGEST_DURATION}"


def instant_text(milliseconds: int) -> str:
    """A point in time as RFC 3339 in UTC, or as epoch milliseconds where no calendar has it; of bounded length."""
    if not is_instant(milliseconds):
        return f"epoch {milliseconds} ms" if abs(milliseconds) < 1 << 63 else "a time that 64 bits cannot hold"
    return rfc_3339(milliseconds)


@lru_cache(maxsize=1024)
def _duration_ms(text: bytes) -> int | None:
    # Cached, as producers write few different ones; only short texts come here, so the cache stays small.
    # A header has fewer forms than a document: producers in many languages write it, and a verdict stays as it was.
    return Duration(text.decode("ascii")).ms if _DURATION.fullmatch(text) is not None else None


def _number(digits: bytes) -> int | None:
    try:
        number = int(digits)
    except ValueError:  # thousands of digits
        return None
    return number if is_instant(number) else None


Reader = Callable[[bytes], int | None]
"""Returns the epoch milliseconds of an instant, of any year; None for what it does not read.

A fraction finer than a millisecond counts up, so that nothing is due before the instant written.
"""


def _reader(odd_ms: Reader) -> Reader:
    """Return a reader of instants as RFC 3339 writes them in capitals; `odd_ms` reads what else its grammar has."""

    def read(text: bytes) -> int | None:
        # Most are in UTC, and of a second that was read just before: those need no pattern (0.3 us instead of 0.75).
        second_ms = _utc_seconds_ms.get(text[:_SECOND_BYTES])
        if second_ms is not None and text[-1] == _UTC:
            digits = text[_SECOND_BYTES + 1 : -1]
            if digits.isdigit() and text[_SECOND_BYTES] == _POINT and len(digits) < len(_UNITS):
                return second_ms - -1_000 * int(digits) // _UNITS[len(digits)]
            if len(text) == _SECOND_BYTES + 1:
                return second_ms
        usual_ms = _usual_ms(text)
        return odd_ms(text) if usual_ms is None else usual_ms

    return read


def _usual_ms(text: bytes) -> int | None:
    match = _USUAL.fullmatch(text)
    if match is None:
        return None
    second, fraction, offset = match.groups()
    second_ms = _second_ms(second + offset)
    if second_ms is not None and offset[0] == _UTC:
        if len(_utc_seconds_ms) == _MOST_SECONDS:
            _utc_seconds_ms.clear()
        _utc_seconds_ms[second] = second_ms
    if second_ms is None or fraction is None:
        return second_ms
    return second_ms - -1_000 * int(fraction) // _UNITS[len(fraction)]


@lru_cache(maxsize=1024)
def _second_ms(text: bytes) -> int | None:
    # Cached likewise; only texts of the pattern above come here.
    match = _SECOND.fullmatch(text)
    assert match is not None
    *numbers, sign, hours, minutes = match.groups(b"0")
    year, month, day, hour, minute, second = map(int, numbers)
    if year == 0 or int(hours) > 23 or int(minutes) > 59:
        return None
    days = _days(year, month, day)
    offset_s = (int(hours) * 60 + int(minutes)) * 60
    return _instant_ms(days, (hour, minute, second), None, -offset_s if sign == b"-" else offset_s)


def _days(year: int, month: int, day: int) -> int | None:
    """Return the day of a date, counted from 1970, of a year from 0 on; None for no date."""
    years, days = _LEAP_YEARS if year == 0 else (0, 0)
    try:
        return date(year + years, month, day).toordinal() - days - _DAYS_TO_1970
    except ValueError:
        return None


def _instant_ms(
    days: int | None, clock: tuple[int, int, int], fraction: bytes | str | None, offset_s: int
) -> int | None:
    """Return the instant of a day, a time of that day and its offset; None where there is no such time."""
    hour, minute, second = clock
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset_s
    digits = fraction[:_MOST_FRACTION_DIGITS] if fraction else "0"
    unit: int = 10 ** len(digits)
    return seconds * 1_000 - -1_000 * int(digits) // unit


def _in_small_letters_ms(text: bytes) -> int | None:
    return _usual_ms(text.upper())


def _of_go_ms(text: bytes) -> int | None:
    """Read what `time.Parse(time.RFC3339, text)` of Go 1.20 and later does: its clock may have an hour of one digit, a
    comma and any number of digits, of which nine count, and its offsets are checked for no more than 24 and 60.
    """
    match = _OF_GO.fullmatch(text)
    if match is None:
        return None
    *numbers, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = map(int, numbers)
    hours, minutes = int(hours or 0), int(minutes or 0)
    if hours > 24 or minutes > 60:
        return None
    offset_s = (hours * 60 + minutes) * 60
    digits = fraction and fraction[:_MOST_NANOSECOND_DIGITS]
    days = _days(year, month, day)
    return _instant_ms(days, (hour, minute, second), digits, -offset_s if sign == b"-" else offset_s)


def _of_python_ms(text: bytes) -> int | None:
    """Read what `datetime.fromisoformat` of Python 3.11 documents: dates of the calendar and of weeks, with
    and without separators, hours with and without minutes and seconds. Without an offset it is UTC.

    Its own code is not asked: what else it takes differs from one version of Python to the next.
    """
    try:
        match = _OF_PYTHON.fullmatch(text.decode())
    except UnicodeDecodeError:
        return None
    if match is None:
        return None
    parts = match.groupdict()
    number = {name: int(parts[name] or 0) for name in _NUMBERS}
    offset_s = (number["hours"] * 60 + number["minutes"]) * 60 + number["seconds"]
    if number["year"] == 0 or offset_s >= _DAY_S:
        return None
    if parts["week"] is None:
        days = _days(number["year"], number["month"], number["day"])
    else:
        days = _day_of_week(number["year"], number["week"], int(parts["weekday"] or 1))
    clock = number["hour"], number["minute"], number["second"]
    return _instant_ms(days, clock, parts["fraction"], -offset_s if parts["sign"] == "-" else offset_s)


def _day_of_week(year: int, week: int, weekday: int) -> int | None:
    try:
        return date.fromisocalendar(year, week, weekday).toordinal() - _DAYS_TO_1970
    except ValueError:
        return None


rfc_3339_ms: Final = _reader(_in_small_letters_ms)
"""Reads RFC 3339 with an offset, of up to nine digits of a fraction."""
go_rfc_3339_ms: Final = _reader(_of_go_ms)
"""Reads what Go's time package reads as RFC 3339."""
iso_8601_ms: Final = _reader(_of_python_ms)
"""Reads ISO 8601 as Python's `datetime.fromisoformat` does; without an offset it is UTC."""
