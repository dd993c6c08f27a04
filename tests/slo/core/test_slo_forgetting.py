"""What a ledger forgets after its retention, and what it may not; and that nothing is left of it, kill or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.slo.delay_topics import HOUR_MS
from tests.slo.runs import Runs, cancelled, delivered, refused, rules_of, scheduled

from delaytopic_slo.audit import report_of
from delaytopic_slo.files import Files
from delaytopic_slo.ledger import Ledger
from delaytopic_slo.manifest import Commit
from delaytopic_slo.report_model import Report, Verdict

pytestmark = pytest.mark.long

BASE_MS = 1_795_269_600_000 // HOUR_MS * HOUR_MS
SHORT = rules_of(retention_ms=2 * HOUR_MS)


class Killed(BaseException):
    """The end of a process, in the place where it is raised."""


def hours(count: float) -> int:
    return BASE_MS + int(count * HOUR_MS)


def runs_in(spark: SparkSession, folder: Path) -> Runs:
    return Runs(spark, Ledger(spark, str(folder), "tests/orders"))


def report_at(runs: Runs, now_ms: int) -> Report:
    commit = runs.ledger.last_commit()
    assert commit is not None
    return report_of(runs.ledger, commit, 24 * HOUR_MS, now_ms)


def told(report: Report) -> dict[str, list[int]]:
    """Source offsets by finding."""
    return {found.finding: [each.offset for each in found.listed] for found in report.findings}


def tables_in(folder: Path) -> list[str]:
    """Which tables have files."""
    place = folder / "tests.orders"
    return sorted({str(file.parent.relative_to(place)) for file in place.glob("runs/*/*/*.parquet")})


def test_minutes_older_than_retention_leave_the_ledger_with_their_files_and_pending_records_stay(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = runs_in(spark, tmp_path)
    old = [scheduled(hours(0), hours(0.5)), delivered(0, hours(0.5), hours(0.5))]
    pending = scheduled(hours(0.9), hours(9), b"pending")

    runs.run(hours(0.8), SHORT, *old)
    runs.run(hours(1), SHORT, pending)
    commit = runs.run(hours(4), SHORT)

    assert tables_in(tmp_path) == [
        "runs/00000002/commands",
        "runs/00000002/records",
        *(f"runs/00000003/{name}" for name in ("digests", "findings", "histogram", "records", "verdicts")),
    ]
    assert [run.sequence for run in commit.runs] == [2, 3]
    assert report_at(runs, hours(4)).counts == report_at(runs, hours(5)).counts


def test_what_arrives_for_a_forgotten_minute_is_counted_said_and_no_fault(spark: SparkSession, tmp_path: Path) -> None:
    runs = runs_in(spark, tmp_path)
    runs.run(hours(0.9), SHORT, scheduled(hours(0), hours(0.5)), scheduled(hours(0), hours(0.6)))
    runs.run(hours(4), SHORT)

    runs.run(hours(4.1), SHORT, delivered(0, hours(0.5), hours(4.05)), refused(1, hours(4.05)))
    report = report_at(runs, hours(4.1))

    assert (report.verdict, told(report)) == (Verdict.MET, {})
    assert report.reading is not None
    assert report.reading.beyond_retention == 2
    assert "2 records are of minutes older than the ledger's retention (2h)." in report.notes
    assert "The ledger remembers less than the window (--retention): what was due before is not judged." in report.notes


def test_a_dead_letter_of_what_was_never_asked_for_is_no_forgotten_one(spark: SparkSession, tmp_path: Path) -> None:
    runs = runs_in(spark, tmp_path)
    runs.run(hours(0.9), SHORT, scheduled(hours(0), hours(0.5)), delivered(0, hours(0.5), hours(0.5)))
    runs.run(hours(4), SHORT, refused(7, hours(3)))

    assert told(report_at(runs, hours(4))) == {"unknown": [7]}


def test_a_cancel_is_remembered_for_as_long_as_the_schedule_that_it_withdrew(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = runs_in(spark, tmp_path)

    runs.run(hours(0.5), SHORT, scheduled(hours(0), hours(9), b"far"))
    runs.run(hours(1), SHORT, cancelled(hours(0.9), b"far"))
    runs.run(hours(5), SHORT)
    runs.run(hours(10), SHORT)

    assert told(report_at(runs, hours(10))) == {"cancelled": [0]}


def test_a_longer_retention_brings_no_forgotten_minute_back(spark: SparkSession, tmp_path: Path) -> None:
    runs = runs_in(spark, tmp_path)
    runs.run(hours(0.9), SHORT, scheduled(hours(0), hours(0.5)))
    runs.run(hours(4), SHORT)

    runs.run(hours(4.1), rules_of(), delivered(0, hours(0.5), hours(4.05)))
    report = report_at(runs, hours(4.1))

    assert told(report) == {}
    assert report.reading is not None
    assert report.reading.beyond_retention == 1


@pytest.mark.parametrize("removals", [0, 1, 3])
def test_a_run_killed_between_its_commit_and_the_last_removal_leaves_nothing_behind_for_long(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removals: int
) -> None:
    killed, calm = runs_in(spark, tmp_path / "killed"), runs_in(spark, tmp_path / "calm")
    for runs in (killed, calm):
        runs.run(hours(0.9), SHORT, scheduled(hours(0), hours(0.5)), scheduled(hours(0), hours(9), b"far"))

    calm.run(hours(4), SHORT)
    with monkeypatch.context() as patched:
        kill_in_sweep(patched, removals)
        with pytest.raises(Killed):
            killed.run(hours(4), SHORT)
    for runs in (killed, calm):
        runs.run(hours(4.2), SHORT)

    assert tables_in(tmp_path / "killed") == tables_in(tmp_path / "calm")


def kill_in_sweep(patched: pytest.MonkeyPatch, removals: int) -> None:
    """The next sweep ends with the process after so many removals."""
    sweep, delete, left = Ledger.sweep, Files.delete, iter(range(removals))

    def deleting(files: Files, name: str) -> None:
        if next(left, None) is None:
            raise Killed
        delete(files, name)

    def killed(ledger: Ledger, last: Commit) -> None:
        patched.setattr(Files, "delete", deleting)
        sweep(ledger, last)

    patched.setattr(Ledger, "sweep", killed)
