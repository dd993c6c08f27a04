"""How much one relay can do: a robust estimate of a rate from samples, which outlives a pause and a restart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

WINDOW_MS = 900_000
MOST_SAMPLES = 60
ENOUGH_SAMPLES = 3


class RateSample(NamedTuple):
    """So many records were handled at this rate, by one relay."""

    at_ms: int
    per_second: int
    records: int


class Bounds(NamedTuple):
    """What an estimate may be, and what it is before anything was measured."""

    floor: int
    start: int
    ceiling: int


DELIVERY = Bounds(floor=100, start=5_000, ceiling=200_000)
"""A relay on a quarter of a core delivers more than the start; starting low costs relays, starting high lateness."""
INGEST = Bounds(floor=500, start=10_000, ceiling=500_000)


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """Samples of the last quarter of an hour, and what was last made of them."""

    samples: tuple[RateSample, ...] = ()
    remembered: int | None = None

    def with_sample(self, sample: RateSample | None, now_ms: int) -> RateEstimate:
        """Take in a sample, forget old ones, and remember the estimate that there is now."""
        samples = (*self.samples, *((sample,) if sample is not None else ()))
        kept = tuple(each for each in samples if now_ms - each.at_ms <= WINDOW_MS)[-MOST_SAMPLES:]
        if len(kept) < ENOUGH_SAMPLES:
            return replace(self, samples=kept)
        return RateEstimate(kept, weighted_median(kept))

    def per_second(self, bounds: Bounds) -> int:
        """Records per second and relay: measured, remembered, or the start value; never outside the bounds."""
        value = bounds.start if self.remembered is None else self.remembered
        return min(bounds.ceiling, max(bounds.floor, value))

    @property
    def measured(self) -> bool:
        """Whether it says more than the start value."""
        return self.remembered is not None


def weighted_median(samples: Sequence[RateSample]) -> int:
    """The rate at which the typical record was handled: a second with few records says little."""
    ordered = sorted(samples, key=lambda each: each.per_second)
    half = sum(each.records for each in ordered) / 2
    for each in ordered:
        half -= each.records
        if half <= 0:
            return each.per_second
    return ordered[-1].per_second


def taken_together(samples: Iterable[RateSample], at_ms: int) -> RateSample | None:
    """One sample of several relays in one poll."""
    every = list(samples)
    if not every:
        return None
    return RateSample(at_ms, weighted_median(every), sum(each.records for each in every))
