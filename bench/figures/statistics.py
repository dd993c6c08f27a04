"""Order statistics of measurements. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle; raises ValueError for none."""
    if not values:
        raise ValueError("the median of no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value of an ordered sequence with `percent` of the values at or below it; ValueError for none."""
    if not ordered:
        raise ValueError("a percentile of no values")
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


@dataclass(frozen=True, slots=True)
class Lateness:
    """Lateness of a set of records, in milliseconds."""

    records: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


def lateness_of(values_ms: Iterable[float]) -> Lateness:
    """The figures of the report; raises ValueError for none."""
    ordered = sorted(values_ms)
    p50_ms, p99_ms, p999_ms = (percentile(ordered, percent) for percent in (50, 99, 99.9))
    return Lateness(len(ordered), p50_ms, p99_ms, p999_ms, ordered[-1])


def in_and_out_rate(in_rate: float, out_rate: float) -> float:
    """Records per second of a relay that does both in turn: the time in and the time out of a record add up."""
    return 1 / (1 / in_rate + 1 / out_rate)
