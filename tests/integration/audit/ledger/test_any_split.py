"""Whatever runs the same input is split into: the verdicts are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic
from tests.support.audit.runs import CONFIG, Runs, carry_out_with, delivered, plan_of, rules_of, scheduled
from tests.support.audit.truth import Truth
from tests.unit.audit.messages import extract_of

from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.ledger.parts import FAN
from delaytopic_audit.model.manifest import OF_PART
from delaytopic_audit.model.words import MINUTE_MS, Finding
from delaytopic_audit.pipeline.gathering import current
from delaytopic_audit.reading.decoding import Row
from delaytopic_audit.tables.minutes import MOST_RANGES

BASE_MS = 1_795_269_600_000 // HOUR_MS * HOUR_MS
END_MS = BASE_MS + 6 * HOUR_MS

pytestmark = pytest.mark.long
Tables = dict[str, list[tuple[object, ...]]]


def audited(
    spark: SparkSession, place: Path, rows: Sequence[tuple[int, Row]], ends_ms: Sequence[int]
) -> tuple[Tables, list[int]]:
    """Return verdicts, histogram and findings after runs that end at these times, and how many each run is of now."""
    ledger, start_ms = Ledger(spark, str(place)), 0
    for sequence, end_ms in enumerate(ends_ms, start=1):
        of_run = [row for append_ms, row in rows if start_ms <= append_ms < end_ms]
        carry_out_with(spark, ledger, plan_of(sequence, end_ms, rules_of(), (0, len(rows))), of_run)
        start_ms = end_ms
    commit = ledger.last_commit()
    assert commit is not None
    tables = {table: current(ledger, commit, table).collect() for table in OF_PART}
    found = {table: sorted((tuple(row) for row in rows), key=str) for table, rows in tables.items()}
    return found, [run.runs for run in commit.runs]


def assert_same_after_any_runs(spark: SparkSession, seed: int, each: int, cuts: Sequence[int]) -> list[int]:
    """Compare one run over all records with runs that end at these times and at the end of all.

    Returns how many runs each of the latter is of by then.
    """
    rows = extract_of(Truth(AuditedTopic("orders", "", Path()), 0, seed, BASE_MS, each), CONFIG)

    with TemporaryDirectory() as folder:
        whole, _ = audited(spark, Path(folder) / "whole", rows, [END_MS])
        split, runs = audited(spark, Path(folder) / "split", rows, [*sorted(cuts), END_MS])

    assert split == whole
    assert len(whole["verdicts"]) > 100
    return runs


@pytest.mark.nightly  # each day two runs find exactly what was injected
@pytest.mark.takes_long("carries out four runs")
def test_three_runs_give_the_same_verdicts_findings_and_histogram_as_one(spark: SparkSession) -> None:
    # In the middle of the deadlines, and when all are over but not all of what is late has come.
    assert_same_after_any_runs(spark, 4711, 100, [BASE_MS + HOUR_MS + 1_234_567, BASE_MS + 3 * HOUR_MS + 1])


@pytest.mark.nightly
@pytest.mark.takes_long("carries out eleven runs")
def test_runs_whose_records_were_put_together_give_the_same_as_one(spark: SparkSession) -> None:
    cuts = [BASE_MS + number * HOUR_MS // 3 for number in range(FAN + 1)]

    assert assert_same_after_any_runs(spark, 815, 100, cuts) == [FAN, 1, 1]


@pytest.mark.nightly
@pytest.mark.takes_long("carries out two runs")
def test_a_minute_that_is_graded_again_only_because_it_lies_among_others_keeps_its_loss(
    spark: SparkSession, tmp_path: Path
) -> None:
    minutes = 2 * MOST_RANGES + 2
    due_ms = [BASE_MS + number * MINUTE_MS for number in range(minutes)]
    runs = Runs(spark, Ledger(spark, str(tmp_path)))
    runs.run(END_MS, rules_of(), *(scheduled(BASE_MS, each) for each in due_ms))

    late = (delivered(offset, each, END_MS + 1) for offset, each in enumerate(due_ms) if offset % 2 == 0)
    commit = runs.run(END_MS + HOUR_MS, rules_of(), *late)

    found = current(runs.ledger, commit, "findings").select("finding", "offset").collect()
    assert sorted((row.offset, row.finding) for row in found) == [
        (offset, str(Finding.LOST if offset % 2 else Finding.LATE)) for offset in range(minutes)
    ]


@pytest.mark.nightly
@given(
    seed=st.integers(0, 1_000_000),
    cuts=st.lists(st.integers(BASE_MS - 2 * HOUR_MS, END_MS - 1), min_size=1, max_size=3, unique=True),
)
@settings(max_examples=8, phases=[Phase.generate])
def test_any_split_into_runs_gives_the_same_verdicts_findings_and_histogram(
    spark: SparkSession, seed: int, cuts: list[int]
) -> None:
    assert_same_after_any_runs(spark, seed, 200, cuts)
