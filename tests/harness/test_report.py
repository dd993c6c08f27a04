"""The closing report says what tests measured, beside how long they took."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.report import EXCUSE, STARTED, RunReport


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunReport:
    """One that counts no servers of this run."""
    monkeypatch.setenv(STARTED, "")
    return RunReport(tmp_path)


def test_what_a_test_measured_has_a_line_for_each_figure(report: RunReport) -> None:
    report.add("test_a.py::test_gap", "setup", 0.1, {EXCUSE: "waits for a session"})
    report.add("test_a.py::test_gap", "call", 2.0, {EXCUSE: "waits for a session", "gap_ms": 870, "twice": 0})

    sections = dict(report.sections(10.0, 60.0))

    assert sections["what tests measured"] == ["gap_ms=870  test_a.py::test_gap", "twice=0  test_a.py::test_gap"]


def test_a_run_in_which_nothing_was_measured_has_no_section_for_it(report: RunReport) -> None:
    report.add("test_a.py::test_sum", "call", 2.0, {})

    assert list(dict(report.sections(10.0, 60.0))) == ["the 30 longest tests", "time by folder", "servers started"]
