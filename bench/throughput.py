"""Throughput of relays that read a source to its end: null relay, fixed delay, delays inside the horizon."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

from bench.bed import Bed
from bench.clock import now_ms, sleep_until
from bench.errors import Unmeasurable
from bench.preload import Preload
from bench.processes import BenchProcess, NullRelay, Relay, relay_config
from bench.reading import Delivered, read_target
from bench.records import PARTITIONS, spread
from bench.tally import require_each_once, require_none_early, tally
from bench.watch import Sample, Watch, seen_at_ms
from delaytopic_api.choices import Guarantee

TIMEOUT_SECONDS = 90.0
PRECISION = "100ms"
"""Ticks of 50 ms, with ExactlyOnce."""
FIXED_DELAY = "1ms"
HEAD_START_MS = 500
SPREAD_MS = 2_000
SHORTEST_SPREAD_MS = 500
BUSY_RATIO = 0.75
KEPT_BUSY_MS = 100
"""A relay that is done so much later than the last due time was busy all along."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One run's result."""

    records: int
    seconds: float
    limited: bool = False
    """Whether due times, and not the relay, set the rate: then it is a lower bound."""

    @property
    def per_second(self) -> float:
        """Records per second."""
        return self.records / self.seconds


def all_there(records: int, *, transactional: bool) -> Callable[[Sample], bool]:
    """Whether a sample shows everything delivered.

    The ends of a plain target count records. Those of a transactional one count markers, too; there the committed
    offsets, which move in the same transactions, tell.
    """
    ends = [len(range(partition, records, PARTITIONS)) for partition in range(PARTITIONS)]

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


@dataclass(frozen=True, slots=True)
class Agenda:
    """When the records of a case become readable and due, both counted from the start line."""

    fill_seconds: float
    """How long filling the source may take before."""
    spread_ms: int
    """From the first due time to the last; the first is `HEAD_START_MS` after the start."""


def spread_that_keeps_busy(records: int, null_rate: float) -> int:
    """Two seconds, or less where a relay at `BUSY_RATIO` of the null relay would be done before that."""
    return max(SHORTEST_SPREAD_MS, min(SPREAD_MS, int(records / (null_rate * BUSY_RATIO) * 1_000) - HEAD_START_MS))


def run_within_horizon(bed: Bed, name: str, records: int, agenda: Agenda, guarantee: Guarantee) -> Rate:
    """A waiting relay to which all records become readable in one instant, from that instant until the last is there.

    The first records are due half a second after the start, so that the calendar fills first, and there are more than
    the relay can deliver while they become due, so that it never waits. Raises `Unmeasurable` if the source was not
    full in time.
    """
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target, f"{target}.dlq")
    relay = relay_of(bed, name, source, target, guarantee, None)
    transactional = guarantee is Guarantee.EXACTLY_ONCE
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=relay.group)
    relay.start()
    try:
        start_ms, due_ms = _start_line(bed, relay, source, records, agenda)
        done = all_there(records, transactional=transactional)
        watch.until(done, name, timeout_s=TIMEOUT_SECONDS, healthy=relay.check)
        relay.stop()
    finally:
        relay.kill()
    delivered = read_target(bed.bootstrap_servers, target, receipts=False)
    bed.delete(source, target)
    require_each_once(name, tally(delivered.sequence, records))
    require_none_early(name, [due_ms[sequence] for sequence in delivered.sequence], delivered.appended_ms)
    seconds = (end_ms(delivered, watch.samples, transactional=transactional) - start_ms) / 1_000
    return Rate(records, seconds, limited=max(delivered.appended_ms) - max(due_ms) < KEPT_BUSY_MS)


def _start_line(bed: Bed, relay: Relay, source: str, records: int, agenda: Agenda) -> tuple[float, array[int]]:
    """Fill the source unseen, then show it; returns when that was, and the due times, which count from then.

    Raises `Unmeasurable` if filling took longer than planned.
    """
    relay.wait_until_it_delivers()
    planned_ms = round(now_ms() + agenda.fill_seconds * 1_000)
    first_ms = planned_ms + HEAD_START_MS
    due_ms = spread(records, first_ms, first_ms + agenda.spread_ms, seed=records)
    preload = Preload(bed.bootstrap_servers, source)
    preload.fill(records, due_ms)
    sleep_until(planned_ms)
    start_ms = preload.show()
    if start_ms - planned_ms > HEAD_START_MS / 2:
        raise Unmeasurable(f"{relay.name}: the source was full {start_ms - planned_ms:.0f} ms late")
    return start_ms, due_ms


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
