"""The document report.json, and its reference."""

from __future__ import annotations

from pathlib import Path

from tests.unit.audit.reference import tables
from tests.unit.audit.sample_report import sample_report

from delaytopic_audit.model.report import Report

DOCS = Path(__file__).parents[4] / "docs" / "reference" / "audit-report-fields.md"


def test_a_report_survives_its_json() -> None:
    report = sample_report()

    assert Report.model_validate_json(report.model_dump_json(by_alias=True, exclude_none=True)) == report


def test_the_reference_names_every_field_of_the_report() -> None:
    assert DOCS.read_text(encoding="utf-8").endswith(tables()), "make it anew: python -m tests.unit.audit.reference"
