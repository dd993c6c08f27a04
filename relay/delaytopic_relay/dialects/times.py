"""Points in time and delays as producers write them in headers, strictly read into milliseconds.

Only ASCII digits count as a number: signs, blanks, underscores and other alphabets, all of which
Python's `int` takes, are refused.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from delaytopic_api.values import Duration

LAST_INSTANT_MS = 253_402_300_799_999
"""The end of the year 9999. Well below 2**53, so that times stay exact as a score in Redis."""

_LONGEST_DURATION = Duration("99999h")

_MAX_DURATION_BYTES = 28
_UTC = b"Zz"
_POINT = ord(".")
_SECOND_BYTES = len("2026-11-21T14:01:26")
_UNITS: tuple[int, ...] = tuple(10**digits for digits in range(10))
"""Parts of a second by the digits of its fraction."""
_MOST_SECONDS = 1024
_utc_seconds_ms: dict[bytes, int] = {}
"""Seconds in UTC that were read, by their texts: many records are due in the same one."""
_RFC_3339 = re.compile(rb"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)")


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
    seconds, rest_ms = divmod(milliseconds, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ms:03d}Z"


@lru_cache(maxsize=1024)
def _duration_ms(text: bytes) -> int | None:
    # Cached, as producers write few different ones; only short texts come here, so the cache stays small.
    try:
        return Duration(text.decode("ascii")).ms
    except ValueError:
        return None


def _number(digits: bytes) -> int | None:
    try:
        number = int(digits)
    except ValueError:  # thousands of digits
        return None
    return number if is_instant(number) else None


def rfc_3339_ms(text: bytes) -> int | None:
    """Epoch milliseconds of RFC 3339 with an offset, of any year; None when it is something else.

    A fraction finer than a millisecond counts up, so that nothing is due before the instant written.
    """
    # Most are in UTC, and of a second that was read just before: those need no pattern (0.3 us instead of 0.75).
    second_ms = _utc_seconds_ms.get(text[:_SECOND_BYTES])
    if second_ms is not None and text[-1] in _UTC:
        digits = text[_SECOND_BYTES + 1 : -1]
        if digits.isdigit() and text[_SECOND_BYTES] == _POINT and len(digits) < len(_UNITS):
            return second_ms - -1_000 * int(digits) // _UNITS[len(digits)]
        return second_ms if len(text) == _SECOND_BYTES + 1 else None
    return _by_pattern(text)


def _by_pattern(text: bytes) -> int | None:
    match = _RFC_3339.fullmatch(text)
    if match is None:
        return None
    second, fraction, offset = match.groups()
    second_ms = _second_ms(second, offset)
    if second_ms is not None and offset in _UTC:
        if len(_utc_seconds_ms) == _MOST_SECONDS:
            _utc_seconds_ms.clear()
        _utc_seconds_ms[second] = second_ms
    if second_ms is None or fraction is None:
        return second_ms
    return second_ms - -1_000 * int(fraction) // _UNITS[len(fraction)]


@lru_cache(maxsize=1024)
def _second_ms(second: bytes, offset: bytes) -> int | None:
    # Cached likewise; only texts of the pattern above come here.
    try:
        instant = datetime.fromisoformat(f"{second.decode()}{offset.decode()}".upper())
    except ValueError:
        return None
    return int(instant.timestamp()) * 1000
