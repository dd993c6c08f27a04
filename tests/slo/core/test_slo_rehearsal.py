"""The audits by which Java learns: they do all that audits do."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from delaytopic_slo.rehearsal import rehearse
from delaytopic_slo.report_model import Verdict


def test_a_rehearsal_has_an_hour_that_is_well_and_one_with_every_fault(spark: SparkSession, tmp_path: Path) -> None:
    first, second = rehearse(tmp_path / "archive", 20_000)

    assert first.verdict is Verdict.MET
    assert first.counts is not None
    assert first.counts.delivered == 10_000 * 2
    assert second.verdict is Verdict.MISSED
    assert second.counts is not None
    faults = ("lost", "duplicated", "cancelled", "replaced", "dead_lettered")
    assert [name for name in faults if getattr(second.counts, name) == 0] == []
