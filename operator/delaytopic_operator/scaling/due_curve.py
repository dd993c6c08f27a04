"""When records fall due, on one grid of time: merged from the relays' histograms, and how steep it may really be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_SPANS = 64
"""Of a grid: intervals grow with its square."""
SUDDEN_MS = 5_000
"""In how short a time what stands out of a wide bin is taken to fall due; the bin itself does not say. In simulation, a
shorter time costs many more relays on a load that only swells, and a longer one makes short bursts later."""


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
    """When the oldest histogram in it was counted."""

    @property
    def records(self) -> int:
        """Due in all of it."""
        return round(sum(span.records for span in self.spans))

    def crests(self, now_ms: int) -> list[Crest]:
        """From now on; what has become due since counts as delivered, or appears as overdue in the next status."""
        ahead = [clipped for span in self.spans if (clipped := _after(span, now_ms)) is not None]
        return [_crest(ahead, place) for place in range(len(ahead))]


def pieces(crests: Iterable[Crest]) -> list[Piece]:
    """The curve for planning: what stands out of a wide span is due in its first five seconds."""
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


def from_then_on(crests: Iterable[Crest], then_ms: int) -> list[Crest]:
    """What may be due after a later moment: of a span that it divides, all that stands out."""
    return [
        crest
        if crest.start_ms >= then_ms
        else Crest(then_ms, crest.end_ms, crest.smooth * (1 - _share_before(crest, then_ms)), crest.sudden)
        for crest in crests
        if crest.end_ms > then_ms
    ]


def backlog_at(crests: Iterable[Crest], overdue: int, per_second: float, then_ms: int) -> int:
    """What will be overdue at a later moment, with so much delivered per second until then."""
    backlog = float(overdue)
    for crest in crests:
        share = _share_before(crest, then_ms)
        sudden = crest.sudden if crest.end_ms <= then_ms else 0.0
        width_ms = (crest.end_ms - crest.start_ms) * share
        backlog = max(0.0, backlog + sudden + crest.smooth * share - per_second * width_ms / 1_000)
    return round(backlog)


def _share_before(crest: Crest, then_ms: int) -> float:
    return min(1.0, max(0.0, (then_ms - crest.start_ms) / (crest.end_ms - crest.start_ms)))


def merged(counts: Mapping[tuple[int, int], float], edges_ms: Sequence[int], now_ms: int, as_of_ms: int) -> DueCurve:
    """Records by (start, end), each spread evenly over its own span, on the grid from now to these edges."""
    edges = [now_ms, *_thinned([edge for edge in sorted(set(edges_ms)) if edge > now_ms])]
    bins = [0.0] * (len(edges) - 1)
    for (start_ms, end_ms), records in counts.items():
        _spread(bins, edges, Span(start_ms, end_ms, records))
    spans = zip(edges, edges[1:], bins, strict=False)
    return DueCurve(tuple(Span(start, end, records) for start, end, records in spans), as_of_ms)


def _thinned(edges: list[int]) -> list[int]:
    step = -(-len(edges) // MOST_SPANS) or 1
    # The last edge always stays: the curve must not get shorter.
    return edges[::-1][::step][::-1]


def _spread(bins: list[float], edges: list[int], span: Span) -> None:
    width_ms = max(1, span.end_ms - span.start_ms)
    for place in range(len(bins)):
        common_ms = min(edges[place + 1], span.end_ms) - max(edges[place], span.start_ms)
        if common_ms > 0:
            bins[place] += span.records * common_ms / width_ms


def _after(span: Span, now_ms: int) -> Span | None:
    if span.end_ms <= now_ms:
        return None
    if span.start_ms >= now_ms:
        return span
    share = (span.end_ms - now_ms) / (span.end_ms - span.start_ms)
    return Span(now_ms, span.end_ms, span.records * share)


def _crest(spans: Sequence[Span], place: int) -> Crest:
    span = spans[place]
    beside = max(_beside(spans, place), default=_density(span))
    smooth = min(span.records, beside * (span.end_ms - span.start_ms))
    return Crest(span.start_ms, span.end_ms, smooth, span.records - smooth)


def _beside(spans: Sequence[Span], place: int) -> Iterator[float]:
    """Records per millisecond next to a span; behind the last one, as if what grows went on growing."""
    if place > 0:
        yield _density(spans[place - 1])
    if place + 1 < len(spans):
        yield _density(spans[place + 1])
    elif place > 1:
        before, last = spans[place - 2], spans[place - 1]
        slope = (_density(last) - _density(before)) / (_middle_ms(last) - _middle_ms(before))
        yield _density(last) + slope * (_middle_ms(spans[place]) - _middle_ms(last))


def _middle_ms(span: Span) -> float:
    return (span.start_ms + span.end_ms) / 2


def _density(span: Span) -> float:
    return span.records / (span.end_ms - span.start_ms)
