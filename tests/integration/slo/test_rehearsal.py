"""The audits by which Java learns: they do all that audits do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delaytopic_slo.model.report import Verdict
from delaytopic_slo.rehearsal import rehearse

pytestmark = pytest.mark.long


@pytest.mark.takes_long("carries out two runs over thousands of records")
def test_a_rehearsal_has_an_hour_that_is_well_and_one_with_every_fault(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To ask for a session would change the settings of the one that all tests share.
    monkeypatch.setattr("delaytopic_slo.rehearsal.spark_session", lambda **_: spark)

    first, second = rehearse(tmp_path / "archive", 5_000)

    assert first.verdict is Verdict.MET
    assert first.counts is not None
    assert first.counts.delivered == 2_500 * 2
    assert second.verdict is Verdict.MISSED
    assert second.counts is not None
    faults = ("lost", "duplicated", "cancelled", "replaced", "dead_lettered")
    assert [name for name in faults if getattr(second.counts, name) == 0] == []
