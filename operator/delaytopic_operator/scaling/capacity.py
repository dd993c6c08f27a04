"""What one relay delivers and takes in per second, measured from what relays did between two polls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from delaytopic_operator.scaling.rates import DELIVERY, INGEST, RateEstimate, RateSample, taken_together
from delaytopic_operator.scaling.signals import RelayFacts

MOST_RELAYS = 64
LONGEST_GAP_MS = 300_000
BUSY_SHARE = 0.3
"""A relay that was busy for less may have been slowed down by small batches: no measure of what it can do."""
MANY_RECORDS = 10_000
"""Unless so many left: then batches were large."""
FEWEST_RECORDS = 100
BEHIND = 1_000
"""With less to take in, a relay may have waited for records."""


class RelayTally(NamedTuple):
    """One relay at the last poll."""

    relay: str
    started_at_ms: int
    as_of_ms: int
    delivered: int
    shards: tuple[int, ...]
    position: int
    behind: int


class Throughput(NamedTuple):
    """What the whole fleet delivered per second between two polls."""

    at_ms: int
    per_second: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """Of one relay; `fleet` is what all did together."""

    delivery: RateEstimate = field(default_factory=RateEstimate)
    ingest: RateEstimate = field(default_factory=RateEstimate)
    tallies: tuple[RelayTally, ...] = ()
    fleet: Throughput | None = None

    @property
    def per_second(self) -> int:
        """Delivered per second and relay, while busy."""
        return self.delivery.per_second(DELIVERY)

    @property
    def ingest_per_second(self) -> int:
        """Taken in per second and relay, while behind."""
        return self.ingest.per_second(INGEST)

    def observed(self, relays: Sequence[RelayFacts], now_ms: int) -> Capacity:
        """What these relays did since the last poll, taken in; a poll without news changes nothing."""
        tallies = tuple(_tally(relay) for relay in relays[:MOST_RELAYS])
        if tallies == self.tallies:
            return self
        steps = list(self._steps(relays))
        delivery = taken_together((each for step in steps for each in step.delivery()), now_ms)
        ingest = taken_together((each for step in steps for each in step.ingest()), now_ms)
        rate = round(sum(step.delivered * 1_000 / step.took_ms for step in steps))
        return Capacity(
            self.delivery.with_sample(delivery, now_ms),
            self.ingest.with_sample(ingest, now_ms),
            tallies,
            Throughput(now_ms, rate) if steps else None,
        )

    def _steps(self, relays: Sequence[RelayFacts]) -> Iterator[_Step]:
        before = {tally.relay: tally for tally in self.tallies}
        for relay in relays:
            tally = before.get(relay.relay)
            if tally is None or tally.started_at_ms != relay.started_at_ms:
                continue
            if 0 < relay.as_of_ms - tally.as_of_ms <= LONGEST_GAP_MS and relay.delivered >= tally.delivered:
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
        # A fifth of what it took in is still there: it was never out of work.
        if self.after.behind >= max(BEHIND, taken_in // 5):
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
