"""Tests of two audits of one DelayTopic at once: one counts, the other says so, and nothing of the ledger is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic
from tests.support.audit.runs import Runs, delivered, plan_of, report_of, rules_of, scheduled
from tests.support.audit.s3_server import S3Server
from tests.unit.audit.sample_report import commit_of

from delaytopic_audit.errors import LedgerError, OvertakenError
from delaytopic_audit.ledger.files import Files
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import OF_PART, Commit, Part
from delaytopic_audit.model.words import Finding
from delaytopic_audit.pipeline.gathering import current

pytestmark = pytest.mark.integration

BASE_MS = 1_795_269_600_000 // HOUR_MS * HOUR_MS
RULES = rules_of()
WRITERS = 8


@pytest.fixture(params=["a folder", "S3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of ledgers: an empty folder of this machine, or of a real S3 server."""
    if request.param == "a folder":
        return str(tmp_path)
    s3: S3Server = request.getfixturevalue("s3")
    return s3.url(unique("ledgers"))


def ledger_in(spark: SparkSession, place: str) -> Ledger:
    return Ledger(spark, place)


def findings(ledger: Ledger, commit: Commit) -> list[tuple[str, int]]:
    return sorted((row.finding, row.offset) for row in current(ledger, commit, "findings").collect())


def run_folders(spark: SparkSession, place: str) -> list[str]:
    return Files(spark, place).names("runs")


def hour(spark: SparkSession, place: str) -> Commit:
    """A run with one record that arrived and one that did not."""
    sent = (scheduled(BASE_MS, BASE_MS + 1_000), scheduled(BASE_MS, BASE_MS + 2_000))
    arrived = delivered(0, BASE_MS + 1_000, BASE_MS + 1_001)
    return Runs(spark, ledger_in(spark, place)).run(BASE_MS + HOUR_MS, RULES, *sent, arrived)


@pytest.mark.takes_long("starts S3")
def test_of_many_that_create_a_file_at_once_one_does_and_the_others_say_so(spark: SparkSession, place: str) -> None:
    barrier, files = Barrier(WRITERS), Files(spark, place)

    def create(number: int) -> str:
        barrier.wait()
        try:
            files.create("commits/1.json", f"writer {number}")
        except OvertakenError:
            return "overtaken"
        return f"writer {number}"

    with ThreadPoolExecutor(WRITERS) as writers:
        said = sorted(writers.map(create, range(WRITERS)))

    assert said == ["overtaken"] * (WRITERS - 1) + [files.read("commits/1.json")]
    assert files.names("commits") == ["1.json"]


def test_a_place_that_takes_no_files_is_no_conflict(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "commits").write_text("no folder", encoding="utf-8")

    with pytest.raises(LedgerError, match="cannot be written") as raised:
        Files(spark, str(tmp_path)).create("commits/1.json", "text")

    assert not isinstance(raised.value, OvertakenError)


@pytest.mark.nightly  # each day the quicker one of two audits counts
@pytest.mark.takes_long("carries out three runs")
def test_of_two_runs_of_a_plan_the_first_to_commit_counts_with_all_its_tables(
    spark: SparkSession, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, winners = Ledger.commit, list[Commit]()

    def after_another(ledger: Ledger, commit: Commit) -> None:
        monkeypatch.setattr(Ledger, "commit", usual)
        winners.append(hour(spark, place))
        usual(ledger, commit)

    monkeypatch.setattr(Ledger, "commit", after_another)
    with pytest.raises(OvertakenError):
        hour(spark, place)

    ledger, (winner,) = ledger_in(spark, place), winners
    assert ledger.last_commit() == winner
    assert findings(ledger, winner) == [(str(Finding.LOST), 1)]
    late = delivered(1, BASE_MS + 2_000, BASE_MS + 2 * HOUR_MS - 1)
    following = Runs(spark, ledger, asked=2).run(BASE_MS + 2 * HOUR_MS, RULES, late)
    assert findings(ledger, following) == [(str(Finding.LATE), 1)]
    assert {f"runs/{name}" for name in run_folders(spark, place)} == {winner.folder, following.folder}


@pytest.mark.nightly
@pytest.mark.takes_long("carries out six runs")
def test_a_run_that_was_frozen_while_many_others_came_after_it_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    ledger = ledger_in(spark, str(tmp_path))
    frozen = hour(spark, str(tmp_path))
    runs = Runs(spark, ledger, asked=2)
    for number in range(2, 6):
        last = runs.run(BASE_MS + number * HOUR_MS, RULES)
    before = sorted(str(file) for file in tmp_path.rglob("*"))

    with pytest.raises(OvertakenError):
        ledger.commit(frozen)

    assert sorted(str(file) for file in tmp_path.rglob("*")) == before
    assert ledger.last_commit() == last
    assert findings(ledger, last) == [(str(Finding.LOST), 1)]


@pytest.mark.takes_long("carries out a run")
@pytest.mark.parametrize("place", ["a folder", pytest.param("S3", marks=pytest.mark.nightly)], indirect=True)
def test_a_sweep_leaves_what_later_runs_are_writing(spark: SparkSession, place: str) -> None:
    last, files = hour(spark, place), Files(spark, place)
    for name in ("00000002-abcd", "00000001-abcd"):
        files.create(f"runs/{name}/records/part.parquet", "unfinished")

    ledger_in(spark, place).sweep(last)

    assert run_folders(spark, place) == [Path(last.folder).name, "00000002-abcd"]


@pytest.mark.takes_long("carries out three audits")
def test_an_audit_that_was_overtaken_says_so_and_the_next_one_goes_on_from_the_winner(
    spark: SparkSession, audited: Callable[..., AuditedTopic], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, usual, now_ms = audited(1), Ledger.commit, time.time_ns() // 1_000_000

    def after_another(ledger: Ledger, commit: Commit) -> None:
        monkeypatch.setattr(Ledger, "commit", usual)
        topic.run(spark, now_ms)
        usual(ledger, commit)

    monkeypatch.setattr(Ledger, "commit", after_another)
    with pytest.raises(OvertakenError, match="another audit with this ledger was quicker: its verdicts count"):
        topic.run(spark, now_ms)

    assert topic.ledger(spark).open_plan() is None
    following = topic.run(spark, now_ms + HOUR_MS)
    assert following.reading is not None
    assert following.reading.run == 2


@pytest.mark.nightly
@pytest.mark.takes_long("carries out an audit while another one goes on")
def test_an_audit_whose_unfinished_files_the_quicker_one_has_removed_says_so_whatever_spark_throws(
    spark: SparkSession, audited: Callable[..., AuditedTopic], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, usual, now_ms = audited(1), Ledger.write, time.time_ns() // 1_000_000

    def after_another(*_: object) -> None:
        monkeypatch.setattr(Ledger, "write", usual)
        topic.run(spark, now_ms)
        # As S3 answers who commits them. Spark passes it on as it is; a local folder would be made anew.
        spark._jvm.java.io.FileReader("/gone")  # type: ignore[union-attr]

    monkeypatch.setattr(Ledger, "write", after_another)
    with pytest.raises(OvertakenError, match="was quicker: its verdicts count"):
        topic.run(spark, now_ms)


def test_a_report_whose_tables_a_later_run_replaced_says_so(spark: SparkSession, tmp_path: Path) -> None:
    ledger, last = ledger_in(spark, str(tmp_path)), commit_of()
    gone = last.model_copy(update={"parts": [Part(folder="runs/00000001-a/0-9", start=0, end=9, runs=1)]})

    with pytest.raises(LedgerError, match="if another run replaced them, try again"):
        report_of(ledger, gone, HOUR_MS, 0)


def test_the_plan_of_whoever_was_quicker_stays(spark: SparkSession, place: str) -> None:
    ledger = ledger_in(spark, place)
    quicker, slower = (plan_of(1, BASE_MS + number, RULES, (0, 9)) for number in range(2))
    ledger.write_plan(quicker)

    with pytest.raises(OvertakenError):
        ledger.write_plan(slower)

    assert ledger.open_plan() == quicker


@pytest.mark.nightly
@pytest.mark.takes_long("carries out three runs")
def test_a_run_on_s3_whose_server_dies_before_its_commit_is_repeated_with_the_tables_of_a_folder(
    spark: SparkSession, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, usual = s3.url(unique("killed")), Ledger.commit

    def without_server(ledger: Ledger, commit: Commit) -> None:
        s3.kill()
        try:
            usual(ledger, commit)
        finally:
            s3.start()

    monkeypatch.setattr(Ledger, "commit", without_server)
    with pytest.raises(LedgerError):
        hour(spark, place)
    monkeypatch.setattr(Ledger, "commit", usual)

    on_s3, in_folder = hour(spark, place), hour(spark, str(tmp_path))

    assert run_folders(spark, place) == [Path(on_s3.folder).name]
    for table in OF_PART:
        found, expected = (
            sorted(map(tuple, current(ledger_in(spark, where), commit, table).collect()), key=str)
            for where, commit in ((place, on_s3), (str(tmp_path), in_folder))
        )
        assert found == expected
