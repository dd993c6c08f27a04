"""What is pending, overdue and coming: counted from the shards' own indexes, never from a scan of the shelf."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from delaytopic_relay.backlog.protocol import Shard

STEPS_MS = (1_000, 2_000, 5_000)
"""Bin edges are these times powers of ten."""


class Census(NamedTuple):
    """One shard's backlog; `histogram` counts what is due up to each bin edge and after the one before."""

    pending: int
    overdue: int
    oldest_overdue_ms: int | None
    next_due_ms: int | None
    histogram: tuple[int, ...]


def bin_edges_ms(look_ahead_ms: int) -> tuple[int, ...]:
    """Ends of the histogram's bins, relative to now: 1, 2, 5, 10, 20, 50 ... seconds, and the look-ahead itself."""
    edges: list[int] = []
    scale = 1
    while scale * STEPS_MS[0] < look_ahead_ms:
        edges += [step * scale for step in STEPS_MS if step * scale < look_ahead_ms]
        scale *= 10
    return (*edges, look_ahead_ms)


def census_of(shard: Shard, now_ms: int, look_ahead_ms: int) -> Census:
    """Count one shard; what lies in a wide slice is spread evenly over it."""
    edges = bin_edges_ms(look_ahead_ms)
    bins = [0.0] * (len(edges) + 1)
    overdue = 0.0
    for start_ms, width_ms, records in shard.spans():
        late = records * _share(start_ms, width_ms, now_ms)
        overdue += late
        _spread(bins, edges, max(0, start_ms - now_ms), start_ms + width_ms - now_ms, records - late)
    next_due_ms = shard.next_due_ms()
    oldest = next_due_ms if next_due_ms is not None and next_due_ms <= now_ms else None
    return Census(shard.pending, round(overdue), oldest, next_due_ms, tuple(round(count) for count in bins[:-1]))


def _share(start_ms: int, width_ms: int, until_ms: int) -> float:
    """How much of a span lies before a time."""
    return min(1.0, max(0.0, (until_ms - start_ms) / width_ms))


def _spread(bins: list[float], edges: tuple[int, ...], start_ms: int, end_ms: int, records: float) -> None:
    """Add records due evenly between two times relative to now."""
    if records <= 0:
        return
    width_ms = end_ms - start_ms
    first, last = bisect_left(edges, start_ms), bisect_left(edges, end_ms - 1)
    if first == last:
        bins[first] += records
        return
    done = 0.0
    for number in range(first, last + 1):
        share = _share(start_ms, width_ms, edges[number]) if number < len(edges) else 1.0
        bins[number] += records * (share - done)
        done = share


def total(censuses: Iterable[Census]) -> Census:
    """Several shards taken together."""
    pending = overdue = 0
    oldest: list[int] = []
    next_due: list[int] = []
    histogram: list[int] = []
    for census in censuses:
        pending += census.pending
        overdue += census.overdue
        oldest += [census.oldest_overdue_ms] if census.oldest_overdue_ms is not None else []
        next_due += [census.next_due_ms] if census.next_due_ms is not None else []
        histogram = (
            [a + b for a, b in zip(histogram, census.histogram, strict=True)] if histogram else [*census.histogram]
        )
    return Census(pending, overdue, min(oldest, default=None), min(next_due, default=None), tuple(histogram))
