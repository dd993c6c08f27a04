"""Records that recur, beside plain ones that are due at the same times: how late they are, and what each costs."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Final, NamedTuple

from bench.bed import Bed
from bench.cases.contenders import PROMPT, relay_of
from bench.clock import now_ms
from bench.dialects import NATIVE, Speech, Written
from bench.errors import PromiseBroken
from bench.figures.statistics import Lateness, lateness_of
from bench.figures.tally import require_none_early
from bench.preload import Preload
from bench.processes.arrival_reader import read_arrivals
from bench.processes.measured import BenchProcess, by_record, module
from bench.reading import read_target
from bench.records import headers_of, key_of, value_of
from bench.selection import Recurring, Way
from delaytopic_api.records import DELIVER_COUNT, DELIVER_EVERY, DELIVER_FROM, DELIVER_ID
from delaytopic_api.values import Dialect

LEAD_MS: Final = 20_000
"""The time until the first is due: all are produced and read by then."""
PATIENCE_S: Final = 120.0


class Occurrences(NamedTuple):
    """Lateness at a `read_committed` reader, and the processor time of the relay, for each delivery."""

    lateness: Lateness
    processor_us: float


def recurring_speech(load: Recurring) -> Speech:
    """Return the way to write records that recur; the due time is that of the first occurrence."""

    def write(sequence: int, due_ms: int | None, target: str) -> Written:
        rule = [(DELIVER_EVERY, b"%d" % load.interval_ms), (DELIVER_COUNT, b"%d" % load.rounds)]
        key = key_of(sequence)
        return (
            key,
            value_of(sequence),
            [*headers_of(None), (DELIVER_ID, key), (DELIVER_FROM, b"%d" % (due_ms or 0)), *rule],
        )

    return Speech(Dialect.NATIVE, write)


def slots(load: Recurring, first_ms: int) -> array[int]:
    """Return when each delivery is due: those of the first round, in the order of the records, then of the next."""
    times_ms = (first_ms + each * load.interval_ms // load.records for each in range(load.deliveries))
    return array("q", times_ms)


def numbered(load: Recurring, sequences: array[int], *, recurs: bool) -> list[int]:
    """Return which delivery of `slots` each arrival is: the next occurrence of its record.

    Raises `PromiseBroken` unless each is there once.
    """
    seen: Counter[int] = Counter()
    found: list[int] = []
    for sequence in sequences:
        found.append(sequence + seen[sequence] * load.records if recurs else sequence)
        seen[sequence] += 1
    if sorted(found) != [*range(load.deliveries)]:
        raise PromiseBroken(f"{len(found)} deliveries of {load.deliveries}, and not each of them once")
    return found


def run_recurring(bed: Bed, name: str, load: Recurring, way: Way, *, recurs: bool) -> Occurrences:
    """Run the load through a relay, from records that recur or from one for each delivery. `way` has transactions.

    Raises `PromiseBroken` unless each delivery has come once, and none early.
    """
    source, target = f"{name}.source", f"{name}.target"
    bed.create(source, target, f"{target}.dlq")
    relay = relay_of(bed, name, (source, target), way, by_record(), precision=PROMPT[way.guarantee])
    reader = _reader(bed, name, target, load.deliveries)
    try:
        relay.start()
        reader.start()
        relay.wait_until_it_delivers()
        due_ms = slots(load, int(now_ms()) + LEAD_MS)
        preload = Preload(bed.bootstrap_servers, source, recurring_speech(load) if recurs else NATIVE, target)
        preload.fill(load.records if recurs else load.deliveries, due_ms)
        before_s = relay.processor_s()
        preload.show()
        reader.wait(timeout_s=(due_ms[-1] - now_ms()) / 1_000 + PATIENCE_S)
        processor_s = relay.processor_s() - before_s
        relay.stop()
    finally:
        for process in (relay, reader):
            process.kill()
    sequences, arrived_ms = read_arrivals(bed.directory / f"{name}.arrivals")
    delivered = read_target(bed.bootstrap_servers, target)
    bed.delete(source, target)
    bed.forget_backlogs()
    numbered(load, delivered.sequence, recurs=recurs)
    meant_ms = [due_ms[each] for each in numbered(load, sequences, recurs=recurs)]
    require_none_early(name, meant_ms, arrived_ms)
    late_ms = (arrived - due for arrived, due in zip(arrived_ms, meant_ms, strict=True))
    return Occurrences(lateness_of(late_ms), processor_s * 1_000_000 / load.deliveries)


def _reader(bed: Bed, name: str, target: str, records: int) -> BenchProcess:
    command = module("bench.processes.arrival_reader", "--bootstrap-servers", bed.bootstrap_servers, "--topic", target)
    command += ["--records", str(records), "--output", str(bed.directory / f"{name}.arrivals")]
    return BenchProcess(f"{name}.reader", command, bed.directory)
