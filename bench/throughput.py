"""Throughput of relays that read a source to its end and need not wait: null relay and fixed delay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.bed import Bed
from bench.clock import now_ms
from bench.preload import Preload
from bench.processes import BenchProcess, NullRelay, Relay, relay_config
from bench.reading import Delivered, read_target
from bench.records import PARTITIONS
from bench.tally import require_each_once, tally
from bench.watch import Sample, Watch, seen_at_ms
from delaytopic_api.choices import Guarantee

TIMEOUT_SECONDS = 90.0
PRECISION = "100ms"
"""Ticks of 50 ms, with ExactlyOnce."""
FIXED_DELAY = "1ms"


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


def all_there(records: int, *, transactional: bool) -> Callable[[Sample], bool]:
    """Whether a sample shows everything delivered.

    The ends of a plain target count records. Those of a transactional one count markers, too; there the committed
    offsets, which move in the same transactions, tell.
    """
    ends = source_ends(records)

    def done(sample: Sample) -> bool:
        if transactional:
            return all(offset >= end for offset, end in zip(sample.committed, ends, strict=True))
        return sum(sample.target_ends) >= records

    return done


def end_ms(delivered: Delivered, samples: list[Sample], *, transactional: bool) -> float:
    """When the last record was there: appended or, in a transaction, seen by a `read_committed` reader."""
    if transactional:
        return seen_at_ms(samples, delivered.last_offsets())
    return max(delivered.appended_ms)


def due_now(bed: Bed, topic: str, records: int) -> float:
    """Fill a source whose records need not wait; returns the rate of filling, records per second."""
    bed.create(topic)
    preload = Preload(bed.bootstrap_servers, topic)
    started_ms = now_ms()
    preload.fill(records, None)
    return records / (preload.show() - started_ms) * 1_000


def run_null(bed: Bed, name: str, source: str, records: int, *, transactional: bool) -> Rate:
    """The null relay on a source that is full when it starts; from its first record on the target to its last."""
    target = f"{name}.target"
    bed.create(target)
    relay = NullRelay(
        name,
        bed.directory,
        bootstrap_servers=bed.bootstrap_servers,
        source=source,
        target=target,
        transactional=transactional,
    )
    return _read_through(bed, relay, relay.group, source, target, records, transactional=transactional)


def run_fixed_delay(bed: Bed, name: str, source: str, records: int, guarantee: Guarantee) -> Rate:
    """A relay with a fixed delay on the same source, which is due when it starts; measured alike."""
    target = f"{name}.target"
    bed.create(target, f"{target}.dlq")
    relay = relay_of(bed, name, source, target, guarantee, FIXED_DELAY)
    transactional = guarantee is Guarantee.EXACTLY_ONCE
    return _read_through(bed, relay, relay.group, source, target, records, transactional=transactional)


def _read_through(
    bed: Bed, relay: BenchProcess, group: str, source: str, target: str, records: int, *, transactional: bool
) -> Rate:
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=group)
    samples = _watch_to_the_end(relay, watch, records, transactional=transactional)
    delivered = read_target(bed.bootstrap_servers, target, receipts=False)
    bed.delete(target)
    require_each_once(relay.name, tally(delivered.sequence, records))
    seconds = (end_ms(delivered, samples, transactional=transactional) - min(delivered.appended_ms)) / 1_000
    return Rate(records, seconds)


def _watch_to_the_end(relay: BenchProcess, watch: Watch, records: int, *, transactional: bool) -> list[Sample]:
    done = all_there(records, transactional=transactional)
    relay.start()
    try:
        watch.until(done, relay.name, timeout_s=TIMEOUT_SECONDS, healthy=relay.check)
        relay.stop()
    finally:
        relay.kill()
    return watch.samples


def relay_of(bed: Bed, name: str, source: str, target: str, guarantee: Guarantee, delay: str | None) -> Relay:
    """A relay between two topics, not yet started."""
    config = relay_config(
        name,
        bootstrap_servers=bed.bootstrap_servers,
        redis_url=bed.redis_url,
        source=source,
        target=target,
        guarantee=guarantee,
        precision=PRECISION,
        delay=delay,
    )
    return Relay(name, bed.directory, config)
