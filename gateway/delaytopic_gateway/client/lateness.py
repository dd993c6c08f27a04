"""Lateness in figures and as a text histogram. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_EDGES_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


@dataclass(frozen=True, slots=True)
class LatenessSummary:
    """Order statistics of a set of latenesses, in milliseconds; all None when the set is empty."""

    count: int
    p50_ms: int | None
    p99_ms: int | None
    max_ms: int | None


def summarize(lateness_ms: Sequence[int]) -> LatenessSummary:
    """Return the figures of the summary table. The p-th percentile is the least value with p percent at or below it."""
    ordered = sorted(lateness_ms)
    if not ordered:
        return LatenessSummary(0, None, None, None)
    return LatenessSummary(len(ordered), _percentile(ordered, 50), _percentile(ordered, 99), ordered[-1])


def histogram(lateness_ms: Sequence[int], *, width: int = 40) -> list[str]:
    """Return a line per bin of 1-2-5 steps, from the first to the last bin in use; the longest bar is `width` wide."""
    counts = [0] * (len(_EDGES_MS) + 1)
    for late_ms in lateness_ms:
        counts[_bin(late_ms)] += 1
    used = [place for place, count in enumerate(counts) if count]
    if not used:
        return []
    top = max(counts)
    return [
        f"{_label(place):>10}  {'█' * math.ceil(width * counts[place] / top):<{width}}  {counts[place]:>8,}"
        for place in range(used[0], used[-1] + 1)
    ]


def milliseconds_text(value_ms: int | None) -> str:
    """Return a short text: `7 ms`, `1.25 s`, `3 min 20 s`, or a dash for None."""
    if value_ms is None:
        return "-"
    if abs(value_ms) < 1_000:
        return f"{value_ms} ms"
    if abs(value_ms) < 60_000:
        return f"{value_ms / 1_000:.2f} s"
    minutes, seconds = divmod(round(value_ms / 1_000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def _percentile(ordered: Sequence[int], percent: int) -> int:
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def _bin(late_ms: int) -> int:
    return next((place for place, edge in enumerate(_EDGES_MS) if late_ms < edge), len(_EDGES_MS))


def _label(place: int) -> str:
    if place == len(_EDGES_MS):
        return f">= {milliseconds_text(_EDGES_MS[-1]).replace('.00', '')}"
    return f"< {milliseconds_text(_EDGES_MS[place]).replace('.00', '')}"
