"""Throughput of relays that read a source to its end and need not wait: null relay, fixed delay, what is past due."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.bed import Bed
from bench.cases.contenders import Contender, relay_of
from bench.clock import now_ms
from bench.dialects import NATIVE, Speech
from bench.figures.tally import require_each_once, tally
from bench.preload import Preload
from bench.processes.measured import BenchProcess, NullRelay, Relay, fixed, wait_until_all_deliver
from bench.reading import Delivered, read_target
from bench.records import PARTITIONS
from bench.selection import Way
from bench.watch import Sample, Watch, seen_at_ms
from delaytopic_api.values import Guarantee

TIMEOUT_SECONDS = 90.0
FIXED_DELAY = "1ms"
PAST_MS = 1_000
AHEAD = 2
"""Offsets of a source partition that are taken before the start: a record, and the marker of its transaction."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One run's result."""

    records: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Records per second."""
        return self.records / self.seconds


def source_ends(records: int) -> list[int]:
    """Return the offset behind the last record of each partition of a source with this many."""
    return [len(range(partition, records, PARTITIONS)) for partition in range(PARTITIONS)]


def all_there(records: int, ends: Sequence[int], *, transactional: bool) -> Callable[[Sample], bool]:
    """Return whether a sample shows so many records delivered, which end the source partitions at these offsets.

    The ends of a plain target count records. Those of a transactional one count markers, too; there the committed
    offsets, which move in the same transactions, tell.
    """

    def done(sample: Sample) -> bool:
        if transactional:
            return all(offset >= end for offset, end in zip(sample.committed, ends, strict=True))
        return sum(sample.target_ends) >= records

    return done


def end_ms(delivered: Delivered, samples: list[Sample], *, transactional: bool) -> float:
    """Return when the last record was there: appended or, in a transaction, seen by a `read_committed` reader."""
    if transactional:
        return seen_at_ms(samples, delivered.last_offsets())
    return max(delivered.appended_ms)


def measure_filling(bed: Bed, topic: str, records: int) -> float:
    """Measure how fast a source fills, in records per second."""
    bed.create(topic)
    preload = Preload(bed.bootstrap_servers, topic)
    started_ms = now_ms()
    preload.fill(records, None)
    rate = records / (now_ms() - started_ms) * 1_000
    preload.show()
    bed.delete(topic)
    return rate


def run_null(bed: Bed, name: str, records: int, *, transactional: bool) -> Rate:
    """The null relay."""
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target)
    relay = NullRelay(
        name,
        bed.directory,
        bootstrap_servers=bed.bootstrap_servers,
        source=source,
        target=target,
        transactional=transactional,
    )
    return _read_through(bed, [relay], (source, target), records, transactional=transactional)


def run_fixed_delay(bed: Bed, name: str, records: int, way: Way) -> Rate:
    """A relay with a fixed delay that is over for all records when they become readable."""
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target, f"{target}.dlq")
    relay = relay_of(bed, name, (source, target), way, fixed(FIXED_DELAY))
    transactional = way.guarantee is Guarantee.EXACTLY_ONCE
    return _read_through(bed, [relay], (source, target), records, transactional=transactional)


def run_past_due(bed: Bed, name: str, records: int, contender: Contender, processes: int = 1) -> Rate:
    """Records whose time is over when they become readable; one process or several deliver them."""
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target, f"{target}.dlq")
    run = [contender.make(bed, name, source, target, number) for number in range(1, processes + 1)]
    speech = contender.speech
    due_ms = array("q", [speech.due_ms(int(now_ms()) - PAST_MS - speech.granularity_ms)]) * (records + PARTITIONS)
    return _read_through(bed, run, (source, target), records, due_ms, speech, transactional=contender.transactional)


def _read_through(
    bed: Bed,
    processes: Sequence[BenchProcess],
    topics: tuple[str, str],
    records: int,
    due_ms: array[int] | None = None,
    speech: Speech = NATIVE,
    *,
    transactional: bool,
) -> Rate:
    """All records become readable in one instant to a relay that is running; from then until the last is there.

    One record in each partition goes ahead, so that all connections are made and everything has been done once.
    """
    (source, target), name = topics, processes[0].name
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=processes[0].group)
    preload = Preload(bed.bootstrap_servers, source, speech, target)
    ahead = range(records, records + PARTITIONS)
    preload.add(ahead, due_ms[0] if due_ms is not None else None)

    def check() -> None:
        for process in processes:
            process.check()

    try:
        for process in processes:
            process.start()
        if len(relays := [each for each in processes if isinstance(each, Relay)]) > 1:
            wait_until_all_deliver(relays)
        preload.show()
        preload.fill(records, due_ms)
        warm = all_there(PARTITIONS, [1] * PARTITIONS, transactional=transactional)
        watch.until(warm, f"{name}: the first records", timeout_s=TIMEOUT_SECONDS, healthy=check)
        start_ms = preload.show()
        ends = [end + AHEAD for end in source_ends(records)]
        done = all_there(records + PARTITIONS, ends, transactional=transactional)
        watch.until(done, name, timeout_s=TIMEOUT_SECONDS, healthy=check)
        for process in processes:
            process.stop()
    finally:
        for process in processes:
            process.kill()
    delivered = read_target(bed.bootstrap_servers, target)
    bed.delete(source, target)
    require_each_once(name, tally(delivered.sequence, records + PARTITIONS))
    return Rate(records, (end_ms(delivered, watch.samples, transactional=transactional) - start_ms) / 1_000)
