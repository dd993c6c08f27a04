"""Clocks of time zones: from an instant to what a clock on a wall shows, and back.

A wall time is a number of milliseconds, as if its zone were UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

Zones = Callable[[str], tzinfo]
"""Finds a zone by its IANA name. Raises LookupError, ValueError or OSError for a name that is none."""
ZONES: Final[Zones] = ZoneInfo
"""The zones of this machine, or of the package `tzdata` where the machine has none."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH: Final = datetime(1970, 1, 1)
_MILLISECOND: Final = timedelta(milliseconds=1)


def at(instant_ms: int, zone: tzinfo) -> datetime:
    """Return an instant as a datetime of a zone. Raises OverflowError after the year 9999."""
    return (_EPOCH + timedelta(milliseconds=instant_ms)).astimezone(zone)


def instant_of(moment: datetime) -> int:
    """Return the epoch milliseconds of a datetime with a zone."""
    # With a zone that both have, Python subtracts what the walls show.
    return (moment.astimezone(UTC) - _EPOCH) // _MILLISECOND


def wall(wall_ms: int) -> datetime:
    """Return a wall time as a datetime without a zone. Raises OverflowError after the year 9999."""
    return _WALL_EPOCH + timedelta(milliseconds=wall_ms)


def wall_ms_of(moment: datetime) -> int:
    """Return what a wall shows at a datetime, whatever its zone."""
    return (moment.replace(tzinfo=None) - _WALL_EPOCH) // _MILLISECOND


def is_shown(moment: datetime) -> bool:
    """Return whether the clocks of its zone ever show this datetime: not within a gap."""
    return moment.astimezone(UTC).astimezone(moment.tzinfo).replace(tzinfo=None) == moment.replace(tzinfo=None)


def instant_of_wall(wall_ms: int, zone: tzinfo) -> int:
    """Return the instant at which a zone's clocks show a wall time: the first of two where they are put back over it,
    and the first moment after the gap where they are put forward over it.
    """
    moment = wall(wall_ms).replace(tzinfo=zone)
    before_ms, after_ms = _offset_ms(moment.replace(fold=0)), _offset_ms(moment.replace(fold=1))
    if before_ms >= after_ms:
        return wall_ms - before_ms
    # The clocks are put forward between these two.
    earlier_ms, later_ms = wall_ms - after_ms, wall_ms - before_ms
    while later_ms - earlier_ms > 1:
        middle_ms = (earlier_ms + later_ms) // 2
        if _offset_ms(at(middle_ms, zone)) == before_ms:
            earlier_ms = middle_ms
        else:
            later_ms = middle_ms
    return later_ms


def _offset_ms(moment: datetime) -> int:
    offset = moment.utcoffset()
    return 0 if offset is None else offset // _MILLISECOND
