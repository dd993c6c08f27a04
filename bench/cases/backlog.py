"""A backlog, spread over ten minutes: how fast it goes in, and after a while how fast it comes out."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass

from bench.bed import Bed
from bench.cases.contenders import relay_of
from bench.cases.throughput import TIMEOUT_SECONDS, Rate, source_ends
from bench.clock import now_ms
from bench.errors import Unmeasurable
from bench.figures.tally import require_each_once, require_none_early, tally
from bench.preload import Preload
from bench.processes.measured import by_record
from bench.reading import Delivered, read_target
from bench.records import PARTITIONS, spread
from bench.selection import Way
from bench.watch import Sample, Watch, seen_at_ms
from delaytopic_api.values import BackendType, Guarantee

SPREAD_MS = 600_000
LEAD_MS = 25_000
"""The time from filling the source to the first due time: enough to fill it, and to take all of it in."""
HORIZON_MS = 11_000
"""The span that stays in memory: ten seconds, and the slice that has begun."""
SETTLED_MS = 500
RIPE_MS = 40_000
FEWEST = 2_000
"""Overdue records that it takes to say something about a rate."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Records that went in or out, and the relay's peak memory."""

    rate: Rate
    peak_memory_bytes: int


class Backlog:
    """One DelayTopic's backlog: `fill`, then at leisure `drain`."""

    def __init__(self, bed: Bed, name: str, records: int, way: Way, backend: BackendType) -> None:
        self._bed = bed
        self._name = name
        self._records = records
        self._transactional = way.guarantee is Guarantee.EXACTLY_ONCE
        self._source, self._target = f"{name}.source", f"{name}.target"
        self._relay = relay_of(bed, name, (self._source, self._target), way, by_record(), backend)
        self._due_ms: array[int] = array("q")

    def fill(self) -> Moved:
        """All records become readable in one instant to a waiting relay; until all are in the backlog and committed.

        One more record in each partition, due at once, makes the relay commit at the end as it would under load.
        Raises `Unmeasurable` if this took so long that records came within the horizon.
        """
        self._bed.create(self._source, self._target, f"{self._target}.dlq")
        self._bed.create_buckets(self._relay.config)
        watch = self._watch()
        self._relay.start()
        try:
            start_ms = self._start_line()
            end = watch.until(self._taken_in, self._name, timeout_s=TIMEOUT_SECONDS, healthy=self._relay.check)
            memory = self._relay.peak_memory_bytes()
            self._relay.stop()
        finally:
            self._relay.kill()
        if end.at_ms + HORIZON_MS > min(self._due_ms[: self._records]):
            raise Unmeasurable(f"{self._name}: too many --records for this machine: they became due while being read")
        return Moved(Rate(self._records, (end.at_ms - start_ms) / 1_000), memory)

    def _start_line(self) -> float:
        filling_ms = int(now_ms())
        first_ms = filling_ms + LEAD_MS
        self._due_ms = spread(self._records, first_ms, first_ms + SPREAD_MS, seed=self._records)
        self._due_ms.extend([filling_ms] * PARTITIONS)
        preload = Preload(self._bed.bootstrap_servers, self._source)
        preload.fill(self._records, self._due_ms)
        preload.add(range(self._records, self._records + PARTITIONS), filling_ms)
        self._relay.wait_until_it_delivers()
        return preload.show()

    def _taken_in(self, sample: Sample) -> bool:
        ends = source_ends(self._records + PARTITIONS)
        return all(offset >= end for offset, end in zip(sample.committed, ends, strict=True))

    @property
    def ripe_at_ms(self) -> float:
        """Return the time at which enough is due to measure how fast it comes out."""
        return min(self._due_ms[: self._records]) + RIPE_MS

    def drain(self) -> Moved:
        """Start the relay again: while it was down, a part of the backlog became due, and leaves as fast as it can."""
        watch = self._watch()
        self._relay.start()
        try:
            settled_ms = self._wait_until_caught_up(watch)
            memory = self._relay.peak_memory_bytes()
            self._relay.stop()
        finally:
            self._relay.kill()
        watch.sample()
        delivered = read_target(self._bed.bootstrap_servers, self._target)
        self._bed.delete(self._source, self._target)
        self._check(delivered, settled_ms)
        backlog = range(self._records)
        rate = rate_of_overdue(
            self._name, delivered, backlog, self._due_ms, watch.samples if self._transactional else None
        )
        return Moved(rate, memory)

    def _wait_until_caught_up(self, watch: Watch) -> int:
        """Wait until the relay says that it has delivered what was due a moment before; returns that moment."""
        due_ms = sorted(self._due_ms[: self._records])
        settled_ms = 0

        def caught_up(sample: Sample) -> bool:
            nonlocal settled_ms
            status = self._relay.status()
            if status is None:
                return False
            settled_ms = status.as_of_ms - SETTLED_MS
            return status.delivered_total >= max(1, bisect_right(due_ms, settled_ms))

        watch.until(caught_up, self._name, timeout_s=TIMEOUT_SECONDS, healthy=self._relay.check)
        return settled_ms

    def _check(self, delivered: Delivered, settled_ms: int) -> None:
        due_ms = self._due_ms
        wanted = (sequence for sequence, due in enumerate(due_ms) if due <= settled_ms)
        require_each_once(self._name, tally(delivered.sequence, len(due_ms), wanted))
        require_none_early(self._name, [due_ms[sequence] for sequence in delivered.sequence], delivered.appended_ms)

    def _watch(self) -> Watch:
        return Watch(self._bed.bootstrap_servers, source=self._source, target=self._target, group=self._relay.group)


def rate_of_overdue(
    name: str, delivered: Delivered, backlog: range, due_ms: array[int], samples: list[Sample] | None = None
) -> Rate:
    """Return the rate of the records of a backlog that were due when the first one left, without the first tenth.

    The last is there when it was appended or, with samples, when a `read_committed` reader could see it.
    Some records are on their way before the producer has made its connections: they would count, but not the time.
    """
    appended_ms = delivered.appended_ms
    places = delivered.places_of(backlog)
    first_ms = min(appended_ms[place] for place in places)
    overdue = [place for place in places if due_ms[delivered.sequence[place]] <= first_ms]
    if len(overdue) < FEWEST:
        raise Unmeasurable(f"{name}: only {len(overdue)} records were due; give it more --records")
    overdue.sort(key=appended_ms.__getitem__)
    settled = len(overdue) // 10
    last_ms = seen_at_ms(samples, delivered.last_offsets(overdue)) if samples is not None else appended_ms[overdue[-1]]
    return Rate(len(overdue) - settled, (last_ms - appended_ms[overdue[settled]]) / 1_000)
