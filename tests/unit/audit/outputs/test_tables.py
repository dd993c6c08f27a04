"""Tests of the parts of published tables and their page, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from tests.unit.audit.sample_report import END_MINUTE, NOW_MS, sample_report

from delaytopic_audit.outputs.tables import VERDICTS, verdict_row, way_to_reports
from delaytopic_audit.report import no_verdict


@pytest.mark.parametrize(
    ("tables", "reports", "way"),
    [
        ("s3a://audits/ledger/tables/classes/fast", "s3a://audits/ledger/reports", "../../../reports"),
        ("/var/lib/x/tables/classes/fast", "/var/lib/x/reports", "../../../reports"),
        ("file:///var/lib/x/tables/namespaces/shop", "/var/lib/x/reports", "../../../reports"),
        ("audit-tables", "audit report", "../audit%20report"),
        ("s3a://audits/tables", "s3a://others/reports", None),
        ("s3a://audits/tables", "/var/reports", None),
    ],
)
def test_the_page_leads_to_reports_in_the_same_store(tables: str, reports: str, way: str | None) -> None:
    assert way_to_reports(tables, reports) == way


def test_each_report_is_a_row_with_all_columns() -> None:
    reports = [sample_report(), no_verdict("shop/gone", ["The topic is gone."], NOW_MS)]
    rows = [verdict_row(each) for each in reports]

    read = pa.Table.from_pylist(rows, VERDICTS).to_pylist()

    assert [list(row) for row in rows] == [VERDICTS.names] * 2
    assert [(row["delay_topic"], row["missed"], row["lost"], row["budget_left"]) for row in read] == [
        ("shop/order-reminders", ["Timely", "Complete", "Unique", "NotEarly"], 3, reports[0].budget.remaining),  # type: ignore[union-attr]
        ("shop/gone", [], None, None),
    ]
    assert read[0]["window_to"] == datetime.fromtimestamp(END_MINUTE * 60, UTC)
