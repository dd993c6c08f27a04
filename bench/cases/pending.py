"""A backlog that grows to millions: at each size, how fast records go in and come out, and how soon after a start."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from bench.bed import Bed
from bench.cases.backlog import HORIZON_MS, rate_of_overdue
from bench.cases.contenders import relay_of
from bench.cases.throughput import TIMEOUT_SECONDS, Rate
from bench.clock import now_ms, sleep_until
from bench.errors import Unmeasurable
from bench.figures.tally import require_each_once, require_none_early, tally
from bench.preload import Preload
from bench.processes.measured import by_record
from bench.reading import read_target
from bench.records import PARTITIONS, spread
from bench.selection import Way
from bench.watch import Sample, Watch
from delaytopic_api.values import BackendType

NEAREST_MS, FARTHEST_MS = 3_600_000, 30 * 86_400_000
"""The due times of what only waits."""
PORTION = 250_000
"""Records that become readable together while the backlog is filled."""
FILL_SECONDS = 600.0
RIPE_SPREAD_MS = 8_000
LEAD_MS = 15_000


@dataclass(frozen=True, slots=True)
class Level:
    """The figures with so many records pending."""

    into: Rate
    out: Rate
    first_delivery_ms: float
    """The time from the start of the process."""
    peak_memory_bytes: int
    held_bytes: float
    """The bytes that the backlog holds for each record that waits."""


class Growing:
    """One DelayTopic whose backlog only grows. A record in each partition, due at once, ends whatever is sent.

    It makes the relay commit at the end as it would under load.
    """

    def __init__(self, bed: Bed, name: str, way: Way, backend: BackendType, ripe: int) -> None:
        self._bed = bed
        self._name = name
        self._ripe = ripe
        self._source, self._target = f"{name}.source", f"{name}.target"
        self._relay = relay_of(bed, name, (self._source, self._target), way, by_record(), backend)
        self._due_ms: array[int] = array("q")
        self._ends = [0] * PARTITIONS
        """The offset behind the last marker of each source partition."""
        self._waiting = 0
        bed.create(self._source, self._target, f"{self._target}.dlq")
        self._buckets = bed.create_buckets(self._relay.config)
        self._empty_bytes = bed.backlog_bytes(self._buckets)
        self._preload = Preload(bed.bootstrap_servers, self._source)

    def level(self, pending: int) -> Level:
        """Fill the backlog up to so many records, and measure with some more that become due in the next seconds.

        Raises `Unmeasurable` if these were due before they were taken in.
        """
        try:
            self._relay.start()
            self._relay.wait_until_it_delivers()
            self._fill(pending - self._waiting)
            first, first_due_ms = len(self._due_ms), int(now_ms()) + LEAD_MS
            held = (self._bed.backlog_bytes(self._buckets) - self._empty_bytes) / self._waiting
            into = self._take_in(first_due_ms)
            self._relay.stop()
            sleep_until(first_due_ms + RIPE_SPREAD_MS / 2)
            return self._let_out(range(first, first + self._ripe), into, held)
        finally:
            self._relay.kill()

    def close(self) -> None:
        """Delete the topics, so that their pages make room."""
        self._bed.delete(self._source, self._target, *self._buckets)

    def _fill(self, records: int) -> None:
        """Send what is due in an hour or later; the relay takes it in meanwhile."""
        now = int(now_ms())
        first = len(self._due_ms)
        self._due_ms.extend(spread(records, now + NEAREST_MS, now + FARTHEST_MS, seed=first + 1))
        for portion in range(first, first + records, PORTION):
            self._produce(range(portion, min(portion + PORTION, first + records)))
            self._show()
        self._waiting += records
        self._produce_at_once()
        self._show()
        self._wait_until_taken_in(FILL_SECONDS)

    def _take_in(self, first_due_ms: int) -> Rate:
        """Records that become readable in one instant, until all are in the backlog and committed."""
        first = len(self._due_ms)
        self._due_ms.extend(spread(self._ripe, first_due_ms, first_due_ms + RIPE_SPREAD_MS, seed=first + 1))
        self._produce(range(first, first + self._ripe))
        self._produce_at_once()
        start_ms = self._show()
        end_ms = self._wait_until_taken_in(TIMEOUT_SECONDS)
        if end_ms + HORIZON_MS > min(self._due_ms[first : first + self._ripe]):
            raise Unmeasurable(f"{self._name}: {self._ripe} records became due while they were taken in")
        return Rate(self._ripe, (end_ms - start_ms) / 1_000)

    def _let_out(self, ripe: range, into: Rate, held_bytes: float) -> Level:
        """Start the relay again, when half of them are due, and wait until all have left."""
        watch, started_ms = self._watch(), now_ms()
        self._relay.start()

        def all_left(_: Sample) -> bool:
            status = self._relay.status()
            return status is not None and status.delivered_total >= len(ripe)

        watch.until(all_left, self._name, timeout_s=TIMEOUT_SECONDS, healthy=self._relay.check)
        memory = self._relay.peak_memory_bytes()
        self._relay.stop()
        delivered = read_target(self._bed.bootstrap_servers, self._target)
        require_each_once(self._name, tally(delivered.sequence, len(self._due_ms), ripe))
        due_ms = [self._due_ms[sequence] for sequence in delivered.sequence]
        require_none_early(self._name, due_ms, delivered.appended_ms)
        out = rate_of_overdue(self._name, delivered, ripe, self._due_ms)
        first_ms = min(delivered.appended_ms[place] for place in delivered.places_of(ripe))
        return Level(into, out, first_ms - started_ms, memory, held_bytes)

    def _produce(self, sequences: range) -> None:
        self._preload.fill(len(sequences), self._due_ms, sequences.start)
        for partition in range(PARTITIONS):
            self._ends[partition] += len(sequences[(partition - sequences.start) % PARTITIONS :: PARTITIONS])

    def _produce_at_once(self) -> None:
        first, now = len(self._due_ms), int(now_ms())
        self._due_ms.extend([now] * PARTITIONS)
        self._preload.add(range(first, first + PARTITIONS), now)
        self._ends = [end + 1 for end in self._ends]

    def _show(self) -> float:
        shown_ms = self._preload.show()
        self._ends = [end + 1 for end in self._ends]
        return shown_ms

    def _wait_until_taken_in(self, timeout_s: float) -> float:
        """Return when all but the last markers were committed."""

        def taken_in(sample: Sample) -> bool:
            return all(offset >= end - 1 for offset, end in zip(sample.committed, self._ends, strict=True))

        watch = self._watch()
        return watch.until(taken_in, self._name, timeout_s=timeout_s, healthy=self._relay.check).at_ms

    def _watch(self) -> Watch:
        return Watch(self._bed.bootstrap_servers, source=self._source, target=self._target, group=self._relay.group)
