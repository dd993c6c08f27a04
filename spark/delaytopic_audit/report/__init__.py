"""Reports: objectives, pages and metrics, made of verdicts."""

from __future__ import annotations

from delaytopic_audit.report.periods import CLOCK_CHANGE_MS, LONGEST_MS
from delaytopic_audit.report.reporting import no_verdict
from delaytopic_audit.report.status import slo_condition, slo_status

__all__ = ["CLOCK_CHANGE_MS", "LONGEST_MS", "no_verdict", "slo_condition", "slo_status"]
