"""Tests that a run reads as many bytes of commands after a long history as after a short one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType
from tests.support.audit.delay_topics import HOUR_MS
from tests.support.audit.runs import Runs, cancelled, delivered, report_of, rules_of, scheduled

from delaytopic_audit.ledger.compaction import last_to_compact, put_together
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Asked, Run
from delaytopic_audit.model.words import MINUTE_MS, Kind
from delaytopic_audit.tables.schemas import COMMANDS

pytestmark = pytest.mark.long

BASE_MS = 1_795_269_600_000 // HOUR_MS * HOUR_MS
WAITING = 1_000
"""Schedules with an id that each hour before saw, and that wait for years."""
FAR_MINUTE = BASE_MS // MINUTE_MS + 1_000_000


def runs_of_hours(spark: SparkSession, ledger: Ledger, hours: int) -> list[Run]:
    """Write the commands of so many hourly runs, put together as the last of them has left them."""
    runs: list[Run] = []
    for hour in range(hours):
        folder = f"runs/00000001-h/{hour}"
        runs.append(
            Run(
                sequence=1,
                folder=folder,
                first_minute=FAR_MINUTE,
                last_minute=FAR_MINUTE,
                commands=WAITING,
                overdue=0,
                asks={1: [Asked(0, hour * WAITING, (hour + 1) * WAITING)]},
                rows=WAITING,
            )
        )
        if count := last_to_compact(runs):
            runs = [*runs[:-count], put_together(runs[-count:], f"{folder}-earlier")]
    return [_with_commands(spark, ledger, run) for run in runs]


def _with_commands(spark: SparkSession, ledger: Ledger, run: Run) -> Run:
    start, offset = run.asks[1][0].start, sf.col("id")
    known = {"delay_topic": sf.lit(1), "kind": sf.lit(int(Kind.SCHEDULE)), "offset": offset, "append_ms": sf.lit(0)}
    known |= {"partition": sf.lit(0), "id_hash": sf.xxhash64(offset), "due_ms": sf.lit(FAR_MINUTE * MINUTE_MS)}
    rows = spark.range(start, start + run.commands).select(
        *(known.get(each.name, sf.lit(None)).cast(each.dataType).alias(each.name) for each in COMMANDS.fields)
    )
    return run.model_copy(update={"buckets": ledger.write_commands(run.folder, rows, run.commands)})


def bytes_and_fates(
    spark: SparkSession, folder: Path, patched: pytest.MonkeyPatch, hours: int
) -> tuple[int, tuple[int, ...]]:
    """Return the bytes of commands that the run of an hour reads after so many, and what it found in that hour."""
    ledger = Ledger(spark, str(folder))
    runs = Runs(spark, ledger, asked=hours * WAITING)
    first, due_ms = runs.asked, BASE_MS + 30 * MINUTE_MS
    last = runs.run(BASE_MS, rules_of(), *(scheduled(BASE_MS - 1, due_ms, name) for name in (b"arrives", b"ends")))
    last = last.model_copy(update={"runs": [*runs_of_hours(spark, ledger, hours), *last.runs]})
    read: list[str] = []
    usual = ledger.read_folders

    def reading(folders: Sequence[str], schema: StructType) -> DataFrame:
        if schema == COMMANDS:
            read.extend(folders)
        return usual(folders, schema)

    sent = (cancelled(BASE_MS + MINUTE_MS, b"ends"), delivered(first, due_ms, due_ms + 1))
    with patched.context() as within:
        within.setattr(ledger, "last_commit", lambda: last)
        within.setattr(ledger, "read_folders", reading)
        commit = runs.run(BASE_MS + HOUR_MS, rules_of(), *sent)
    counts = report_of(ledger, commit, HOUR_MS, BASE_MS + HOUR_MS).counts
    assert counts is not None
    size = sum(file.stat().st_size for name in read for file in (folder / name).glob("*.parquet"))
    return size, (counts.asked, counts.delivered, counts.cancelled, counts.lost)


@pytest.mark.nightly  # each day the choice of buckets is held by units, and verdicts by every audit of ids
@pytest.mark.takes_long("carries out four runs")
def test_an_hour_after_thirty_days_reads_as_many_bytes_of_commands_as_after_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (after_one, of_one), (after_thirty, of_thirty) = (
        bytes_and_fates(spark, tmp_path / str(hours), monkeypatch, hours) for hours in (24, 30 * 24)
    )

    assert after_one > 0
    assert after_one == after_thirty
    assert of_one == of_thirty == (2, 1, 1, 0)
