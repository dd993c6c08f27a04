"""The tables that a run prints. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bench.cases import BACKENDS
from bench.figures.results import Measured, Throughput, bursts, dialects, throughputs, timings
from bench.figures.statistics import median
from bench.figures.table import Table


def tables(measured: Measured, burst_records: int) -> Iterator[Table]:
    """Throughput, then lateness, then what there is to know of the backlog; only what was measured."""
    found = throughputs(measured)
    if found:
        yield _throughput_table(found)
    if measured.dialects:
        yield _dialect_table(measured)
    if measured.filled:
        yield _backlog_table(measured)
    if measured.lateness:
        yield _lateness_table(measured)
        yield _burst_table(measured, burst_records)


def _throughput_table(found: list[Throughput]) -> Table:
    rows = [
        (
            each.name,
            f"{each.ratio:.2f}",
            f"{each.of_at_least_once:.2f}" if each.of_at_least_once is not None else "",
            each.goal,
            each.verdict or "",
            f"{each.rate:,.0f}",
            " ".join(f"{rate:,.0f}" for rate in each.rates),
        )
        for each in found
    ]
    headings = ("throughput", "of null", "of AtLeastOnce", "goal", "verdict", "records/s", "each run")
    return Table(headings, rows)


def _dialect_table(measured: Measured) -> Table:
    rows = [
        (
            each.name,
            f"{each.ratio:.2f}",
            each.goal,
            each.verdict or "",
            f"{each.records}",
            f"{each.written_ratio:.2f}",
            f"{each.rate:,.0f}",
            " ".join(f"{rate:,.0f}" for rate in each.rates),
        )
        for each in dialects(measured)
    ]
    headings = ("of native", "goal", "verdict", "records each", "written, of native", "deliveries/s", "each run")
    return Table(("dialect, inside the horizon", *headings), rows)


def _backlog_table(measured: Measured) -> Table:
    rows = [
        (
            f"{BACKENDS[case[0]]}, {case[1]}",
            f"{median(rates):,.0f}",
            f"{median(measured.drained[case]):,.0f}",
            f"{measured.peak_memory_bytes[case] / (1 << 20):,.0f} MiB",
        )
        for case, rates in measured.filled.items()
    ]
    return Table(("backlog", "in, records/s", "out, records/s", "relay's peak memory"), rows)


def _lateness_table(measured: Measured) -> Table:
    rows = [
        (
            each.name,
            f"{each.lateness.p50_ms:.0f} ms",
            f"{each.lateness.p99_ms:.0f} ms",
            f"{each.lateness.max_ms:.0f} ms",
            each.goal,
            each.verdict or "",
        )
        for each in timings(measured)
    ]
    return Table(("lateness at the target", "p50", "p99", "max", "goal (p50 / p99)", "verdict"), rows)


def _burst_table(measured: Measured, burst_records: int) -> Table:
    rows = [
        (each.name, f"{each.ms / 1_000:.2f} s", each.goal, each.verdict) for each in bursts(measured, burst_records)
    ]
    return Table(("due in one instant", "until the last", "goal", "verdict"), rows)
