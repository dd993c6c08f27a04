"""An even flow of records through a relay, and what may happen to it meanwhile: when was which due, and there?"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.bed import Bed
from bench.cases.contenders import Contender
from bench.cases.throughput import all_there
from bench.clock import now_ms
from bench.errors import Stalled
from bench.figures.tally import Tally, require_each_once, require_none_early, tally
from bench.preload import Preload
from bench.processes.arrival_reader import read_arrivals
from bench.processes.measured import BenchProcess, module
from bench.processes.plan import Plan
from bench.reading import Delivered, read_target
from bench.records import PARTITIONS
from bench.watch import Watch

TIMEOUT_SECONDS = 120.0
START_SECONDS = 30.0
STILL_SECONDS = 2.5
"""The silence after which nothing more is to be expected: the design as described looks once a second."""
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Flow:
    """Times by sequence number, in epoch milliseconds; of a record that came twice those of the first time."""

    due_ms: Mapping[int, int]
    appended_ms: Mapping[int, int]
    """The broker's LogAppendTime."""
    arrived_ms: Mapping[int, int]
    """The times of arrival: with transactions, when a `read_committed` reader had it, in a process of its own; else
    when it was appended."""
    twice: int


def run_flow(
    bed: Bed,
    name: str,
    contender: Contender,
    plan: Plan,
    meanwhile: Callable[[BenchProcess], None] | None = None,
) -> Flow:
    """Run the plan through a relay and see when its records arrive.

    A record in each partition goes ahead. `meanwhile` is called when the plan begins; after it, records may come twice
    unless the guarantee forbids it.
    """
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target, f"{target}.dlq")
    relay = contender.make(bed, name, source, target)
    watch = Watch(bed.bootstrap_servers, source=source, target=target, group=relay.group)
    reader = _reader(bed, name, target, plan.records + PARTITIONS) if contender.transactional else None
    producer = _producer(bed, name, (source, target), contender, plan)
    try:
        relay.start()
        if reader is not None:
            reader.start()
        ahead_ms = _warm_up(bed, (source, target), contender, plan, watch, relay)
        producer.start()
        if meanwhile is not None:
            meanwhile(relay)
        producer.wait(timeout_s=TIMEOUT_SECONDS)
        if reader is not None:
            reader.wait(timeout_s=TIMEOUT_SECONDS)
        _wait_until_still(watch, relay, plan.records + PARTITIONS)
        relay.stop()
    finally:
        for process in (producer, relay, *([reader] if reader is not None else [])):
            process.kill()
    delivered = read_target(bed.bootstrap_servers, target)
    bed.delete(source, target)
    found = tally(delivered.sequence, plan.records + PARTITIONS)
    if meanwhile is not None and not contender.transactional:
        require_each_once(name, Tally(found.lost, [], found.unknown))
    else:
        require_each_once(name, found)
    due_ms = array("q", _due_file(bed, name).read_bytes())
    due_ms.extend([ahead_ms] * PARTITIONS)
    return _flow(bed, name, delivered, found, dict(enumerate(due_ms)), read=reader is not None)


def _flow(bed: Bed, name: str, delivered: Delivered, found: Tally, due_ms: Mapping[int, int], *, read: bool) -> Flow:
    # In reverse, so that the first of two arrivals stays.
    appended_ms = dict(zip(reversed(delivered.sequence), reversed(delivered.appended_ms), strict=True))
    arrived_ms = appended_ms
    if read:
        sequences, times_ms = read_arrivals(bed.directory / f"{name}.arrivals")
        arrived_ms = dict(zip(reversed(sequences), reversed(times_ms), strict=True))
    require_none_early(name, [due_ms[sequence] for sequence in arrived_ms], list(arrived_ms.values()))
    return Flow(due_ms, appended_ms, arrived_ms, len(found.twice))


def _warm_up(
    bed: Bed, topics: tuple[str, str], contender: Contender, plan: Plan, watch: Watch, relay: BenchProcess
) -> int:
    """Let one record of each partition through, and return when they were due."""
    source, target = topics
    preload = Preload(bed.bootstrap_servers, source, contender.speech, target)
    due_ms = contender.speech.due_ms(int(now_ms()))
    preload.add(range(plan.records, plan.records + PARTITIONS), due_ms)
    preload.show()
    warm = all_there(PARTITIONS, [1] * PARTITIONS, transactional=contender.transactional)
    watch.until(warm, f"{relay.name}: the first records", timeout_s=START_SECONDS, healthy=relay.check)
    return due_ms


def _wait_until_still(watch: Watch, relay: BenchProcess, records: int) -> None:
    """Wait until so many records are there, and no more come: some may come twice, and others be late."""
    deadline_s = time.monotonic() + TIMEOUT_SECONDS
    ends, since_s = watch.sample().target_ends, time.monotonic()
    while sum(ends) < records or time.monotonic() - since_s < STILL_SECONDS:
        relay.check()
        if time.monotonic() > deadline_s:
            raise Stalled(f"{relay.name}: {sum(ends)} of {records} records were there")
        time.sleep(LOOK_SECONDS)
        if (seen := watch.sample().target_ends) != ends:
            ends, since_s = seen, time.monotonic()


def _reader(bed: Bed, name: str, target: str, records: int) -> BenchProcess:
    command = module("bench.processes.arrival_reader", "--bootstrap-servers", bed.bootstrap_servers, "--topic", target)
    command += ["--records", str(records), "--output", str(bed.directory / f"{name}.arrivals")]
    return BenchProcess(f"{name}.reader", command, bed.directory)


def _producer(bed: Bed, name: str, topics: tuple[str, str], contender: Contender, plan: Plan) -> BenchProcess:
    source, target = topics
    command = module("bench.processes.steady_producer", "--bootstrap-servers", bed.bootstrap_servers, "--topic", source)
    command += ["--plan", str(plan), "--output", str(_due_file(bed, name))]
    command += ["--dialect", contender.speech.dialect, "--target", target]
    return BenchProcess(f"{name}.producer", command, bed.directory)


def _due_file(bed: Bed, name: str) -> Path:
    return bed.directory / f"{name}.due"
