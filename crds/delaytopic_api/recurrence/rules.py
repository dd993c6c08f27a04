"""The rules of recurrence. Each is plain data, and knows its next slot: the time at which it would have a delivery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple, Protocol

from cronsim import CronSim, CronSimError

from delaytopic_api.records import LAST_INSTANT_MS, rfc_3339
from delaytopic_api.recurrence import zones

DAY_MS: Final = 86_400_000
LAST_SLOT_MS: Final = LAST_INSTANT_MS - 366 * DAY_MS
"""A year before no datetime can be reckoned with any more."""
_LONGEST_FOLD_MS: Final = DAY_MS
_UNITS: Final = ((3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))


class Rule(Protocol):
    """A rule of recurrence: cron, an interval, a ladder, or one local time."""

    def __hash__(self) -> int:
        """Rules are values."""
        ...

    @property
    def recurs(self) -> bool:
        """Return whether its deliveries are occurrences, and not the one delivery of a plain schedule."""
        ...

    def slot_after(self, after_ms: int, zone: tzinfo) -> int | None:
        """Return the first slot later than an instant; None where none is left before the year 9999."""
        ...

    def in_words(self) -> str:
        """Return the rule as people say it, without its zone."""
        ...


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields, or of six that begin with the seconds.

    One whose seconds, minutes and hours do not begin with a star names times of the clock: each is one slot on every
    day that it falls on. In a gap that is the first moment after it, and of two such times in a fold the first. All
    other expressions name a rhythm: each instant at which the clock shows a time that fits is a slot. A gap has none
    of them, and a fold has them twice.
    """

    text: str
    recurs: ClassVar[bool] = True

    def slot_after(self, after_ms: int, zone: tzinfo) -> int | None:
        """Return the first slot later than an instant."""
        return _cron_slot_after(self.text, after_ms, zone)

    def in_words(self) -> str:
        """Return the expression in English."""
        return CronSim(self.text, _START).explain()


@dataclass(frozen=True, slots=True)
class Every:
    """An interval, counted from an anchor: its slots are `anchor_ms + k * interval_ms` for k from 0 on."""

    interval_ms: int
    anchor_ms: int
    recurs: ClassVar[bool] = True

    def slot_after(self, after_ms: int, zone: tzinfo) -> int | None:
        """Return the first slot later than an instant; the zone does not count."""
        steps = max(0, (after_ms - self.anchor_ms) // self.interval_ms + 1)
        slot_ms = self.anchor_ms + steps * self.interval_ms
        return slot_ms if slot_ms <= LAST_SLOT_MS else None

    def in_words(self) -> str:
        """Return the interval, and what it is counted from."""
        return f"Every {duration_text(self.interval_ms)}, counted from {rfc_3339(self.anchor_ms)}"


@dataclass(frozen=True, slots=True)
class Local:
    """One time as a zone's clocks show it: the only slot. `wall_ms` is that time as if its zone were UTC."""

    wall_ms: int
    recurs: ClassVar[bool] = False

    def slot_after(self, after_ms: int, zone: tzinfo) -> int | None:
        """Return the instant of the wall time, if it is later than an instant."""
        slot_ms = self.instant_ms(zone)
        return slot_ms if slot_ms > after_ms else None

    def instant_ms(self, zone: tzinfo) -> int:
        """Return the instant of the wall time."""
        return zones.instant_of_wall(self.wall_ms, zone)

    def wall_ms_in(self, zone: tzinfo) -> int:
        """Return the wall time."""
        return self.wall_ms

    def text(self) -> str:
        """Return the time as the wall shows it."""
        return rfc_3339(self.wall_ms).removesuffix("Z").removesuffix(".000")

    def in_words(self) -> str:
        """Return the time as the wall shows it."""
        return f"Once, at {self.text()}"


@dataclass(frozen=True, slots=True)
class Instant:
    """The end of a ladder that needs no zone."""

    ms: int

    def instant_ms(self, zone: tzinfo) -> int:
        """Return the instant."""
        return self.ms

    def wall_ms_in(self, zone: tzinfo) -> int:
        """Return what a zone's clocks show at it."""
        return zones.wall_ms_of(zones.at(self.ms, zone))

    def text(self) -> str:
        """Return it as RFC 3339, in UTC."""
        return rfc_3339(self.ms)


class Rung(NamedTuple):
    """A rung of a ladder: days of the calendar of its zone, and milliseconds beside them, before the ladder's end."""

    days: int
    ms: int

    def text(self) -> str:
        """Return it as the header has it, days first."""
        days = f"{self.days}d" if self.days else ""
        return days + duration_text(self.ms) if self.ms or not days else days


@dataclass(frozen=True, slots=True)
class Ladder:
    """Some times before an instant, or before a time that a zone's clocks show: the end of the ladder.

    The end itself is a slot only where a rung of no length names it.
    """

    end: Instant | Local
    rungs: tuple[Rung, ...]
    recurs: ClassVar[bool] = True

    def slot_after(self, after_ms: int, zone: tzinfo) -> int | None:
        """Return the first slot later than an instant."""
        return min((slot_ms for slot_ms in self._slots(zone) if slot_ms > after_ms), default=None)

    def in_words(self) -> str:
        """Return rungs and end."""
        rungs = [f"{rung.text()} before" if rung != Rung(0, 0) else "at" for rung in self.rungs]
        several = f"{', '.join(rungs[:-1])} and {rungs[-1]}" if len(rungs) > 1 else rungs[0]
        return f"{several[0].upper()}{several[1:]} {self.end.text()}"

    def _slots(self, zone: tzinfo) -> set[int]:
        end_ms, wall_ms = self.end.instant_ms(zone), self.end.wall_ms_in(zone)
        return {
            (zones.instant_of_wall(wall_ms - rung.days * DAY_MS, zone) if rung.days else end_ms) - rung.ms
            for rung in self.rungs
        }


class Missed(StrEnum):
    """The policy for slots that are past already when the occurrence before them is delivered."""

    LATEST = "Latest"
    """The newest of them is delivered at once."""
    ALL = "All"
    """Each is delivered in its turn, if it is not older than the catch-up."""
    NONE = "None"
    """None of them is delivered."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The recurrence of one record, as its headers have it."""

    rule: Rule
    zone: str
    """An IANA name; UTC where the record names none."""
    from_ms: int
    """No slot lies before it: `deliver-from`, or the record's timestamp where that is later."""
    until_ms: int | None = None
    """No slot lies after it."""
    count: int | None = None
    """The number of occurrences; None for no bound."""
    jitter_ms: int = 0
    """Occurrences are put off by less than this."""
    missed: Missed = Missed.LATEST
    catch_up_ms: int | None = None
    """The distance that a slot may lie back with `Missed.ALL`."""


_START: Final = datetime(2000, 1, 1)
"""A time from which on each day of a leap year has been each day of the week before 50 years are over, after which
cronsim gives up."""


@lru_cache(maxsize=1024)
def objection_to_cron(text: str) -> str | None:
    """Return what is wrong with a cron expression, as the end of a sentence; None for a good one."""
    try:
        next(CronSim(text, _START))
    except CronSimError as error:
        return f"cannot be read: {str(error)[:1].lower()}{str(error)[1:]}"
    except StopIteration:
        return "never fires: it names a day that no year has"
    return None


# Many records have one rule, and are delivered in the same slot.
@lru_cache(maxsize=4096)
def _cron_slot_after(text: str, after_ms: int, zone: tzinfo) -> int | None:
    by_the_clock = not any(part.startswith("*") for part in text.split()[:-3])
    try:
        slot_ms = (_clock_slot_after if by_the_clock else _rhythm_slot_after)(text, after_ms, zone)
    except OverflowError:
        return None
    return slot_ms if slot_ms is not None and slot_ms <= LAST_SLOT_MS else None


def _clock_slot_after(text: str, after_ms: int, zone: tzinfo) -> int | None:
    for wall_ms in _walls_after(text, after_ms + zones.offset_at(after_ms, zone)):
        slot_ms = zones.instant_of_wall(wall_ms, zone)
        # In a fold the wall shows again what is past, and a gap has one moment for all that it leaves out.
        if slot_ms > after_ms:
            return slot_ms
    return None


def _rhythm_slot_after(text: str, after_ms: int, zone: tzinfo) -> int | None:
    offset_ms = zones.offset_at(after_ms, zone)
    start_ms = after_ms + offset_ms
    change_ms = zones.change_within(after_ms, _LONGEST_FOLD_MS, zone)
    if change_ms is not None:
        wall_ms = next(_walls_after(text, start_ms), None)
        if wall_ms is not None and wall_ms - offset_ms < change_ms:
            return wall_ms - offset_ms
        # The clocks may be put back over walls that were shown already.
        start_ms = change_ms - 1 + zones.offset_at(change_ms, zone)
    for wall_ms in _walls_after(text, start_ms):
        for slot_ms in zones.instants_of_wall(wall_ms, zone):
            if slot_ms > after_ms:
                return slot_ms
    return None


def _walls_after(text: str, wall_ms: int) -> Iterator[int]:
    """Yield the wall times of an expression that are later than another.

    cronsim walks along a wall where no clock is put forward or back. Its own way through changes of clock is not the
    same for six fields as for five, and passes over slots behind a change of half an hour.
    """
    for moment in CronSim(text, zones.wall(wall_ms)):
        yield zones.wall_ms_of(moment)


def duration_text(ms: int) -> str:
    """Return milliseconds as a header has them: 1h30m."""
    parts, rest = [], ms
    for unit_ms, unit in _UNITS:
        number, rest = divmod(rest, unit_ms)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"
