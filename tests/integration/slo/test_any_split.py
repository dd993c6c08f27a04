"""Whatever runs the same input is split into: the verdicts are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.integration.slo.delay_topics import HOUR_MS, AuditedTopic
from tests.integration.slo.runs import CONFIG, carry_out_with, plan_of, rules_of
from tests.integration.slo.truth import Truth
from tests.unit.slo.messages import extract_of

from delaytopic_slo.ledger.ledger import Ledger
from delaytopic_slo.pipeline.gathering import latest_findings
from delaytopic_slo.reading.decoding import Row
from delaytopic_slo.tables.schemas import HISTOGRAM, VERDICTS

BASE_MS = 1_795_269_600_000 // HOUR_MS * HOUR_MS
END_MS = BASE_MS + 6 * HOUR_MS

pytestmark = pytest.mark.long
Tables = tuple[list[tuple[object, ...]], ...]


def audited(spark: SparkSession, place: Path, rows: Sequence[tuple[int, Row]], ends_ms: Sequence[int]) -> Tables:
    """Return verdicts, histogram and findings after runs that end at these times."""
    ledger, start_ms = Ledger(spark, str(place), "tests/orders"), 0
    for sequence, end_ms in enumerate(ends_ms, start=1):
        of_run = [row for append_ms, row in rows if start_ms <= append_ms < end_ms]
        carry_out_with(spark, ledger, plan_of(sequence, end_ms, rules_of(), (0, len(rows))), of_run)
        start_ms = end_ms
    commit = ledger.last_commit()
    assert commit is not None
    verdicts = sorted(tuple(row) for row in ledger.read([commit.folder], "verdicts", VERDICTS).collect())
    histogram = sorted(tuple(row) for row in ledger.read([commit.folder], "histogram", HISTOGRAM).collect())
    found = latest_findings(ledger, commit, [row[0] for row in verdicts]).collect()
    return verdicts, histogram, sorted((tuple(row) for row in found), key=str)


def assert_same_after_any_runs(spark: SparkSession, seed: int, each: int, cuts: Sequence[int]) -> None:
    """Compare one run over all records with runs that end at these times and at the end of all."""
    rows = extract_of(Truth(AuditedTopic("orders", "", Path()), 0, seed, BASE_MS, each), CONFIG)

    with TemporaryDirectory() as folder:
        whole = audited(spark, Path(folder) / "whole", rows, [END_MS])
        split = audited(spark, Path(folder) / "split", rows, [*sorted(cuts), END_MS])

    assert split == whole
    assert len(whole[0]) > 100


@pytest.mark.takes_long("carries out four runs")
def test_three_runs_give_the_same_verdicts_findings_and_histogram_as_one(spark: SparkSession) -> None:
    # In the middle of the deadlines, and when all are over but not all of what is late has come.
    assert_same_after_any_runs(spark, 4711, 100, [BASE_MS + HOUR_MS + 1_234_567, BASE_MS + 3 * HOUR_MS + 1])


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
