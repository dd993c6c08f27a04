"""Several thresholds of lateness: each counts exactly, from the first minute on that was graded by it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.audit.delay_topics import DAY_MS, HOUR_MS
from tests.support.audit.runs import Runs, delivered, report_of, rules_of, scheduled, state_of, with_rules
from tests.support.audit.truth import Sent

from delaytopic_api import Percent
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Commit, CountedFrom, GradedUntil
from delaytopic_audit.model.report import Report
from delaytopic_audit.model.rules import Exclusion, Threshold
from delaytopic_audit.model.words import MINUTE_MS, minute_of
from delaytopic_audit.pipeline.gathering import current

pytestmark = pytest.mark.long

BASE_MS = 1_795_269_600_000 // HOUR_MS * HOUR_MS
FAST = Threshold(name="Timely-100ms", lateness_ms=100, objective=Percent("75%"))
SURE = Threshold(name="Timely-1m", lateness_ms=60_000, objective=Percent("90%"))
ONE, TWO = rules_of(grace_ms=125_000), rules_of(grace_ms=125_000, thresholds=[FAST, SURE])
LATENESSES_MS = (-3, 0, 99, 100, 101, 5_000, 5_001, 60_000, 60_001)
"""Of each minute's records: at most 100 ms late are four, at most 5 s six, at most 1 min eight of nine."""


def minute_ms(minute: int) -> int:
    return BASE_MS + minute * MINUTE_MS


def sent_in(runs: Runs, minute: int, *, lost: int = 0) -> list[Sent]:
    """A record of each lateness that is due in this minute, then some that never arrive, and their arrivals."""
    due_ms, first = minute_ms(minute) + 7, runs.asked
    asked = [scheduled(minute_ms(-30), due_ms) for _ in range(len(LATENESSES_MS) + lost)]
    return [*asked, *(delivered(first + place, due_ms, due_ms + late) for place, late in enumerate(LATENESSES_MS))]


def counted(runs: Runs, commit: Commit) -> dict[int, dict[str, Any]]:
    """The table of verdicts, by minute: what is not zero, and of lateness all."""
    names = ("asked", "delivered", "on_time", "late", "lost", "within")
    rows = current(runs.ledger, commit, "verdicts").collect()
    return {row.minute - minute_of(BASE_MS): {name: row[name] for name in names} for row in rows}


def of_minute(within: dict[int, int] | None, lost: int = 0) -> dict[str, Any]:
    return {"asked": 9 + lost, "delivered": 9, "on_time": 6, "late": 3, "lost": lost, "within": within}


def report(runs: Runs, commit: Commit) -> Report:
    return report_of(runs.ledger, commit, 24 * HOUR_MS, state_of(commit).plan.planned_at_ms)


def budgets(found: Report) -> dict[str, tuple[int, int, float]]:
    assert found.budget is not None
    told = {"Timely": found.budget, **{each.objective: each.budget for each in found.thresholds}}
    return {name: (each.total, each.spent, each.allowed) for name, each in told.items()}


@dataclass
class Story:
    """A ledger of before there were thresholds, and the runs since then."""

    runs: Runs
    before: Commit
    added: Commit
    restated: Commit
    report_added: Report
    report_restated: Report
    rows: dict[int, dict[str, Any]]


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Minutes 0 and 1 are graded by one threshold; from the second run on there are three. The third restates 1."""
    folder = tmp_path_factory.mktemp("ledger")
    runs = Runs(spark, Ledger(spark, str(folder)))
    before = runs.run(minute_ms(10), ONE, *sent_in(runs, 0), *with_offsets(runs, 9, 1))
    without_thresholds(spark, folder, before)
    lost_at = runs.asked + 9 + 9
    added = runs.run(minute_ms(30), TWO, *sent_in(runs, 20), *with_offsets(runs, 9, 21, lost=1))
    report_added = report(runs, added)
    late = delivered(9, minute_ms(1) + 7, minute_ms(31))
    healed = delivered(lost_at, minute_ms(21) + 7, minute_ms(21) + 7 + 50)
    restated = runs.run(minute_ms(50), TWO, late, healed)
    rows = counted(runs, restated)
    return Story(runs, before, added, restated, report_added, report(runs, restated), rows)


def with_offsets(runs: Runs, more: int, minute: int, *, lost: int = 0) -> list[Sent]:
    """The same of another minute, in the run that has so many source records before it."""
    moved = Runs(runs.spark, runs.ledger, runs.asked + more)
    return sent_in(moved, minute, lost=lost)


def without_thresholds(spark: SparkSession, ledger: Path, commit: Commit) -> None:
    """Make the ledger what a version without thresholds writes: neither column nor fields."""
    for part in commit.parts:
        place, older = ledger / part.folder / "verdicts", ledger / part.folder / "older"
        spark.read.parquet(str(place)).drop("within").write.parquet(str(older))
        for file in place.iterdir():
            file.unlink()
        place.rmdir()
        older.rename(place)
    for file in (ledger / "commits").glob("*.json"):
        document = json.loads(file.read_text(encoding="utf-8"))
        for state in document["states"]:
            del state["counted"], state["plan"]["rules"]["thresholds"]
        file.write_text(json.dumps(document), encoding="utf-8")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def test_each_minute_counts_exactly_by_each_threshold_that_it_was_graded_by(story: Story) -> None:
    assert story.rows == {
        0: of_minute(None),
        # It was graded again, with a second arrival of its first record.
        1: of_minute({100: 4, 60_000: 8}),
        20: of_minute({100: 4, 60_000: 8}),
        # The lost one arrived after all, 50 ms late.
        21: {"asked": 10, "delivered": 10, "on_time": 7, "late": 3, "lost": 0, "within": {100: 5, 60_000: 9}},
    }


def test_a_threshold_counts_from_the_first_minute_that_was_closed_with_it(story: Story) -> None:
    first = state_of(story.before).closed_minute

    assert state_of(story.before).counted == []
    assert state_of(story.added).counted == state_of(story.restated).counted == [
        CountedFrom(lateness_ms=100, minute=first),
        CountedFrom(lateness_ms=60_000, minute=first),
    ]  # fmt: skip
    assert {each.counts_from_ms for each in story.report_restated.thresholds} == {first * MINUTE_MS}


def test_what_was_graded_before_counts_for_the_first_threshold_alone(story: Story) -> None:
    """Not even where it is graded again: those are the minutes in which something came late."""
    assert budgets(story.report_added) == {
        "Timely": (37, 13, pytest.approx(0.037)),
        "Timely-100ms": (19, 11, 4.75),
        "Timely-1m": (19, 3, 1.9),
    }
    assert budgets(story.report_restated) == {
        "Timely": (37, 12, pytest.approx(0.037)),
        "Timely-100ms": (19, 10, 4.75),
        "Timely-1m": (19, 2, 1.9),
    }


def test_each_threshold_is_an_objective_of_its_own(story: Story) -> None:
    graded = {each.name: (each.good, each.bad, str(each.verdict)) for each in story.report_restated.objectives}

    assert graded == {
        "Timely": (25, 12, "Missed"),
        "Timely-100ms": (9, 10, "Missed"),
        "Timely-1m": (17, 2, "Missed"),
        "Complete": (37, 0, "Met"),
        "Unique": (36, 1, "Missed"),
        "NotEarly": (37, 0, "Met"),
    }


def test_exclusions_excuse_lateness_by_each_threshold(story: Story) -> None:
    excluded = Exclusion(from_ms=minute_ms(20), until_ms=minute_ms(21), reason="upgrade")
    rules = TWO.model_copy(update={"exclusions": [excluded]})

    found = report(story.runs, with_rules(story.restated, rules))

    assert budgets(found) == {
        "Timely": (28, 9, pytest.approx(0.028)),
        "Timely-100ms": (10, 5, 2.5),
        "Timely-1m": (10, 1, 1.0),
    }
    assert [each.budget.excluded for each in found.thresholds] == [9, 9]


def test_a_threshold_of_all_records_tells_the_hours_in_which_it_was_broken(story: Story) -> None:
    strict = FAST.model_copy(update={"objective": Percent("100%")})
    rules = TWO.model_copy(update={"thresholds": [strict, SURE]})

    found = report(story.runs, with_rules(story.restated, rules))

    assert [(each.hour_ms, each.objective, each.records) for each in found.faulty_hours] == [
        (BASE_MS, "Timely-100ms", 10),
        (BASE_MS, "Unique", 1),
    ]


@pytest.mark.nightly
def test_a_threshold_that_was_away_for_a_run_counts_anew(story: Story, spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, Ledger(spark, str(tmp_path)))
    first = runs.run(minute_ms(10), TWO, *sent_in(runs, 0))
    runs.run(minute_ms(20), ONE)

    again = runs.run(minute_ms(30), TWO, *sent_in(runs, 20))

    assert {each.minute for each in state_of(first).counted} == {minute_of(minute_ms(10) - 125_000 - 3 * DAY_MS)}
    assert {each.minute for each in state_of(again).counted} == {minute_of(minute_ms(20) - 125_000)}
    assert budgets(report(runs, again))["Timely-100ms"] == (9, 5, 2.25)


@pytest.mark.nightly
def test_minutes_keep_the_lateness_that_they_were_graded_by_and_the_report_says_until_when(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = Runs(spark, Ledger(spark, str(tmp_path)))
    before = runs.run(minute_ms(10), ONE, *sent_in(runs, 0))

    changed = runs.run(minute_ms(30), ONE.model_copy(update={"lateness_ms": 100}), *sent_in(runs, 20))

    assert {minute: row["on_time"] for minute, row in counted(runs, changed).items()} == {0: 6, 20: 4}
    known = [GradedUntil(lateness_ms=5_000, minute=state_of(before).closed_minute)]
    assert state_of(changed).formerly == known
    assert [note for note in report(runs, changed).notes if "beyond 5s" in note] != []
