"""How fast a source grows: end offsets of the last minute, and when they last moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from delaytopic_operator.scaling.reading import Reading

SPAN_MS = 60_000
MOST_POINTS = 8
CLOSEST_MS = 5_000
LONGEST_GAP_MS = 300_000
"""After so long without an answer nothing is known of the time in between."""


class EndOffset(NamedTuple):
    """The sum of a source's end offsets at one moment."""

    at_ms: int
    end: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The last minute's points, and since when the end has stood still."""

    points: tuple[EndOffset, ...] = ()
    still_since_ms: int | None = None

    def observed(self, source_end: Reading[int] | None) -> Arrivals:
        """Take in an answer of Kafka; a source that got shorter was made anew."""
        if source_end is None:
            return self
        point = EndOffset(source_end.as_of_ms, source_end.value)
        last = self.points[-1] if self.points else None
        if last is None or point.end < last.end or point.at_ms - last.at_ms > LONGEST_GAP_MS:
            return Arrivals((point,), point.at_ms)
        if point.at_ms <= last.at_ms:
            return self
        still_since_ms = self.still_since_ms if point.end == last.end else point.at_ms
        earlier = self.points if len(self.points) < 2 or self._apart() else self.points[:-1]
        kept = tuple(each for each in earlier if point.at_ms - each.at_ms <= SPAN_MS)[-MOST_POINTS:]
        # Polls may be further apart than the span: the last point always tells what came since.
        return Arrivals((*(kept or earlier[-1:]), point), still_since_ms)

    def _apart(self) -> bool:
        return self.points[-1].at_ms - self.points[-2].at_ms >= CLOSEST_MS

    def per_second(self) -> float | None:
        """Records that arrive per second; None with a single answer."""
        if len(self.points) < 2:
            return None
        first, last = self.points[0], self.points[-1]
        return (last.end - first.end) * 1_000 / (last.at_ms - first.at_ms)

    def silent_ms(self, now_ms: int) -> int | None:
        """For how long nothing has arrived."""
        return None if self.still_since_ms is None else max(0, now_ms - self.still_since_ms)
