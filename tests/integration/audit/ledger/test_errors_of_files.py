"""Errors of a ledger's place, whatever PySpark makes of what Java throws: whose fault, and whether to try again."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delaytopic_audit.errors import LedgerError
from delaytopic_audit.ledger.files import Files

pytestmark = pytest.mark.long


@pytest.mark.parametrize("place", ["nowhere://bucket/ledger", ":ledger"])
def test_a_place_that_no_file_system_takes_is_the_callers_fault(spark: SparkSession, place: str) -> None:
    with pytest.raises(LedgerError, match=f"^{place} is no place for files: .*another try ends in the same way$"):
        Files(spark, place)


def test_a_place_that_does_not_answer_may_be_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path))

    with pytest.raises(LedgerError, match=f"^{tmp_path}/missing cannot be read: .*what was committed is whole$"):
        files.read("missing")
