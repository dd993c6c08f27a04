"""Tests that a report costs the driver no more for a long time than for a short one: rows collected, and scans."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.support.audit.runs import plan_of, report_of, rules_of
from tests.unit.audit.sample_report import commit_of, state_of

from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Commit, Part
from delaytopic_audit.model.report import Report
from delaytopic_audit.model.words import MINUTE_MS, Finding
from delaytopic_audit.pipeline.gathering import current
from delaytopic_audit.tables.schemas import PARTS

pytestmark = pytest.mark.long

HOUR = 60
DAY_MS = 24 * HOUR * MINUTE_MS
FIRST = 29_921_160
PARTITIONS = 3
BUCKETS = 4


def ledger_of_hours(
    spark: SparkSession, folder: Path, parts: int, hours: int, tables: Collection[str] = PARTS
) -> tuple[Ledger, Commit]:
    """A ledger of so many parts, of so many hours each; in each minute a record of each partition is lost."""
    ledger, found = Ledger(spark, str(folder)), []
    for number in range(parts):
        start = FIRST + number * hours * HOUR
        part = Part(folder=f"runs/{number:08d}-a/part", start=start, end=start + hours * HOUR, runs=1)
        for table, rows in tables_of(spark, part).items():
            if table in tables:
                ledger.write(part.folder, table, rows)
        found.append(part)
    run_plan = plan_of(1, found[-1].end * MINUTE_MS, rules_of(window_ms=30 * DAY_MS), (0, 0))
    (plan,) = run_plan.plans
    state = state_of().model_copy(update={"plan": plan, "closed_minute": found[-1].end, "floor_minute": 0})
    return ledger, commit_of().model_copy(update={"states": [state], "parts": found})


def tables_of(spark: SparkSession, part: Part) -> dict[str, DataFrame]:
    def rows(table: str, each: int, **columns: Any) -> DataFrame:
        number = sf.col("id")
        given = {
            "delay_topic": sf.lit(1),
            "minute": part.start + sf.floor(number / each),
            "nth": (number % each).cast("int"),
        }
        frame = spark.range((part.end - part.start) * each).withColumns({**given, **columns})
        missing = [name for name in PARTS[table].names if name not in frame.columns]
        nothing = {name: sf.lit(0) for name in missing}
        return frame.withColumns(nothing).select(
            *(sf.col(field.name).cast(field.dataType) for field in PARTS[table].fields)
        )

    one, nth = sf.lit(1), sf.col("nth")
    counts = {"asked": sf.lit(2), "delivered": one, "on_time": one, "lost": one, "within": sf.lit(None)}
    return {
        "verdicts": rows("verdicts", PARTITIONS, partition=nth, **counts),
        "histogram": rows("histogram", BUCKETS, bucket=nth, records=one),
        "findings": rows("findings", PARTITIONS, partition=nth, finding=sf.lit(str(Finding.LOST))),
    }


def report_and_rows(
    spark: SparkSession, folder: Path, patched: pytest.MonkeyPatch, parts: int, hours: int
) -> tuple[Report, int]:
    """Return the report of all of it, and how many rows the driver collected for it."""
    ledger, commit = ledger_of_hours(spark, folder, parts, hours)
    frames, rows = type(spark.range(1)), list[Any]()
    usual = frames.collect

    def collecting(frame: DataFrame) -> list[Any]:
        rows.extend(found := usual(frame))
        return found

    with patched.context() as within:
        within.setattr(frames, "collect", collecting)
        report = report_of(ledger, commit, parts * hours * HOUR * MINUTE_MS, 0)
    return report, len(rows)


@pytest.mark.nightly
@pytest.mark.takes_long("writes a month of verdicts")
def test_the_driver_collects_no_more_rows_for_a_month_than_for_four_days(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days, of_days = report_and_rows(spark, tmp_path / "days", monkeypatch, 4, 24)
    month, of_month = report_and_rows(spark, tmp_path / "month", monkeypatch, 5, 6 * 24)

    assert of_days > BUCKETS
    assert of_month <= of_days
    for report, hours in ((days, 4 * 24), (month, 30 * 24)):
        asked = hours * HOUR * PARTITIONS
        assert report.counts is not None
        assert report.budget is not None
        assert (report.counts.asked, report.counts.lost, report.budget.spent) == (2 * asked, asked, asked)
        assert sum(span.counts.lost for span in report.spans) == asked
        assert sum(sum(span.bins) for span in report.spans) == hours * HOUR * BUCKETS
        assert [(each.finding, each.records, len(each.listed)) for each in report.findings] == [("lost", asked, 100)]


def test_the_tables_of_many_parts_are_read_by_as_many_steps_as_those_of_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    steps = []
    for parts in (1, 3):
        ledger, commit = ledger_of_hours(spark, tmp_path / str(parts), parts, 1, ["findings"])
        plan = current(ledger, commit, "findings")._jdf.queryExecution().executedPlan()
        steps.append(plan.treeString().count("\n"))

    assert steps[0] == steps[1]
