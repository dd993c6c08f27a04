"""Whatever runs the same input is split into: the verdicts are the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.slo.delay_topics import DAY_MS, HOUR_MS, AuditedTopic
from tests.slo.messages import config_for, extract_of
from tests.slo.truth import Truth

from delaytopic_api import Percent
from delaytopic_api.choices import Guarantee
from delaytopic_slo.decoding import Row
from delaytopic_slo.gathering import latest_findings
from delaytopic_slo.ledger import Ledger
from delaytopic_slo.manifest import FirstOffset, Plan, PlannedTopic, Range, Role
from delaytopic_slo.pipeline import carry_out
from delaytopic_slo.progress import silent
from delaytopic_slo.rules import Rules
from delaytopic_slo.schemas import EXTRACT, HISTOGRAM, VERDICTS

BASE_MS = 1_795_269_600_000 // HOUR_MS * HOUR_MS
END_MS = BASE_MS + 6 * HOUR_MS
RULES = Rules(
    lateness_ms=5_000,
    grace_ms=65_000,
    objective=Percent("99.9%"),
    window_ms=DAY_MS,
    guarantee=Guarantee.EXACTLY_ONCE,
    retention_ms=3 * DAY_MS,
)

pytestmark = pytest.mark.long
Tables = tuple[list[tuple[object, ...]], ...]


def audited(spark: SparkSession, place: Path, rows: Sequence[tuple[int, Row]], ends_ms: Sequence[int]) -> Tables:
    """Verdicts, histogram and findings after runs that end at these times."""
    ledger, start_ms = Ledger(spark, str(place), "tests/orders"), 0
    for sequence, end_ms in enumerate(ends_ms, start=1):
        of_run = [row for append_ms, row in rows if start_ms <= append_ms < end_ms]
        read = partial(as_it_is, spark.createDataFrame(of_run, EXTRACT))
        carry_out(plan_of(sequence, end_ms, rows), ledger, ledger.last_commit(), read, silent)
        start_ms = end_ms
    commit = ledger.last_commit()
    assert commit is not None
    verdicts = sorted(tuple(row) for row in ledger.read([commit.folder], "verdicts", VERDICTS).collect())
    histogram = sorted(tuple(row) for row in ledger.read([commit.folder], "histogram", HISTOGRAM).collect())
    found = latest_findings(ledger, commit, [row[0] for row in verdicts]).collect()
    return verdicts, histogram, sorted((tuple(row) for row in found), key=str)


def as_it_is(frame: DataFrame, _ranges: list[Range]) -> DataFrame:
    return frame


def plan_of(sequence: int, now_ms: int, rows: Sequence[tuple[int, Row]]) -> Plan:
    names = {"orders.source": Role.SOURCE, "orders.target": Role.TARGET, "orders.dlq": Role.DEAD_LETTER}
    topics = [PlannedTopic(topic=name, role=role, topic_id="x", partitions=4) for name, role in names.items()]
    asks = Range(topic="orders.source", role=Role.SOURCE, partition=0, start=0, end=len(rows))
    return Plan(
        delay_topic="tests/orders",
        sequence=sequence,
        epoch=1,
        planned_at_ms=now_ms,
        source="orders.source",
        target="orders.target",
        dead_letter="orders.dlq",
        rules=RULES,
        topics=topics,
        ranges=[asks],
        scope=[FirstOffset(partition=0, offset=0)],
    )


@given(
    seed=st.integers(0, 1_000_000),
    cuts=st.lists(st.integers(BASE_MS - 2 * HOUR_MS, END_MS - 1), min_size=1, max_size=2, unique=True),
)
@settings(max_examples=3, derandomize=True, phases=[Phase.generate])
def test_any_split_into_runs_gives_the_same_verdicts_findings_and_histogram(
    spark: SparkSession, seed: int, cuts: list[int]
) -> None:
    truth = Truth(AuditedTopic("orders", "", Path()), 0, seed, BASE_MS)
    rows = extract_of(truth, config_for("orders.source", "orders.target", "orders.dlq", ["orders.other"]))

    with TemporaryDirectory() as folder:
        whole = audited(spark, Path(folder) / "whole", rows, [END_MS])
        split = audited(spark, Path(folder) / "split", rows, [*sorted(cuts), END_MS])

    assert split == whole
    assert len(whole[0]) > 100
