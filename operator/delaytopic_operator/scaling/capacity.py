"""Measured: the rate of one relay, the time that it takes to start, and the growth of the source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from delaytopic_operator.scaling.pace import Pace
from delaytopic_operator.scaling.signals import FleetSignals, Reading, RelayFacts

MOST_SAMPLES = 60
ENOUGH_SAMPLES = 3


class RateSample(NamedTuple):
    """A number of records that one relay handled at this rate."""

    at_ms: int
    per_second: int
    records: int


LEAST_PER_SECOND, MOST_PER_SECOND = 100, 200_000
ASSUMED_PER_SECOND = 5_000
"""A relay on a quarter of a core delivers more than that; to assume less costs relays, to assume more lateness."""


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """The latest samples, and what was last made of them."""

    samples: tuple[RateSample, ...] = ()
    remembered: int | None = None

    def with_sample(self, sample: RateSample | None, now_ms: int, window_ms: int) -> RateEstimate:
        """Take in a sample, forget old ones, and remember the estimate that there is now."""
        samples = (*self.samples, *((sample,) if sample is not None else ()))
        kept = tuple(each for each in samples if now_ms - each.at_ms <= window_ms)[-MOST_SAMPLES:]
        if len(kept) < ENOUGH_SAMPLES:
            return replace(self, samples=kept)
        return RateEstimate(kept, weighted_median(kept))

    @property
    def per_second(self) -> int:
        """Records per second and relay: measured, remembered, or assumed; never outside the bounds."""
        value = ASSUMED_PER_SECOND if self.remembered is None else self.remembered
        return min(MOST_PER_SECOND, max(LEAST_PER_SECOND, value))

    @property
    def measured(self) -> bool:
        """True if it says more than what is assumed."""
        return self.remembered is not None


def weighted_median(samples: Sequence[RateSample]) -> int:
    """Return the rate of the typical record: a second with few records says little."""
    ordered = sorted(samples, key=lambda each: each.per_second)
    half = sum(each.records for each in ordered) / 2
    for each in ordered:
        half -= each.records
        if half <= 0:
            return each.per_second
    return ordered[-1].per_second


def taken_together(samples: Iterable[RateSample], at_ms: int) -> RateSample | None:
    """Make one sample of several relays in one poll."""
    every = list(samples)
    if not every:
        return None
    return RateSample(at_ms, weighted_median(every), sum(each.records for each in every))


SPAN_MS = 60_000
MOST_POINTS = 8
CLOSEST_MS = 5_000


class EndOffset(NamedTuple):
    """The sum of a source's end offsets at one moment."""

    at_ms: int
    end: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The last minute's points, and since when the end has stood still."""

    points: tuple[EndOffset, ...] = ()
    still_since_ms: int | None = None

    def observed(self, source_end: Reading[int] | None, pace: Pace) -> Arrivals:
        """Take in an answer of Kafka; a source that got shorter was made anew."""
        if source_end is None:
            return self
        point = EndOffset(source_end.as_of_ms, source_end.value)
        last = self.points[-1] if self.points else None
        if last is None or point.end < last.end or point.at_ms - last.at_ms > pace.longest_gap_ms:
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
        """Return the records that arrive per second; None with a single answer."""
        if len(self.points) < 2:
            return None
        first, last = self.points[0], self.points[-1]
        return (last.end - first.end) * 1_000 / (last.at_ms - first.at_ms)

    def silent_ms(self, now_ms: int) -> int | None:
        """Return for how long nothing has arrived."""
        return None if self.still_since_ms is None else max(0, now_ms - self.still_since_ms)


START_MS = 45_000
LAST_STARTS = 20
TRUSTED_STARTS = 5
"""The number of starts below which the start value is the least: an underestimate makes every burst late."""
SHORTEST_MS, LONGEST_MS = 5_000, 900_000
"""A pod that takes longer waited for something else: a node, or a partition to own."""
MOST_PODS = 64


@dataclass(frozen=True, slots=True)
class LeadTime:
    """The last starts, and the pods that were seen before they delivered."""

    starts_ms: tuple[int, ...] = ()
    waiting: tuple[str, ...] = ()

    def p95_ms(self) -> int:
        """Return the time that 95 of 100 starts took at most."""
        ordered = sorted(self.starts_ms)
        p95_ms = ordered[math.ceil(0.95 * len(ordered)) - 1] if ordered else START_MS
        return p95_ms if len(ordered) >= TRUSTED_STARTS else max(START_MS, p95_ms)

    def observed(self, signals: FleetSignals) -> LeadTime:
        """Take in which pods have begun to deliver.

        Only a pod that was seen before it delivered counts: nobody knows when one that runs already began to.
        """
        if signals.pods is None:
            return self
        pods = dict(signals.pods)
        at_work = {pod: as_of_ms for pod in pods if (as_of_ms := _at_work_ms(pod, signals)) is not None}
        begun = [pod for pod in self.waiting if pod in at_work]
        took_ms = (max(SHORTEST_MS, at_work[pod] - pods[pod]) for pod in begun)
        starts_ms = (*self.starts_ms, *(each for each in took_ms if each <= LONGEST_MS))[-LAST_STARTS:]
        return LeadTime(starts_ms, tuple(sorted(pod for pod in pods if pod not in at_work))[:MOST_PODS])


def _at_work_ms(pod: str, signals: FleetSignals) -> int | None:
    for relay in signals.relays:
        if relay.delivering and (relay.relay == pod or relay.relay.startswith(f"{pod}-")):
            return relay.as_of_ms
    return None


MOST_RELAYS = 64
FEWEST_RECORDS = 100
"""Records delivered in a poll from which on the relay's rate counts: it says by itself when it could measure one."""


class RelayTally(NamedTuple):
    """One relay at the last poll."""

    relay: str
    started_at_ms: int
    as_of_ms: int
    delivered: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """The measured rate of one relay."""

    delivery: RateEstimate = field(default_factory=RateEstimate)
    tallies: tuple[RelayTally, ...] = ()

    @property
    def per_second(self) -> int:
        """Delivered per second and relay, while whole batches were due."""
        return self.delivery.per_second

    def observed(self, relays: Sequence[RelayFacts], now_ms: int, pace: Pace) -> Capacity:
        """Take in the work of these relays since the last poll; a poll without news changes nothing."""
        tallies = tuple(_tally(relay) for relay in relays[:MOST_RELAYS])
        if tallies == self.tallies:
            return self
        sample = taken_together(self._samples(relays, pace.longest_gap_ms), now_ms)
        return Capacity(self.delivery.with_sample(sample, now_ms, pace.window_ms), tallies)

    def _samples(self, relays: Sequence[RelayFacts], longest_gap_ms: int) -> Iterator[RateSample]:
        before = {tally.relay: tally for tally in self.tallies}
        for relay in relays:
            tally = before.get(relay.relay)
            if tally is None or tally.started_at_ms != relay.started_at_ms:
                continue
            records = relay.delivered - tally.delivered
            if not relay.busy_rate or records < FEWEST_RECORDS:
                continue
            if 0 < relay.as_of_ms - tally.as_of_ms <= longest_gap_ms:
                yield RateSample(relay.as_of_ms, round(relay.busy_rate), records)


def _tally(relay: RelayFacts) -> RelayTally:
    return RelayTally(relay.relay, relay.started_at_ms, relay.as_of_ms, relay.delivered)
