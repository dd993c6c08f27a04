"""The work ahead: the due curve, the relays that it needs, the sizes that help, and the lateness."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from math import inf
from typing import NamedTuple

ROUNDING = 1e-9


def power(partitions: int, relays: int) -> float:
    """Return how many times the work of one relay so many do: with 12 partitions, 7 to 11 do no more than 6."""
    return partitions / -(-partitions // relays) if relays else 0.0


@cache
def useful_sizes(partitions: int) -> tuple[int, ...]:
    """List the sizes that do more than any smaller one, ascending; divisors of the partition count are among them."""
    return tuple(sorted({-(-partitions // each) for each in range(1, partitions + 1)}))


@dataclass(frozen=True)
class Sizes:
    """The sizes that a fleet may have while it is awake; `sizes_of` shares those of the same limits."""

    partitions: int
    least: int
    most: int | None
    """None: as many as there are partitions."""

    @cached_property
    def max_useful(self) -> int:
        """The size beyond which no relay can help, or is allowed."""
        most = self.partitions if self.most is None else min(self.partitions, self.most)
        return max((size for size in useful_sizes(self.partitions) if size <= most), default=1)

    @cached_property
    def allowed(self) -> tuple[int, ...]:
        """Ascending, never empty. A minimum beyond what is useful is honoured: somebody wants a relay in reserve."""
        least, most = max(1, self.least), self.max_useful
        between = tuple(size for size in useful_sizes(self.partitions) if least <= size <= most)
        return between or (least if self.most is None else max(1, min(least, self.most)),)

    @property
    def bound_by_partitions(self) -> bool:
        """True where only more partitions could make room for more relays."""
        return self.most is None or self.most >= self.partitions

    def fit(self, need: float) -> int:
        """Return the smallest size that can do `need` times the work of one relay; the largest if none can."""
        enough = (size for size in self.allowed if self.power(size) + ROUNDING >= need)
        return next(enough, self.allowed[-1])

    def outgrown_by(self, relays: int) -> float:
        """Return the need above which `fit` gives more than so many relays; infinite where it never does."""
        if relays >= self.allowed[-1]:
            return inf
        return max((self.power(size) for size in self.allowed if size <= relays), default=-inf) + ROUNDING

    def power(self, relays: int) -> float:
        """Return how many times the work of one relay so many do."""
        return power(self.partitions, relays)


sizes_of = lru_cache(maxsize=1_024)(Sizes)
"""Returns the sizes of these partitions, least and most: thousands of fleets have the same few."""


MOST_SPANS = 64
"""The most spans of a grid: intervals grow with its square."""
SUDDEN_MS = 5_000
"""The time within which what stands out of a wide bin is taken to fall due; the bin itself does not say. In simulation,
a shorter time costs many more relays on a load that only swells, and a longer one makes short bursts later."""


class Span(NamedTuple):
    """Records due after `start_ms` and up to `end_ms` (epoch milliseconds)."""

    start_ms: int
    end_ms: int
    records: float


class Piece(NamedTuple):
    """Records taken to be due in a span; in truth they are due up to `known_to_ms`."""

    start_ms: int
    end_ms: int
    records: float
    known_to_ms: int


class Crest(NamedTuple):
    """A span, told apart: what flows as evenly as next to it, and what stands out and may be due in one instant."""

    start_ms: int
    end_ms: int
    smooth: float
    sudden: float


@dataclass(frozen=True, slots=True)
class DueCurve:
    """Adjoining spans in the order of time; the first starts when the curve was put together."""

    spans: tuple[Span, ...]
    as_of_ms: int
    """The time at which the oldest histogram in it was counted."""

    @property
    def records(self) -> int:
        """Due in all of it."""
        return round(sum(span.records for span in self.spans))

    def crests(self, now_ms: int) -> list[Crest]:
        """Cut the curve at now: records due since then are delivered, or are overdue in the next status."""
        ahead = [
            span if span.start_ms >= now_ms else _after(span, now_ms) for span in self.spans if span.end_ms > now_ms
        ]
        densities = [records / (end_ms - start_ms) for start_ms, end_ms, records in ahead]
        return [
            Crest(start_ms, end_ms, smooth := min(records, beside * (end_ms - start_ms)), records - smooth)
            for (start_ms, end_ms, records), beside in zip(ahead, _beside(ahead, densities), strict=True)
        ]


def pieces(crests: Iterable[Crest]) -> list[Piece]:
    """Plan with a curve in which all that stands out of a wide span is due in its first five seconds."""
    planned: list[Piece] = []
    for start_ms, end_ms, smooth, sudden in crests:
        width_ms = end_ms - start_ms
        if sudden <= 0 or width_ms <= SUDDEN_MS:
            planned.append(Piece(start_ms, end_ms, smooth + sudden, end_ms))
            continue
        early = smooth * SUDDEN_MS / width_ms
        planned.append(Piece(start_ms, start_ms + SUDDEN_MS, early + sudden, end_ms))
        planned.append(Piece(start_ms + SUDDEN_MS, end_ms, smooth - early, end_ms))
    return planned


def merged(counts: Mapping[tuple[int, int], float], edges_ms: Sequence[int], now_ms: int, as_of_ms: int) -> DueCurve:
    """Spread records evenly over their (start, end), on the grid from now to these edges."""
    edges = [now_ms, *_thinned([edge for edge in sorted(set(edges_ms)) if edge > now_ms])]
    bins = [0.0] * (len(edges) - 1)
    for (start_ms, end_ms), records in counts.items():
        _spread(bins, edges, start_ms, end_ms, records)
    spans = zip(edges, edges[1:], bins, strict=False)
    return DueCurve(tuple(Span(start, end, records) for start, end, records in spans), as_of_ms)


def _thinned(edges: list[int]) -> list[int]:
    step = -(-len(edges) // MOST_SPANS) or 1
    # The last edge always stays: the curve must not get shorter.
    return edges[::-1][::step][::-1]


def _spread(bins: list[float], edges: list[int], start_ms: int, end_ms: int, records: float) -> None:
    first, last = max(0, bisect_right(edges, start_ms) - 1), min(len(bins), bisect_left(edges, end_ms)) - 1
    if first == last and edges[first] <= start_ms < end_ms <= edges[last + 1]:
        bins[first] += records
        return
    width_ms = max(1, end_ms - start_ms)
    for place in range(first, last + 1):
        common_ms = min(edges[place + 1], end_ms) - max(edges[place], start_ms)
        if common_ms > 0:
            bins[place] += records * common_ms / width_ms


def _after(span: Span, now_ms: int) -> Span:
    """Return the part of a span that is ahead, of one that has begun."""
    share = (span.end_ms - now_ms) / (span.end_ms - span.start_ms)
    return Span(now_ms, span.end_ms, span.records * share)


def _beside(spans: Sequence[Span], densities: list[float]) -> list[float]:
    """Return the most records per millisecond on either side of each span, or of one that is alone, its own."""
    if len(densities) < 2:
        return densities
    beside = [densities[1], *map(max, densities, densities[2:]), densities[-2]]
    if len(spans) > 2:
        beside[-1] = max(beside[-1], _grown(spans, densities))
    return beside


def _grown(spans: Sequence[Span], densities: Sequence[float]) -> float:
    """Return the records per millisecond of the last span, had they gone on growing as before it."""
    before, last, at = (_middle_ms(span) for span in spans[-3:])
    slope = (densities[-2] - densities[-3]) / (last - before)
    return densities[-2] + slope * (at - last)


def _middle_ms(span: Span) -> float:
    return (span.start_ms + span.end_ms) / 2


CATCH_UP_MS = 30_000
"""The time within which what is overdue shall have left."""
READ_UP_MS = 60_000
"""The time within which what has not been taken in shall be."""
TAKES_IN_PER_SECOND = 10_000
"""The records that a relay is taken to take in within a second. In simulation its true rate hardly matters."""


class NeedKind(StrEnum):
    """The work that relays are needed for."""

    DUE = "Due"
    OVERDUE = "Overdue"
    INGEST = "Ingest"


@dataclass(frozen=True, slots=True)
class Need:
    """A number of relays for a number of records, between two times (epoch milliseconds)."""

    kind: NeedKind
    relays: float
    records: int
    from_ms: int
    to_ms: int
    pressing_ms: int
    """The time from which on relays can do something about it."""


def needs_of_due(
    pieces: Sequence[Piece], overdue: int, per_second: float, precision_ms: int, now_ms: int
) -> tuple[Need, ...]:
    """Find the smallest relay count that delivers each burst within its own width plus precision.

    For each piece the worst interval that ends with it. Nothing leaves before its time, so relays for that interval are
    of use when its last piece begins, and not before: until then, the intervals that end earlier ask for what they
    need. What is overdue joins the work from now on, over intervals long enough to catch up.
    """
    upto = [0.0, *accumulate(piece.records for piece in pieces)]
    starts_ms = [piece.start_ms for piece in pieces]
    needs: list[Need] = []
    for last, piece in enumerate(pieces):
        until_ms, due_by_then = piece.end_ms + precision_ms, upto[last + 1]
        late = overdue if piece.end_ms - starts_ms[0] >= CATCH_UP_MS else 0
        worst, first = (due_by_then + late) / (until_ms - starts_ms[0]), 0
        for start in range(1, last + 1):
            rate = (due_by_then - upto[start]) / (until_ms - starts_ms[start])
            if rate > worst:
                worst, first = rate, start
        if worst > 0:
            records = due_by_then - upto[first] + (late if first == 0 else 0)
            relays, start_ms = worst * 1_000 / per_second, starts_ms[first]
            needs.append(Need(NeedKind.DUE, relays, round(records), start_ms, piece.known_to_ms, piece.start_ms))
    return (*needs, *((need_of_overdue(overdue, per_second, now_ms),) if overdue else ()))


def most_of_due(crests: Iterable[Crest], overdue: int, per_second: float) -> float:
    """Return a number of relays that none of `needs_of_due` exceeds, at a small part of their price: no interval has
    more records per millisecond than the densest piece in it.
    """
    densest = max(
        (
            smooth / (end_ms - start_ms) + sudden / min(end_ms - start_ms, SUDDEN_MS)
            for start_ms, end_ms, smooth, sudden in crests
        ),
        default=0.0,
    )
    return (max(0.0, densest) + max(0, overdue) / CATCH_UP_MS) * 1_000 / per_second


def need_of_overdue(overdue: int, per_second: float, now_ms: int) -> Need:
    """Count the relays for records that are late already."""
    relays = overdue * 1_000 / (per_second * CATCH_UP_MS)
    return Need(NeedKind.OVERDUE, relays, overdue, now_ms, now_ms + CATCH_UP_MS, now_ms)


def need_of_ingest(arriving_per_second: float, lag: int, now_ms: int) -> Need:
    """Count the relays for records that arrive, and for those not taken in yet."""
    relays = (arriving_per_second + lag * 1_000 / READ_UP_MS) / TAKES_IN_PER_SECOND
    records = lag + round(arriving_per_second * READ_UP_MS / 1_000)
    return Need(NeedKind.INGEST, relays, records, now_ms, now_ms + READ_UP_MS, now_ms)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The most lateness ahead: with the relays that there are, with those decided, and with all that may be."""

    held_ms: int
    decided_ms: int
    best_ms: int


def lateness_ms(crests: Sequence[Crest], overdue: int, per_second: float) -> int:
    """Forecast the most that a record in the look-ahead will be late, at this rate of delivery.

    What stands out of a span counts as due in one instant, and what is even leaves as it comes.
    """
    backlog = most = float(overdue)
    for start_ms, end_ms, smooth, sudden in crests:
        backlog += sudden
        most = max(most, backlog)
        backlog = max(0.0, backlog + smooth - per_second * (end_ms - start_ms) / 1_000)
        most = max(most, backlog)
    return round(most * 1_000 / per_second) if per_second > 0 else LONGEST_MS if most else 0


LONGEST_MS = 86_400_000
"""Stands for ever: no relay, and work to do."""
