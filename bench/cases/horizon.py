"""Throughput with delays inside the horizon: every record goes into the calendar, and out of it when it is due."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from bench.bed import Bed
from bench.cases.contenders import config_of
from bench.cases.throughput import TIMEOUT_SECONDS, Rate, all_there, end_ms, source_ends
from bench.clock import now_ms, sleep_until
from bench.dialects import NATIVE, Speech
from bench.errors import Unmeasurable
from bench.figures.tally import require_each_once, require_none_early, tally
from bench.preload import Preload
from bench.processes.measured import Relay, by_record
from bench.reading import Delivered, read_target
from bench.records import PARTITIONS, spread
from bench.selection import Way
from bench.watch import Watch
from delaytopic_api.relay import RelayLimits
from delaytopic_api.values import Guarantee, Quantity

DUE_PER_MS = 500
"""Faster than any relay delivers, so that from the first due time on it has work until it is done."""
LATEST_MS = 9_000
"""The horizon is ten seconds."""
LATE_MS = 100
ALL_IN_MEMORY = RelayLimits(memory=Quantity("1Gi"))
"""The limits with which all stays in memory: with eight headers and an id a record takes 3 KiB, of 256 MiB by default.
"""


@dataclass(frozen=True, slots=True)
class Agenda:
    """The plan of due times, made before the source is filled."""

    fill_ms: float
    """The longest time that filling the source may take."""
    intake_ms: float
    """The time from the start line to the first due time: until then the relay only takes in."""

    def doubled(self) -> Agenda:
        """Return an agenda twice as long, for another attempt."""
        return Agenda(self.fill_ms * 2, self.intake_ms * 2)


@dataclass(frozen=True, slots=True)
class _Start:
    at_ms: float
    due_ms: array[int]


def run_within_horizon(bed: Bed, name: str, records: int, agenda: Agenda, way: Way, speech: Speech = NATIVE) -> Rate:
    """All records become readable to a waiting relay in one instant, and due when it has taken them in.

    The time is that of taking in, from the start line until the last records of the partitions, which are due at once,
    are on the target, plus that of delivering, from the first due time until all are there. The time in between, when
    the relay only waits, does not count. Raises `Unmeasurable` if the plan was too tight.
    """
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target, f"{target}.dlq", f"{target}.history")
    config = config_of(bed, name, (source, target), way.guarantee, by_record(speech.dialect))
    config = config.model_copy(update={"limits": ALL_IN_MEMORY})
    relay = Relay(f"{name}-1", bed.directory, config, in_c=way.in_c)
    transactional = way.guarantee is Guarantee.EXACTLY_ONCE
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=relay.group)
    relay.start()
    try:
        start = _start_line(bed, relay, (source, target), records, agenda, speech)
        done = all_there(records + PARTITIONS, source_ends(records + PARTITIONS), transactional=transactional)
        watch.until(done, name, timeout_s=TIMEOUT_SECONDS, healthy=relay.check)
        relay.stop()
    finally:
        relay.kill()
    delivered = read_target(bed.bootstrap_servers, target)
    bed.delete(source, target, f"{target}.history")
    require_each_once(name, tally(delivered.sequence, records + PARTITIONS))
    require_none_early(name, [start.due_ms[sequence] for sequence in delivered.sequence], delivered.appended_ms)
    out_ms = end_ms(delivered, watch.samples, transactional=transactional) - min(start.due_ms[:records])
    return Rate(records, (_intake_ms(name, delivered, start, records) + out_ms) / 1_000)


def _start_line(
    bed: Bed, relay: Relay, topics: tuple[str, str], records: int, agenda: Agenda, speech: Speech
) -> _Start:
    """Fill the source unseen, then show it."""
    relay.wait_until_it_delivers()
    filling_ms = int(now_ms())
    planned_ms = round(filling_ms + agenda.fill_ms)
    first_ms = round(planned_ms + agenda.intake_ms)
    planned = spread(records, first_ms, first_ms + records // DUE_PER_MS, seed=records)
    due_ms = array("q", map(speech.due_ms, planned))
    past_ms = speech.due_ms(filling_ms) - speech.granularity_ms
    due_ms.extend([past_ms] * PARTITIONS)
    source, target = topics
    preload = Preload(bed.bootstrap_servers, source, speech, target)
    preload.fill(records, due_ms)
    preload.add(range(records, records + PARTITIONS), past_ms)
    sleep_until(planned_ms)
    start_ms = preload.show()
    if start_ms - planned_ms > LATE_MS:
        raise Unmeasurable(f"{relay.name}: the source was full {start_ms - planned_ms:.0f} ms later than planned")
    return _Start(start_ms, due_ms)


def _intake_ms(name: str, delivered: Delivered, start: _Start, records: int) -> float:
    pairs = zip(delivered.sequence, delivered.appended_ms, strict=True)
    taken_in_ms = max(appended_ms for sequence, appended_ms in pairs if sequence >= records)
    late_ms = taken_in_ms - min(start.due_ms[:records])
    if late_ms > 0:
        raise Unmeasurable(f"{name}: the last record was taken in {late_ms:.0f} ms after the first was due")
    return taken_in_ms - start.at_ms


def plan(records: int, fill_rate: float, null_rate: float) -> Agenda:
    """Twice the time that filling should take, and taking in at half of the null relay's rate, with room to spare."""
    fill_ms = 500 + 1_500 * records / fill_rate
    intake_ms = 500 + 2_500 * records / null_rate
    return Agenda(fill_ms, min(intake_ms, LATEST_MS - records / DUE_PER_MS))
