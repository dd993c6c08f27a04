"""Tests of reports that are written where only Spark's file systems reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.support.audit.s3_server import S3Server
from tests.unit.audit.sample_report import NOW_MS, sample_report

from delaytopic_audit.ledger.files import Files
from delaytopic_audit.report import no_verdict
from delaytopic_cli.audit.publishing import publish

pytestmark = pytest.mark.integration

NAMES = ["metrics.prom", "report.html", "report.json"]


@pytest.fixture(params=["a folder's URL", "S3"])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "S3":
        s3: S3Server = request.getfixturevalue("s3")
        return s3.url(unique("reports"))
    return tmp_path.as_uri()


def test_a_report_is_three_files_in_the_place_of_those_before(
    spark: SparkSession, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {"output": output, "push": None, "quiet": False, "exit_zero": False}
    first, second = sample_report(), no_verdict("shop/order-reminders", ["The topic is gone."], NOW_MS)

    codes = [publish(each, given, spark) for each in (first, second)]

    files = Files(spark, f"{output}/shop/order-reminders")
    assert codes == [1, 2]
    assert files.names("") == NAMES
    assert '"verdict": "CannotJudge"' in files.read("report.json")
    assert capsys.readouterr().out.splitlines()[-1] == f"  {files.place('report.html')}"
