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


def instant_of_wall(wall_ms: int, zone: tzinfo) -> int:
    """Return the instant at which a zone's clocks show a wall time: the first of two where they are put back over it,
    and the first moment after the gap where they are put forward over it.
    """
    moment = wall(wall_ms).replace(tzinfo=zone)
    before_ms, after_ms = _offset_ms(moment.replace(fold=0)), _offset_ms(moment.replace(fold=1))
    if before_ms >= after_ms:
        return wall_ms - before_ms
    return _change_between(wall_ms - after_ms, wall_ms - before_ms, before_ms, zone)


def instants_of_wall(wall_ms: int, zone: tzinfo) -> list[int]:
    """Return each instant at which a zone's clocks show a wall time, in order: none in a gap, two in a fold."""
    moment = wall(wall_ms).replace(tzinfo=zone)
    offsets = {_offset_ms(moment.replace(fold=0)), _offset_ms(moment.replace(fold=1))}
    return sorted(wall_ms - offset_ms for offset_ms in offsets if offset_at(wall_ms - offset_ms, zone) == offset_ms)


def offset_at(instant_ms: int, zone: tzinfo) -> int:
    """Return the milliseconds that a zone's clocks are ahead of UTC at an instant."""
    return _offset_ms(at(instant_ms, zone))


def change_within(instant_ms: int, length_ms: int, zone: tzinfo) -> int | None:
    """Return the first instant, of a length behind another one, from which on clocks have another offset. A length is a
    few days at most, within which no zone has two changes.
    """
    offset_ms = offset_at(instant_ms, zone)
    if offset_at(instant_ms + length_ms, zone) == offset_ms:
        return None
    return _change_between(instant_ms, instant_ms + length_ms, offset_ms, zone)


def _change_between(earlier_ms: int, later_ms: int, offset_ms: int, zone: tzinfo) -> int:
    """Return the first instant without an offset, which the earlier of two has and the later has not."""
    while later_ms - earlier_ms > 1:
        middle_ms = (earlier_ms + later_ms) // 2
        if offset_at(middle_ms, zone) == offset_ms:
            earlier_ms = middle_ms
        else:
            later_ms = middle_ms
    return later_ms


def _offset_ms(moment: datetime) -> int:
    offset = moment.utcoffset()
    return 0 if offset is None else offset // _MILLISECOND
