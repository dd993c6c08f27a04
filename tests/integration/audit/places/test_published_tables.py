"""Tests of what audits publish for others to query: each row is there once, whatever was killed or ran at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from tests.harness.names import unique
from tests.support.audit.quick_spark import ENVIRONMENT
from tests.support.audit.s3_server import S3Server
from tests.support.audit.spark_jars import HOW_TO_QUERY, delta_jars
from tests.unit.audit.sample_report import END_MINUTE, NOW_MS, commit_of, sample_report, state_of

from delaytopic_audit.errors import PublishingError, SettingsError
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Part
from delaytopic_audit.model.report import Report
from delaytopic_audit.outputs import publish_tables
from delaytopic_audit.outputs.delta import Table
from delaytopic_audit.report import no_verdict
from delaytopic_audit.runtime.session import java_home
from delaytopic_audit.tables.schemas import COUNTS, PARTS

pytestmark = pytest.mark.integration

DELAY_TOPIC = "shop/order-reminders"
MINUTE = END_MINUTE
"""Of the first hour."""
HOUR = 60
Rows = list[dict[str, Any]]


class Published:
    """A ledger with a part for each hour, which is published, and what others read of it."""

    def __init__(self, spark: SparkSession, ledger: str, tables: str, options: dict[str, str]) -> None:
        self.spark = spark
        self.place = tables
        self.ledger = Ledger(spark, ledger)
        self._folder = ledger
        self._options = options
        self._last = commit_of(0)

    def commit(self, *parts: Part, **changed: Any) -> None:
        """A run that ends with these parts."""
        sequence = self._last.sequence + 1
        self._last = self._last.model_copy(update={"sequence": sequence, "parts": list(parts), **changed})
        self.ledger.commit(self._last)

    def hour(self, number: int, finding: str | None = "lost", attempt: str = "abcd0123") -> Part:
        """The rows that a run has graded of an hour: ten records, and what is to be said of one of them."""
        minute = MINUTE + number * HOUR
        folder = f"runs/{number:08d}-{attempt}/0-{minute}-{minute + 1}"
        at = {"delay_topic": 1, "minute": minute, "partition": 3}
        counts = {**dict.fromkeys(COUNTS, 0), "asked": 10, "delivered": 9, "lost": 1}
        said = [{**at, "finding": finding, "offset": number, "deadline_ms": minute * 60_000 + 7}] if finding else []
        tables: dict[str, Rows] = {"verdicts": [{**at, **counts}], "findings": said}
        for table, rows in tables.items():
            # As Spark would write it, without a job of Spark.
            place = Path(self._folder) / folder / table
            place.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(rows, to_arrow_schema(PARTS[table])), place / "part-0.parquet")
        return Part(folder=folder, start=minute, end=minute + 1, runs=1)

    def publish(self, *reports: Report) -> None:
        """As a run does it at its end."""
        results = {each.delay_topic: each for each in reports}
        beside = f"{self.place}/../reports"
        publish_tables(self.spark, self.ledger, results, self.place, reports=beside, now_ms=NOW_MS)

    def rows(self, table: str) -> Rows:
        """The rows that a reader finds."""
        return list(self.open(table).to_pyarrow_table().to_pylist())

    def open(self, table: str) -> DeltaTable:
        return DeltaTable(f"{self.place}/{table}", storage_options=self._options)


@pytest.fixture(params=["a folder", pytest.param("S3", marks=pytest.mark.nightly)])
def published(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Published:
    """The ledger is in a folder, and the tables are in another, or on a real S3 server."""
    if request.param == "a folder":
        return Published(spark, str(tmp_path / "ledger"), str(tmp_path / "audit-tables"), {})
    s3: S3Server = request.getfixturevalue("s3")
    return Published(spark, str(tmp_path / "ledger"), s3.url(unique("tables")), s3.options_of_others())


@pytest.fixture
def in_folder(spark: SparkSession, tmp_path: Path) -> Published:
    return Published(spark, str(tmp_path / "ledger"), str(tmp_path / "audit-tables"), {})


def time_of(minute: int, after_ms: int = 0) -> datetime:
    return datetime.fromtimestamp(minute * 60 + after_ms / 1_000, UTC)


def hours(*numbers: int, finding: str = "lost") -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The rows that minutes and findings have to have of these hours."""
    minutes = [(number, MINUTE + number * HOUR) for number in numbers]
    counts = [(DELAY_TOPIC, time_of(minute), 3, 10, 9) for _, minute in minutes]
    return counts, [(DELAY_TOPIC, finding, number, time_of(minute, 7)) for number, minute in minutes]


def found(published: Published) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    of_minutes = ("delay_topic", "minute", "partition", "asked", "delivered")
    of_findings = ("delay_topic", "finding", "offset", "deadline")
    return _sorted(published.rows("minutes"), of_minutes), _sorted(published.rows("findings"), of_findings)


def _sorted(rows: Rows, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in rows)


def ending(error: BaseException) -> Callable[..., None]:
    """Return what ends a publication in place of its commit."""

    def end(*_: object) -> None:
        raise error

    return end


@pytest.mark.takes_long("publishes seven times")
def test_rows_are_published_once_by_runs_that_are_killed_repeated_or_could_not_publish(
    in_folder: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = in_folder
    first, second = published.hour(0), published.hour(1)
    published.commit(first)
    with monkeypatch.context() as patched:
        patched.setattr(Table, "commit", ending(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            published.publish()
    for _ in range(2):
        published.publish()
    assert found(published) == hours(0)

    published.commit(first, second)
    with monkeypatch.context() as patched:
        patched.setattr(Table, "commit", ending(PublishingError("the store is away")))
        with pytest.raises(PublishingError):
            published.publish()
    published.commit(first, second, published.hour(2))
    published.publish()

    assert found(published) == hours(0, 1, 2)


@pytest.mark.takes_long("publishes three times at once")
def test_of_audits_that_publish_at_once_one_does(published: Published) -> None:
    published.commit(published.hour(0))
    barrier = Barrier(3)

    def publish(_: int) -> None:
        barrier.wait()
        published.publish(sample_report())

    with ThreadPoolExecutor(3) as several:
        list(several.map(publish, range(3)))

    assert found(published) == hours(0)
    assert len(published.rows("verdicts")) == 1


@pytest.mark.takes_long("publishes twice")
def test_minutes_that_are_graded_again_or_forgotten_are_not_there_twice(in_folder: Published) -> None:
    in_folder.commit(in_folder.hour(0), in_folder.hour(1), in_folder.hour(2, finding=None))
    in_folder.publish()
    again = in_folder.hour(1, finding="late", attempt="0123abcd")

    in_folder.commit(again)
    in_folder.publish()

    assert found(in_folder) == hours(1, finding="late")


@pytest.mark.takes_long("publishes twice")
def test_of_an_audit_that_began_anew_no_rows_of_before_stay(in_folder: Published) -> None:
    part = in_folder.hour(0)
    in_folder.commit(part)
    in_folder.publish()
    state = state_of()
    anew = state.model_copy(update={"plan": state.plan.model_copy(update={"number": 2, "epoch": 2})})

    in_folder.commit(part, states=[anew], numbers=2)
    in_folder.publish()

    assert found(in_folder) == ([], [])


def test_a_page_beside_the_tables_leads_to_the_report_of_each_delay_topic(in_folder: Published) -> None:
    in_folder.publish(sample_report())

    page = (Path(in_folder.place) / "fleet.html").read_text(encoding="utf-8")
    assert f'<a href="../reports/{DELAY_TOPIC}/report.html">{DELAY_TOPIC}</a>' in page
    assert "overspent by 77.3%" in page


def test_a_verdict_has_the_figures_of_its_report(in_folder: Published) -> None:
    in_folder.publish(sample_report())

    [row] = in_folder.rows("verdicts")
    names = ("delay_topic", "verdict", "missed", "run", "lost", "window_to", "budget_window", "generated")
    assert {name: row[name] for name in names} == {
        "delay_topic": DELAY_TOPIC,
        "verdict": "Missed",
        "missed": ["Timely", "Complete", "Unique", "NotEarly"],
        "run": 42,
        "lost": 3,
        "window_to": time_of(MINUTE),
        "budget_window": "720h",
        "generated": time_of(MINUTE, 70_000),
    }
    assert row["budget_left"] == sample_report().budget.remaining  # type: ignore[union-attr]


def test_a_delay_topic_that_cannot_be_judged_says_so_and_one_that_is_gone_is_left_out(in_folder: Published) -> None:
    for name in ("shop/a", "shop/b"):
        in_folder.publish(no_verdict(name, ["The topic is gone."], NOW_MS))

    [row] = in_folder.rows("verdicts")
    assert (row["delay_topic"], row["verdict"], row["reasons"]) == ("shop/b", "CannotJudge", ["The topic is gone."])


def test_tables_of_another_ledger_are_left_alone(in_folder: Published, tmp_path: Path) -> None:
    in_folder.publish()
    in_folder.ledger = Ledger(in_folder.spark, str(tmp_path / "other"))

    with pytest.raises(SettingsError, match=r"is not of this ledger: Of the audits' ledger .*/ledger\. Give each"):
        in_folder.publish()


def test_a_store_that_takes_no_tables_is_refused(in_folder: Published) -> None:
    in_folder.place = "hdfs://name:1/tables"

    with pytest.raises(SettingsError, match="hdfs://name:1/tables is neither a folder nor s3a://"):
        in_folder.publish()


def example(number: int) -> str:
    """Return one of the programs of the page."""
    return str(re.findall(r"```python\n(.*?)```", HOW_TO_QUERY.read_text(encoding="utf-8"), re.DOTALL)[number])


@pytest.mark.takes_long("publishes")
def test_the_example_in_duckdb_tells_the_hours_of_losses(
    in_folder: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_folder.commit(in_folder.hour(0), in_folder.hour(1))
    in_folder.publish()
    monkeypatch.chdir(tmp_path)

    exec(compile(example(0), str(HOW_TO_QUERY), "exec"), {})

    rows = [line.split("\u2502") for line in capsys.readouterr().out.splitlines() if DELAY_TOPIC in line]
    assert [[word.strip() for word in row[3:5]] for row in rows] == [["10", "1"], ["10", "1"]]


@pytest.mark.nightly
@pytest.mark.takes_long("starts a Spark of its own")
def test_the_example_in_spark_tells_who_lost_what_since_when(in_folder: Published, tmp_path: Path) -> None:
    in_folder.commit(in_folder.hour(0), in_folder.hour(1))
    in_folder.publish(sample_report())
    (tmp_path / "lost.py").write_text(example(1), encoding="utf-8")
    settings = re.findall(r"--conf (\S+)", HOW_TO_QUERY.read_text(encoding="utf-8"))
    quick = ["spark.databricks.delta.snapshotPartitions=1", "spark.sql.shuffle.partitions=1", "spark.ui.enabled=false"]
    words = [word for name in (*settings, *quick) for word in ("--conf", name)]
    jars = ",".join(map(str, delta_jars()))

    with java_home():
        options = f"--master local[1] --jars {jars} {' '.join(words)} {ENVIRONMENT['PYSPARK_SUBMIT_ARGS']}"
        environment = os.environ | ENVIRONMENT | {"PYSPARK_SUBMIT_ARGS": options}
        done = subprocess.run(
            [sys.executable, "lost.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    [row] = [line.split("|") for line in done.stdout.splitlines() if DELAY_TOPIC in line]
    assert (done.returncode, row[2].strip(), float(row[4]) < 1) == (0, "2", True)
