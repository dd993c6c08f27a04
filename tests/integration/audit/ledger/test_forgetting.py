"""Tests of what a ledger forgets after its retention, kill or not, and of what it must keep."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.audit.delay_topics import HOUR_MS
from tests.support.audit.runs import (
    Runs,
    cancelled,
    delivered,
    refused,
    report_of,
    rules_of,
    scheduled,
    without_attempt,
)
from tests.support.audit.truth import Sent

from delaytopic_audit.ledger.files import Files
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Commit
from delaytopic_audit.model.report import Report
from delaytopic_audit.model.rules import Rules

pytestmark = [pytest.mark.long, pytest.mark.takes_long("the first test that asks for a run carries it out")]

BASE_MS = 1_795_269_600_000 // HOUR_MS * HOUR_MS
SHORT = rules_of(retention_ms=2 * HOUR_MS)
LONG = rules_of()
FORGETS = 3
"""The run after which whatever runs before it brought is older than retention."""


class Killed(BaseException):
    """The end of a process, in the place where it is raised."""


def hours(count: float) -> int:
    return BASE_MS + int(count * HOUR_MS)


@dataclass(frozen=True)
class Ran:
    """The ledger after a run; `unswept` is a copy of the ledger from before its sweep."""

    commit: Commit
    report: Report
    tables: list[str]
    unswept: Path


# Runs within retention, one long after, and some for which there are latecomers.
RUNS: tuple[tuple[int, Rules, tuple[Sent, ...]], ...] = (
    (
        hours(0.8),
        SHORT,
        (
            *(scheduled(hours(0), hours(due)) for due in (0.5, 0.5, 0.6)),
            delivered(0, hours(0.5), hours(0.5)),
        ),
    ),
    (
        hours(1.2),
        SHORT,
        (
            *(scheduled(hours(0.9), hours(9), name) for name in (b"pending", b"withdrawn")),
            cancelled(hours(1.1), b"withdrawn"),
        ),
    ),
    (hours(4), SHORT, ()),
    (
        hours(4.1),
        SHORT,
        (delivered(1, hours(0.5), hours(4.05)), refused(2, hours(4.05)), refused(99, hours(3))),
    ),
    (hours(4.2), LONG, (delivered(1, hours(0.5), hours(4.15)),)),
    (hours(10), SHORT, ()),
)


@dataclass
class Story:
    """One ledger's runs, by number; each is carried out when it is first asked for, with those before it."""

    runs: Runs
    folder: Path
    copies: Path
    _ran: list[Ran] = field(default_factory=list)

    def after(self, sequence: int) -> Ran:
        """Return the ledger after a run."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Ledger, "sweep", copying_before(Ledger.sweep, self.folder, self.copies))
            for now_ms, rules, sent in RUNS[len(self._ran) : sequence]:
                commit = self.runs.run(now_ms, rules, *sent)
                report = report_of(self.runs.ledger, commit, 24 * HOUR_MS, now_ms)
                copy = self.copies / str(commit.sequence)
                self._ran.append(Ran(commit, report, tables_in(self.folder), copy))
        return self._ran[sequence - 1]


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder, copies = tmp_path_factory.mktemp("ledger"), tmp_path_factory.mktemp("copies")
    return Story(Runs(spark, Ledger(spark, str(folder))), folder, copies)


def copying_before(sweep: Callable[[Ledger, Commit], None], folder: Path, copies: Path) -> Callable[..., None]:
    """Return a sweep that first copies the ledger, under the number of its run."""

    def copying(ledger: Ledger, last: Commit) -> None:
        shutil.copytree(folder, copies / str(last.sequence))
        sweep(ledger, last)

    return copying


def told(report: Report) -> dict[str, list[int]]:
    """Source offsets by finding."""
    return {found.finding: [each.offset for each in found.listed] for found in report.findings}


def tables_in(folder: Path) -> list[str]:
    """Return which tables have files."""
    place = folder
    return sorted({without_attempt(str(file.parent.relative_to(place))) for file in place.glob("runs/**/*.parquet")})


def documents_in(folder: Path) -> list[str]:
    return sorted(file.name for file in (folder).glob("*/*.json"))


def test_minutes_older_than_retention_leave_the_ledger_with_their_files_and_pending_records_stay(story: Story) -> None:
    before, ran = story.after(FORGETS - 1), story.after(FORGETS)

    assert told(before.report) == {"lost": [1, 2]}
    assert told(ran.report) == {}
    assert ran.tables == [
        *("runs/00000002/commands", "runs/00000002/records"),
        *(f"runs/00000003/{name}" for name in ("digests", "records")),
    ]
    assert [run.sequence for run in ran.commit.runs] == [2, 3]


def test_what_arrives_for_a_forgotten_minute_is_counted_and_no_fault(story: Story) -> None:
    report = story.after(FORGETS + 1).report

    assert told(report).keys() == {"unknown"}
    assert report.reading is not None
    assert report.reading.beyond_retention == 2
    assert "2 records are of minutes older than the ledger's retention (2h)." in report.notes
    assert "The ledger remembers less than the window (--retention): what was due before is not judged." in report.notes


def test_a_dead_letter_of_what_was_never_asked_for_is_no_forgotten_one(story: Story) -> None:
    assert told(story.after(FORGETS + 1).report)["unknown"] == [99]


@pytest.mark.nightly
def test_a_longer_retention_brings_no_forgotten_minute_back(story: Story) -> None:
    report = story.after(FORGETS + 2).report

    assert told(report) == {"unknown": [99]}
    assert report.reading is not None
    assert report.reading.beyond_retention == 1


@pytest.mark.nightly
def test_a_cancel_and_a_pending_record_are_remembered_until_they_are_judged(story: Story) -> None:
    assert told(story.after(FORGETS + 3).report) == {"lost": [3], "cancelled": [4]}


def test_a_sweep_killed_after_any_number_of_removals_is_made_up_for_by_that_of_the_next_run(
    spark: SparkSession, story: Story, tmp_path: Path
) -> None:
    forgets, follows = story.after(FORGETS), story.after(FORGETS + 1)
    left, is_whole = [], False

    for removals in count():
        folder = tmp_path / str(removals)
        shutil.copytree(forgets.unswept, folder)
        ledger = Ledger(spark, str(folder))
        is_whole = sweep_until_killed(ledger, forgets.commit, removals)
        add_run(folder, follows)
        ledger.sweep(follows.commit)
        left.append((tables_in(folder), documents_in(folder)))
        if is_whole:
            break

    assert left == [left[-1]] * len(left)
    assert left[-1] == (follows.tables, [f"{sequence:08d}.json" for sequence in (2, 3, 4)])
    assert len(left) > 4


def sweep_until_killed(ledger: Ledger, last: Commit, removals: int) -> bool:
    """Sweep, but end with the process after so many removals; tell whether it came to its end."""
    delete, left = Files.delete, iter(range(removals))

    def deleting(files: Files, name: str) -> None:
        if next(left, None) is None:
            raise Killed
        delete(files, name)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Files, "delete", deleting)
        try:
            ledger.sweep(last)
        except Killed:
            return False
    return True


def add_run(folder: Path, ran: Ran) -> None:
    """Add what a run writes: its tables and its commit."""
    for name in (ran.commit.folder, f"commits/{ran.commit.sequence:08d}.json"):
        written = ran.unswept / name
        copy = shutil.copytree if written.is_dir() else shutil.copy
        copy(written, folder / name)
