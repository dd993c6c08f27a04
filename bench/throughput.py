"""Throughput of relays that read a source to its end and need not wait: null relay and fixed delay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.bed import Bed
from bench.clock import now_ms
from bench.figures.tally import require_each_once, tally
from bench.preload import Preload
from bench.processes.measured import BenchProcess, NullRelay, Relay, fixed, relay_config
from bench.reading import Delivered, read_target
from bench.records import PARTITIONS
from bench.watch import Sample, Watch, seen_at_ms
from delaytopic_api.relay import RelaySchedule
from delaytopic_api.values import BackendType, Guarantee

TIMEOUT_SECONDS = 90.0
PRECISION = "100ms"
"""Ticks of 50 ms, with ExactlyOnce."""
FIXED_DELAY = "1ms"
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
    """Behind the last record of each partition of a source with this many."""
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
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=relay.group)
    return _read_through(bed, relay, watch, records, transactional=transactional)


def run_fixed_delay(bed: Bed, name: str, records: int, guarantee: Guarantee) -> Rate:
    """A relay with a fixed delay that is over for all records when they become readable."""
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target, f"{target}.dlq")
    relay = relay_of(bed, name, source, target, guarantee, fixed(FIXED_DELAY))
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=relay.group)
    return _read_through(bed, relay, watch, records, transactional=guarantee is Guarantee.EXACTLY_ONCE)


def _read_through(bed: Bed, relay: BenchProcess, watch: Watch, records: int, *, transactional: bool) -> Rate:
    """All records become readable in one instant to a relay that is running; from then until the last is there.

    One record in each partition goes ahead, so that all connections are made and everything has been done once.
    """
    preload = Preload(bed.bootstrap_servers, watch.source)
    preload.add(range(records, records + PARTITIONS), None)
    preload.show()
    relay.start()
    try:
        preload.fill(records, None)
        warm = all_there(PARTITIONS, [1] * PARTITIONS, transactional=transactional)
        watch.until(warm, f"{relay.name}: the first records", timeout_s=TIMEOUT_SECONDS, healthy=relay.check)
        start_ms = preload.show()
        ends = [end + AHEAD for end in source_ends(records)]
        done = all_there(records + PARTITIONS, ends, transactional=transactional)
        watch.until(done, relay.name, timeout_s=TIMEOUT_SECONDS, healthy=relay.check)
        relay.stop()
    finally:
        relay.kill()
    delivered = read_target(bed.bootstrap_servers, watch.target, receipts=False)
    bed.delete(watch.source, watch.target)
    require_each_once(relay.name, tally(delivered.sequence, records + PARTITIONS))
    return Rate(records, (end_ms(delivered, watch.samples, transactional=transactional) - start_ms) / 1_000)


def relay_of(
    bed: Bed,
    name: str,
    source: str,
    target: str,
    guarantee: Guarantee,
    schedule: RelaySchedule,
    backend: BackendType = BackendType.REDIS_ZSET,
) -> Relay:
    """A relay between two topics, not yet started."""
    config = relay_config(
        name,
        bootstrap_servers=bed.bootstrap_servers,
        backend=bed.backend(name, backend),
        source=source,
        target=target,
        guarantee=guarantee,
        precision=PRECISION,
        schedule=schedule,
    )
    return Relay(name, bed.directory, config)
