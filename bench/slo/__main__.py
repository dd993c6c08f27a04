"""The cost of an SLO audit on this machine: `python -m bench.slo [--only digests|hour|backlog|history] [--records N]`.

Run from the repository's root. Needs the `slo` extra; Kafka comes with the packages. The audit runs as a process of its
own, as it would in a CronJob, with a heap of 1 GiB.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import click

from bench.machine import describe_machine
from bench.slo.topics import HOUR_MS, Hour, hour_of_records
from bench.slo.watch import Cost, run_watched
from delaytopic_cli.embedded.kafka_server import KafkaServer

GOAL_DIGEST_ROWS_PER_SECOND = 8_000_000
GOAL_HOUR_SECONDS = 40.0
DIGEST_ROWS = 10_000_000
PARTS = ("digests", "readers", "hour", "backlog", "history")
HISTORY_HOURS = (1, 720)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", type=click.Choice(PARTS), multiple=True, help="Only this; may be repeated.")
@click.option("--records", default=1_000_000, show_default=True, help="Of the hour.")
@click.option("--pending", default=2_000_000, show_default=True, help="Of the backlog.")
@click.option("--jars", default="", help="The official connector's jars, to measure it, too.")
def main(only: tuple[str, ...], records: int, pending: int, jars: str) -> None:
    """Measure digests from Parquet, both readers, a cold audit of an hour, and the same beside a backlog or a history.

    A missed goal is a result. Figures go to standard output as JSON, progress to standard error.
    """
    chosen = only or PARTS
    results: dict[str, object] = {"machine": describe_machine()}
    with tempfile.TemporaryDirectory(prefix="bench-slo-") as folder:
        if "digests" in chosen:
            results["digests"] = _digests(Path(folder))
        if "history" in chosen:
            results["history"] = {hours: _history(hours, records, Path(folder)) for hours in HISTORY_HOURS}
        if {"readers", "hour", "backlog"} & set(chosen):
            with KafkaServer(Path(folder) / "kafka") as kafka:
                results |= _on_kafka(kafka, Path(folder), chosen, records, pending, jars)
    click.echo(json.dumps(results, indent=2, default=str))


def _digests(folder: Path) -> dict[str, object]:
    cost = run_watched([sys.executable, "-m", "bench.slo.digests", str(folder / "rows"), str(DIGEST_ROWS)])
    measured = json.loads(cost.output)
    rate = 2 * DIGEST_ROWS / measured["seconds"]
    _say(f"digests: {rate / 1e6:.1f} million rows/s (goal {GOAL_DIGEST_ROWS_PER_SECOND / 1e6:.0f})")
    return {"rows": 2 * DIGEST_ROWS, **measured, "rowsPerSecond": round(rate), "peakMemoryMiB": cost.peak_mib}


def _history(hours: int, records: int, folder: Path) -> dict[str, object]:
    """The same hour after a short time and a long one."""
    cost = run_watched(
        [sys.executable, "-m", "bench.slo.history", str(hours), str(records), str(folder / f"history-{hours}")]
    )
    measured: dict[str, object] = json.loads(cost.output)
    _say(f"after {hours} hours: {measured}, {cost.peak_mib} MiB at most")
    return {**measured, "peakMemoryMiB": cost.peak_mib}


def _on_kafka(
    kafka: KafkaServer, folder: Path, chosen: tuple[str, ...], records: int, pending: int, jars: str
) -> dict[str, object]:
    results: dict[str, object] = {}
    # What `slo prepare` leaves is neither found on this machine nor left on it.
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    now_ms = time.time_ns() // 1_000_000
    start_ms = (now_ms // HOUR_MS - 2) * HOUR_MS
    hour = hour_of_records(kafka.bootstrap_servers, "hour", records, start_ms)
    _say(f"produced {records:,} records and their deliveries")
    if "readers" in chosen:
        results["readers"] = _readers(hour, folder, jars)
    if "hour" in chosen:
        results["hourUnprepared"] = _hour(hour, folder / "unprepared", "hour, unprepared")
    if {"hour", "backlog"} & set(chosen):
        results["prepare"] = _prepare()
    if "hour" in chosen:
        results["hour"] = _hour(hour, folder / "hour", "hour")
    if "backlog" in chosen:
        results["backlog"] = _backlog(kafka, folder, records, pending, start_ms)
    return results


def _readers(hour: Hour, folder: Path, jars: str) -> dict[str, object]:
    results: dict[str, object] = {}
    for reader in ("client", "connector") if jars else ("client",):
        command = [sys.executable, "-m", "bench.slo.readers", hour.bootstrap_servers, hour.name, reader, jars]
        cost = run_watched([*command, str(folder / f"read-by-{reader}")])
        results[reader] = {**json.loads(cost.output), "peakMemoryMiB": cost.peak_mib}
        _say(f"reader {reader}: {results[reader]}")
    return results


def _prepare() -> dict[str, object]:
    """Measure `delaytopic slo prepare`, which is done once on a machine."""
    cost = run_watched([sys.executable, "-m", "delaytopic_cli", "slo", "prepare"])
    _say(f"prepare: {cost.seconds:.1f} s, {cost.cpu_seconds:.1f} s of processors")
    return {"seconds": round(cost.seconds, 1), "cpuSeconds": round(cost.cpu_seconds, 1)}


def _hour(hour: Hour, folder: Path, name: str) -> dict[str, object]:
    cost = _audit(hour, folder)
    _say(
        f"{name}: {cost.seconds:.1f} s cold (goal {GOAL_HOUR_SECONDS:.0f}), {cost.cpu_seconds:.1f} s of processors,"
        f" {cost.peak_mib} MiB at most"
    )
    figures = {"seconds": round(cost.seconds, 1), "cpuSeconds": round(cost.cpu_seconds, 1)}
    return {"records": hour.records, **figures, "peakMemoryMiB": cost.peak_mib}


def _backlog(kafka: KafkaServer, folder: Path, records: int, pending: int, start_ms: int) -> dict[str, object]:
    """The same hour after a run that took in nothing, and after one that took in a backlog."""
    results: dict[str, object] = {}
    for name, backlog in (("none", 0), ("some", pending)):
        hour = hour_of_records(kafka.bootstrap_servers, f"backlog-{name}", 0, start_ms, pending=backlog)
        _audit(hour, folder / name)
        hour = hour.with_records(records)
        results[name] = {"pending": backlog, **_hour(hour, folder / name, f"with {backlog:,} pending")}
    return results


def _audit(hour: Hour, folder: Path) -> Cost:
    file = hour.write_document(folder)
    command = [sys.executable, "-m", "delaytopic_cli", "slo", "run", "-f", str(file), "-b", hour.bootstrap_servers]
    places = ["--ledger", str(folder / "ledger"), "--output", str(folder / "report")]
    cost = run_watched([*command, *places, "--any-clock", "--window", "3h", "--memory", "1g"])
    report = json.loads((folder / "report" / f"bench.{hour.name}" / "report.json").read_text(encoding="utf-8"))
    if report["verdict"] != "Met" or report["counts"]["delivered"] != hour.records:
        raise click.ClickException(f"the audit of {hour.name} said {report['sentence']}")
    return cost


def _say(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
