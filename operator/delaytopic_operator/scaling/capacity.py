"""Measured: the rates of one relay, the time that it takes to start, and the growth of the source."""

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


class Bounds(NamedTuple):
    """The limits of an estimate, and its value before anything was measured."""

    floor: int
    start: int
    ceiling: int


DELIVERY = Bounds(floor=100, start=5_000, ceiling=200_000)
"""A relay on a quarter of a core delivers more than the start; starting low costs relays, starting high lateness."""
INGEST = Bounds(floor=500, start=10_000, ceiling=500_000)


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

    def per_second(self, bounds: Bounds) -> int:
        """Return records per second and relay: measured, remembered, or the start value; never outside the bounds."""
        value = bounds.start if self.remembered is None else self.remembered
        return min(bounds.ceiling, max(bounds.floor, value))

    @property
    def measured(self) -> bool:
        """True if it says more than the start value."""
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
BUSY_SHARE = 0.3
"""The busy share of a poll below which the relay's rate was measured before it, and is no news."""
MANY_RECORDS = 10_000
"""Records delivered in a poll from which on its rate counts whatever the share."""
FEWEST_RECORDS = 100
BEHIND = 1_000
"""The number of records to take in below which a relay may have waited for them."""


class RelayTally(NamedTuple):
    """One relay at the last poll."""

    relay: str
    started_at_ms: int
    as_of_ms: int
    delivered: int
    shards: tuple[int, ...]
    position: int
    behind: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """The measured rates of one relay."""

    delivery: RateEstimate = field(default_factory=RateEstimate)
    ingest: RateEstimate = field(default_factory=RateEstimate)
    tallies: tuple[RelayTally, ...] = ()

    @property
    def per_second(self) -> int:
        """Delivered per second and relay, while whole batches were due."""
        return self.delivery.per_second(DELIVERY)

    @property
    def ingest_per_second(self) -> int:
        """Taken in per second and relay, while behind."""
        return self.ingest.per_second(INGEST)

    def observed(self, relays: Sequence[RelayFacts], now_ms: int, pace: Pace) -> Capacity:
        """Take in the work of these relays since the last poll; a poll without news changes nothing."""
        tallies = tuple(_tally(relay) for relay in relays[:MOST_RELAYS])
        if tallies == self.tallies:
            return self
        steps = list(self._steps(relays, pace.longest_gap_ms))
        delivery = taken_together((each for step in steps for each in step.delivery()), now_ms)
        ingest = taken_together((each for step in steps for each in step.ingest()), now_ms)
        return Capacity(
            self.delivery.with_sample(delivery, now_ms, pace.window_ms),
            self.ingest.with_sample(ingest, now_ms, pace.window_ms),
            tallies,
        )

    def _steps(self, relays: Sequence[RelayFacts], longest_gap_ms: int) -> Iterator[_Step]:
        before = {tally.relay: tally for tally in self.tallies}
        for relay in relays:
            tally = before.get(relay.relay)
            if tally is None or tally.started_at_ms != relay.started_at_ms:
                continue
            if 0 < relay.as_of_ms - tally.as_of_ms <= longest_gap_ms and relay.delivered >= tally.delivered:
                yield _Step(tally, relay)


class _Step(NamedTuple):
    before: RelayTally
    after: RelayFacts

    @property
    def took_ms(self) -> int:
        return self.after.as_of_ms - self.before.as_of_ms

    @property
    def delivered(self) -> int:
        return self.after.delivered - self.before.delivered

    def delivery(self) -> Iterator[RateSample]:
        busy_rate, records = self.after.busy_rate, self.delivered
        if not busy_rate or records < FEWEST_RECORDS:
            return
        if records >= MANY_RECORDS or records * 1_000 / self.took_ms >= BUSY_SHARE * busy_rate:
            yield RateSample(self.after.as_of_ms, round(busy_rate), records)

    def ingest(self) -> Iterator[RateSample]:
        taken_in = self.after.position - self.before.position
        if self.after.shards != self.before.shards or taken_in < FEWEST_RECORDS or self.before.behind < BEHIND:
            return
        # As much is still there as it took in: it was never out of work. With less it may take each record as it comes,
        # a little later, and what it took in tells how many came.
        if self.after.behind >= max(BEHIND, taken_in):
            yield RateSample(self.after.as_of_ms, round(taken_in * 1_000 / self.took_ms), taken_in)


def _tally(relay: RelayFacts) -> RelayTally:
    return RelayTally(
        relay.relay,
        relay.started_at_ms,
        relay.as_of_ms,
        relay.delivered,
        relay.shards,
        relay.position,
        relay.behind,
    )
