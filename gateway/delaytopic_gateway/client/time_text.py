"""Points and spans of time as the command line takes and shows them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

from delaytopic_api import Duration, InvalidText
from delaytopic_api.records import objection_to_instant
from delaytopic_process.errors import InputError

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LONG_SPAN = re.compile(r"(?:(\d{1,4})w)?(?:(\d{1,5})d)?(.*)", re.ASCII | re.DOTALL)
_DAY_MS = 86_400_000
_MOST_DIGITS = 30
"""The most digits that are read, more than a time has in any unit; Python refuses to read thousands."""


def instant_ms(text: str) -> int:
    """Return epoch milliseconds from `1795269686270`, or RFC 3339 such as `2026-11-21T09:30:00+01:00`.

    Raises InputError, also for a number in another unit, and for a time without an offset: this machine's zone need not
    be the reader's.
    """
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return meant_ms(int(text))
    if not _RFC_3339.fullmatch(text):
        raise InputError(
            f'"{text}" is not a time; write epoch milliseconds, or RFC 3339 with an offset: '
            "2026-11-21T09:30:00+01:00 or 2026-11-21T08:30:00Z"
        )
    try:
        instant = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise InputError(f'"{text}" is not a time: {error}') from error
    return round(instant.timestamp() * 1000)


def meant_ms(number: int) -> int:
    """Return a number that is epoch milliseconds; raises InputError for one that betrays another unit."""
    objection = objection_to_instant(number)
    if objection is not None:
        raise InputError(objection)
    return number


def duration(text: str) -> Duration:
    """Return a duration such as `5s`, `1h30m` or `250ms`; raises InputError."""
    try:
        return Duration(text)
    except InvalidText as error:
        raise InputError(str(error)) from error


def span_ms(text: str) -> int:
    """Return the milliseconds of a duration that may begin with weeks and days, such as 7d or 1d12h.

    Raises InputError.
    """
    weeks, days, rest = _LONG_SPAN.match(text).groups()  # type: ignore[union-attr]  # it matches any text
    if not rest and (weeks or days):
        rest = "0"
    return (int(weeks or 0) * 7 + int(days or 0)) * _DAY_MS + duration(rest).ms


def clock_text(instant: int | None, *, now_ms: int, zone: tzinfo | None = None) -> str:
    """Return wall-clock time with milliseconds, with the date unless it is today; a dash for None.

    `zone` None is the zone of this machine.
    """
    if instant is None:
        return "-"
    try:
        moment, now = (datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone) for ms in (instant, now_ms))
    except (ValueError, OverflowError, OSError):  # a forged page may name a time that no calendar has
        return f"{instant} ms"
    time = f"{moment:%H:%M:%S}.{instant % 1000:03d}"
    return time if moment.date() == now.date() else f"{moment:%Y-%m-%d} {time}"
