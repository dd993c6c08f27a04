"""The cost of an SLO audit on this machine: `python -m bench.audit [--only digests|hour|sizes|...] [--records N]`.

Run from the repository's root. Needs the `audit` extra; Kafka comes with the packages. The audit runs as a process of
its own, as it would in a CronJob, with a heap of 1 GiB.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from bench.audit.audits import audit
from bench.audit.sizes import Work, measure_sizes, table_of
from bench.audit.topics import HOUR_MS, Hour, hour_of_records
from bench.audit.watch import run_watched
from bench.figures.table import Table
from bench.machine import describe_machine
from delaytopic_local.servers.kafka_server import KafkaServer

GOAL_DIGEST_ROWS_PER_SECOND = 8_000_000
GOAL_HOUR_SECONDS = 35.0
DIGEST_ROWS = 10_000_000
PARTS = ("digests", "readers", "hour", "backlog", "history")
ON_ONE_HOUR = {"readers", "hour", "backlog"}
SIZES = "sizes"
"""Takes longer than all others together, and so is measured only where it is named."""
HISTORY_HOURS = (1, 720)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", type=click.Choice((*PARTS, SIZES)), multiple=True, help="Only this; may be repeated.")
@click.option(
    "--records", default=1_000_000, show_default=True, help="Of the hour; sizes are from a tenth to ten times as many."
)
@click.option("--pending", default=2_000_000, show_default=True, help="Of the backlog.")
@click.option(
    "--topics",
    type=click.IntRange(2),
    multiple=True,
    default=(100, 1_000),
    show_default=True,
    help="DelayTopics in one run, of sizes; may be repeated.",
)
def main(only: tuple[str, ...], records: int, pending: int, topics: tuple[int, ...]) -> None:
    """Measure digests from Parquet, the reader, a cold audit of an hour, and the same beside a backlog or a history.

    `--only sizes` measures audits from a tenth of the records to ten times as many, and of a tenth as many in a
    hundred and in a thousand DelayTopics of one run. A missed goal is a result. Figures go to standard output as JSON,
    progress and tables to standard error.
    """
    chosen = only or PARTS
    results: dict[str, object] = {"machine": {**describe_machine(), "pyspark": version("pyspark")}}
    with tempfile.TemporaryDirectory(prefix="bench-audit-") as folder:
        if "digests" in chosen:
            results["digests"] = _digests(Path(folder))
        if "history" in chosen:
            results["history"] = _histories(records, Path(folder))
        if {*ON_ONE_HOUR, SIZES} & set(chosen):
            kafka_folder = Path(folder) / "kafka"
            with KafkaServer(kafka_folder) as kafka:
                if SIZES in chosen:
                    work = Work(kafka.bootstrap_servers, kafka_folder, _hour_ago_ms(), records, topics)
                    results[SIZES] = _sizes(work, Path(folder))
                if ON_ONE_HOUR & set(chosen):
                    results |= _on_kafka(kafka, Path(folder), chosen, records, pending)
    click.echo(json.dumps(results, indent=2, default=str))


def _digests(folder: Path) -> dict[str, object]:
    cost = run_watched([sys.executable, "-m", "bench.audit.digests", str(folder / "rows"), str(DIGEST_ROWS)])
    measured = json.loads(cost.output)
    rate = 2 * DIGEST_ROWS / measured["seconds"]
    _say(f"digests: {rate / 1e6:.1f} million rows/s (goal {GOAL_DIGEST_ROWS_PER_SECOND / 1e6:.0f})")
    return {"rows": 2 * DIGEST_ROWS, **measured, "rowsPerSecond": round(rate), "peakMemoryMiB": cost.peak_mib}


def _histories(records: int, folder: Path) -> dict[int, dict[str, object]]:
    found = {hours: _history(hours, records, folder) for hours in HISTORY_HOURS}
    _say(Table(("after", "seconds", "processor s", "MiB read"), list(_rows_of(found))).markdown())
    return found


def _rows_of(found: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for step in ("run", "report"):
        for hours, cost in found.items():
            read = f"{cost[step]['bytesRead'] / (1 << 20):,.1f}"
            yield (f"{step} after {hours} hours", str(cost[step]["seconds"]), str(cost[step]["cpuSeconds"]), read)


def _history(hours: int, records: int, folder: Path) -> dict[str, object]:
    """Measure the same hour after a short time and after a long one."""
    cost = run_watched(
        [sys.executable, "-m", "bench.audit.history", str(hours), str(records), str(folder / f"history-{hours}")]
    )
    measured: dict[str, object] = json.loads(cost.output)
    _say(f"after {hours} hours: {measured}, {cost.peak_mib} MiB at most")
    return {**measured, "peakMemoryMiB": cost.peak_mib}


def _on_kafka(
    kafka: KafkaServer, folder: Path, chosen: tuple[str, ...], records: int, pending: int
) -> dict[str, object]:
    results: dict[str, object] = {}
    start_ms = _hour_ago_ms()
    hour = hour_of_records(kafka.bootstrap_servers, "hour", records, start_ms)
    _say(f"produced {records:,} records and their deliveries")
    if "readers" in chosen:
        results["readers"] = _readers(hour)
    if "hour" in chosen:
        results["hour"] = _hour(hour, folder / "hour", "hour")
    if "backlog" in chosen:
        results["backlog"] = _backlog(kafka, folder, records, pending, start_ms)
    return results


def _hour_ago_ms() -> int:
    """Return the start of the last hour but one, all of which is closed."""
    return (time.time_ns() // 1_000_000 // HOUR_MS - 2) * HOUR_MS


def _sizes(work: Work, folder: Path) -> list[dict[str, object]]:
    sizes = measure_sizes(work, folder / "sizes", _say)
    _say(table_of(sizes).markdown())
    return [size.to_document() for size in sizes]


def _readers(hour: Hour) -> dict[str, object]:
    cost = run_watched([sys.executable, "-m", "bench.audit.readers", hour.bootstrap_servers, hour.name])
    results = {**json.loads(cost.output), "peakMemoryMiB": cost.peak_mib}
    _say(f"reader: {results}")
    return results


def _hour(hour: Hour, folder: Path, name: str) -> dict[str, object]:
    cost = audit([hour], folder)
    _say(
        f"{name}: {cost.seconds:.1f} s cold (goal {GOAL_HOUR_SECONDS:.0f}), {cost.cpu_seconds:.1f} s of processors,"
        f" {cost.peak_mib} MiB at most"
    )
    figures = {"seconds": round(cost.seconds, 1), "cpuSeconds": round(cost.cpu_seconds, 1)}
    return {"records": hour.records, **figures, "peakMemoryMiB": cost.peak_mib}


def _backlog(kafka: KafkaServer, folder: Path, records: int, pending: int, start_ms: int) -> dict[str, object]:
    """Measure the same hour after a run that took in nothing, and after one that took in a backlog."""
    results: dict[str, object] = {}
    for name, backlog in (("none", 0), ("some", pending)):
        hour = hour_of_records(kafka.bootstrap_servers, f"backlog-{name}", 0, start_ms, pending=backlog)
        audit([hour], folder / name)
        hour = hour.with_records(records)
        results[name] = {"pending": backlog, **_hour(hour, folder / name, f"with {backlog:,} pending")}
    return results


def _say(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
