"""Lateness at the target, under steady load and for a burst that is due in one instant."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from bench.bed import Bed
from bench.clock import wait_for
from bench.figures.statistics import Lateness, lateness_of
from bench.figures.tally import require_each_once, require_none_early, tally
from bench.processes.arrival_reader import read_arrivals
from bench.processes.measured import BenchProcess, Relay, by_record, relay_config
from bench.processes.plan import Phase, Plan
from bench.reading import Delivered, read_target
from delaytopic_api.values import Guarantee

PRECISION = {Guarantee.AT_LEAST_ONCE: "10ms", Guarantee.EXACTLY_ONCE: "50ms"}
PLAN = Plan((Phase(2_000, 4), Phase(10_000, 5)), burst=50_000)
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class LatenessRun:
    """Lateness of one relay in each phase of the plan, and the time the burst took from its due time."""

    phases: tuple[tuple[Phase, Lateness], ...]
    burst_ms: float
    peak_memory_bytes: int


def run_lateness(bed: Bed, name: str, guarantee: Guarantee, plan: Plan = PLAN) -> LatenessRun:
    """Run the plan through a relay and see when its records arrive.

    AtLeastOnce: the broker's LogAppendTime on the target. ExactlyOnce: the wall clock of a `read_committed` reader in
    a process of its own, as nothing on the topic says when a transaction became visible.
    """
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target, f"{target}.dlq")
    relay = _relay(bed, name, source, target, guarantee)
    reader = _reader(bed, name, target, plan) if guarantee is Guarantee.EXACTLY_ONCE else None
    processes = [relay, *([reader] if reader is not None else [])]
    try:
        for process in processes:
            process.start()
        relay.wait_until_it_delivers()
        _send(bed, name, source, plan)
        _wait_until_done(relay, reader, plan)
        memory = relay.peak_memory_bytes()
        relay.stop()
    finally:
        for process in processes:
            process.kill()
    delivered = read_target(bed.bootstrap_servers, target, receipts=True)
    bed.delete(source, target)
    require_each_once(name, tally(delivered.sequence, plan.records))
    due_ms = dict(zip(delivered.sequence, delivered.due_ms, strict=True))
    arrived_ms = _arrivals(bed, name, delivered, guarantee)
    require_none_early(name, [due_ms[sequence] for sequence in arrived_ms], list(arrived_ms.values()))
    return _figures(plan, due_ms, arrived_ms, memory)


def _figures(plan: Plan, due_ms: Mapping[int, int], arrived_ms: Mapping[int, int], memory: int) -> LatenessRun:
    *steady, burst = plan.ranges()
    phases = tuple(
        (phase, lateness_of(arrived_ms[sequence] - due_ms[sequence] for sequence in sequences))
        for phase, sequences in zip(plan.phases, steady, strict=True)
    )
    return LatenessRun(phases, max(arrived_ms[sequence] - due_ms[sequence] for sequence in burst), memory)


def _arrivals(bed: Bed, name: str, delivered: Delivered, guarantee: Guarantee) -> dict[int, int]:
    columns: tuple[array[int], array[int]] = (delivered.sequence, delivered.appended_ms)
    if guarantee is Guarantee.EXACTLY_ONCE:
        columns = read_arrivals(bed.directory / f"{name}.arrivals")
    return dict(zip(*columns, strict=True))


def _relay(bed: Bed, name: str, source: str, target: str, guarantee: Guarantee) -> Relay:
    config = relay_config(
        name,
        bootstrap_servers=bed.bootstrap_servers,
        backend=bed.backend(name),
        source=source,
        target=target,
        guarantee=guarantee,
        precision=PRECISION[guarantee],
        schedule=by_record(),
    )
    return Relay(name, bed.directory, config)


def _reader(bed: Bed, name: str, target: str, plan: Plan) -> BenchProcess:
    command = ["bench.processes.arrival_reader", "--bootstrap-servers", bed.bootstrap_servers, "--topic", target]
    command += ["--records", str(plan.records), "--output", str(bed.directory / f"{name}.arrivals")]
    return BenchProcess(f"{name}.reader", command, bed.directory)


def _send(bed: Bed, name: str, source: str, plan: Plan) -> None:
    command = ["bench.processes.steady_producer", "--bootstrap-servers", bed.bootstrap_servers, "--topic", source]
    producer = BenchProcess(f"{name}.producer", [*command, "--plan", str(plan)], bed.directory)
    producer.start()
    try:
        producer.wait(timeout_s=TIMEOUT_SECONDS)
    finally:
        producer.kill()


def _wait_until_done(relay: Relay, reader: BenchProcess | None, plan: Plan) -> None:
    if reader is not None:
        reader.wait(timeout_s=TIMEOUT_SECONDS)

    def done() -> bool:
        relay.check()
        status = relay.status()
        return status is not None and status.delivered_total >= plan.records

    wait_for(done, f"{relay.name}: {plan.records} records delivered", timeout_s=TIMEOUT_SECONDS)
