"""The sizes that were wanted lately: the most of the last minutes, and what a day's peaks were like."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

MOST_WISHES = 64
HOUR_MS = 3_600_000
HOURS = 24


class Wish(NamedTuple):
    """A size, and when it was last wanted."""

    at_ms: int
    relays: int


@dataclass(frozen=True, slots=True)
class Wishes:
    """Wanted sizes, later ones smaller: a size that was wanted before a larger one no longer matters."""

    kept: tuple[Wish, ...] = ()

    def with_wish(self, relays: int, now_ms: int, window_ms: int) -> Wishes:
        """Take in a wish, and forget what lies before the window."""
        kept = [wish for wish in self.kept if now_ms - wish.at_ms <= window_ms and wish.relays > relays]
        return Wishes((*kept, Wish(now_ms, relays))[-MOST_WISHES:])

    def most(self, now_ms: int, window_ms: int) -> Wish | None:
        """The largest that was wanted in the window."""
        return max(
            (wish for wish in self.kept if now_ms - wish.at_ms <= window_ms), key=lambda wish: wish.relays, default=None
        )


class Peak(NamedTuple):
    """The most relays wanted in one hour since the epoch."""

    hour: int
    relays: int


@dataclass(frozen=True, slots=True)
class Peaks:
    """A day of hourly peaks."""

    kept: tuple[Peak, ...] = ()

    def with_wish(self, relays: int, now_ms: int) -> Peaks:
        """Take in a wanted size."""
        hour = now_ms // HOUR_MS
        by_hour = {peak.hour: peak.relays for peak in self.kept if hour - HOURS < peak.hour <= hour}
        by_hour[hour] = max(relays, by_hour.get(hour, 0))
        return Peaks(tuple(Peak(each, by_hour[each]) for each in sorted(by_hour)))

    def p95(self) -> int | None:
        """What was enough in 95 of 100 hours."""
        ordered = sorted(peak.relays for peak in self.kept)
        return ordered[math.ceil(0.95 * len(ordered)) - 1] if ordered else None
