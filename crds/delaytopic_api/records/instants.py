"""Points in time as people and programs write them for records: epoch milliseconds, and what betrays another unit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

LAST_INSTANT_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""
FIRST_MEANT_MS: Final = 100_000_000_000
"""A smaller number is of 1973 or before as milliseconds, and of the next three thousand years as seconds."""
_FINER_UNITS: Final = ((1_000, "microseconds"), (1_000_000, "nanoseconds"))


def rfc_3339(instant_ms: int) -> str:
    """Return a time that a calendar has as RFC 3339 in UTC, with milliseconds."""
    seconds, rest_ms = divmod(instant_ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ms:03d}Z"


def is_ancient(due_ms: int) -> bool:
    """Return whether nobody can have meant this due time: mostly it is in seconds, and read as milliseconds.

    Its record leaves at once, and no lateness is measured from then.
    """
    return due_ms < FIRST_MEANT_MS


def objection_to_instant(number: int) -> str | None:
    """Return why a number is hardly meant as epoch milliseconds, as a sentence; None where it may be.

    Numbers below zero are not judged: they are a time in no unit.
    Relays take what producers of any language write: a record that is due in 1970 is delivered at once. This is for
    those who ask a person or a program for a time.
    """
    if number < 0 or FIRST_MEANT_MS <= number <= LAST_INSTANT_MS:
        return None
    if number < FIRST_MEANT_MS:
        meant = number * 1_000
        hint = f"; if it is in seconds, write {meant} for it" if meant >= FIRST_MEANT_MS else ""
        return f"{number} as epoch milliseconds is a time in 1973 or before{hint}"
    for per_millisecond, unit in _FINER_UNITS:
        if number // per_millisecond <= LAST_INSTANT_MS:
            return (
                f"{number} as epoch milliseconds is after the year 9999; "
                f"if it is in {unit}, write {number // per_millisecond} for it"
            )
    return f"{number} as epoch milliseconds is after the year 9999"
