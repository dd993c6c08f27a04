"""`python -m bench.parts`: what each pure step of the relay costs a record, in nanoseconds, without any server.

With DELAYTOPIC_SPEEDUPS=0, of a relay in Python alone; the speedups write headers and receipts when they produce.

Records are read in source order and leave in due order, as they do in a relay: what was read one after another is
scattered over memory by then, which is why the same header list costs more on the way out than on the way in.

`--resident MIB` counts instead how many records wait inside the horizon when the process has so much memory resident.
It has imported what a relay has; the clients' buffers, which a relay has besides, are not there.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeVar, cast

import click
from confluent_kafka import Message

from bench.figures.table import Table
from bench.records import headers_of, key_of, value_of
from delaytopic_api.records import Headers
from delaytopic_api.values import Partitioning
from delaytopic_relay.backlog.segments import decode_segment, pack
from delaytopic_relay.core.calendar import Calendar
from delaytopic_relay.core.commands import Schedule, SourceMessage
from delaytopic_relay.core.entries import make_sender
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.dialects.reading import TopicGlobs
from delaytopic_relay.telemetry.metrics import RelayMetrics

NOW_MS = 1_795_000_000_000
SPREAD_MS = 8_000
READ, STEP_MS, DUE = 1_000, 10, 2_000

T = TypeVar("T")


class Meter:
    """Times steps, and keeps the best figure of each."""

    def __init__(self, records: int) -> None:
        self._records = records
        self.best_ns: dict[str, float] = {}

    def time(self, step: str, work: Callable[[], T]) -> T:
        """Do the work of one step for all records."""
        started_ns = time.process_time_ns()
        result = work()
        taken_ns = (time.process_time_ns() - started_ns) / self._records
        self.best_ns[step] = min(taken_ns, self.best_ns.get(step, taken_ns))
        return result


def messages(records: int, first: int = 0) -> list[SourceMessage]:
    """Records from an offset on as the client hands them over, due within some seconds."""
    draw = random.Random(records + first).randrange
    made = [
        Message(
            topic="source",
            partition=0,
            offset=number,
            key=key_of(number),
            value=bytes(bytearray(value_of(number))),
            headers=fresh(headers_of(NOW_MS + draw(SPREAD_MS))),
            timestamp=(2, NOW_MS),
        )
        for number in range(first, first + records)
    ]
    return cast("list[SourceMessage]", made)


def fresh(headers: Headers) -> list[tuple[str, str | bytes | None]]:
    """Return the same headers in objects of their own, as the client makes them for each record."""
    return [(name[:1] + name[1:], bytes(bytearray(value or b""))) for name, value in headers]


def native() -> NativeDialect:
    """The dialect that reads them."""
    return NativeDialect(NativePolicy("target", TopicGlobs([]), 86_400_000))


def records_within(resident_bytes: int) -> int:
    """Return how many records are in a calendar when the process has so much memory resident."""
    for module in ("service", "backlog.kafka.opening", "backlog.redis.opening"):
        import_module(f"delaytopic_relay.{module}")
    dialect, calendar, page_bytes = native(), Calendar(), os.sysconf("SC_PAGE_SIZE")
    while int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * page_bytes < resident_bytes:
        read = cast("list[Schedule]", dialect.read_all(messages(READ, calendar.count)))
        calendar.add(read, only_here=True)
    return calendar.count


def run_once(meter: Meter, records: int) -> None:
    """All steps, once."""
    made = messages(records)
    dialect = native()
    further = FurtherTargets([], "bench")
    writer = RecordWriter("source", "target", Partitioning.BY_KEY, 4, lambda topic: 1 << 20, further, Refusals())
    writer.certain_bytes = 1 << 19
    writer.packs = make_sender is not None
    metrics, calendar = RelayMetrics("namespace", "name"), Calendar()
    batches = [made[first : first + READ] for first in range(0, records, READ)]
    commands = meter.time("read headers into a command", lambda: [*map(dialect.read_all, batches)])
    reads = cast("list[list[Schedule]]", commands)
    meter.time("into the calendar", lambda: fill(calendar, reads))
    due = meter.time("out of the calendar", lambda: take_all(calendar))
    meter.time("receipts and headers", lambda: [writer.packed(0, batch, NOW_MS) for batch in due])
    meter.time("count lateness", lambda: count(metrics, due))
    packed = meter.time("pack segments", lambda: [pack(read, NOW_MS) for read in reads])
    meter.time("unpack segments", lambda: [decode_segment(segment.data) for read in packed for segment in read])


def fill(calendar: Calendar, reads: Sequence[Sequence[Schedule]]) -> None:
    """One read after another."""
    for read in reads:
        calendar.add(read, only_here=True)


def take_all(calendar: Calendar) -> list[Sequence[Schedule]]:
    """Everything, a few milliseconds at a time."""
    taken: list[Sequence[Schedule]] = []
    until_ms = NOW_MS
    while calendar.count:
        until_ms += STEP_MS
        taken.append(calendar.take(until_ms, DUE))
    return taken


def count(metrics: RelayMetrics, due: Sequence[Sequence[Schedule]]) -> None:
    """Lateness of each batch."""
    for batch in due:
        metrics.observe_delivered([schedule.due_ms for schedule in batch], NOW_MS + SPREAD_MS)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--records", type=click.IntRange(READ), default=100_000, show_default=True)
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="The best of so many is shown.")
@click.option(
    "--resident",
    "resident_mib",
    type=click.IntRange(64),
    metavar="MIB",
    help="Print instead how many records wait inside the horizon when the process has so much memory resident.",
)
@click.option("-o", "--output", type=click.Choice(["table", "markdown"]), default="table", show_default=True)
def main(records: int, runs: int, resident_mib: int | None, output: str) -> None:
    """Print what each pure step costs a record."""
    gc.disable()
    if resident_mib is not None:
        click.echo(f"{records_within(resident_mib << 20):,} records")
        return
    meter = Meter(records)
    for _ in range(runs):
        run_once(meter, records)
    table = Table(("step", "ns a record"), [(step, f"{cost:,.0f}") for step, cost in meter.best_ns.items()])
    click.echo(table.markdown() if output == "markdown" else table.text())


if __name__ == "__main__":
    main()
