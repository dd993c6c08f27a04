"""What a report is made of: plain rows, small enough for one process. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from delaytopic_slo.model.report_model import Counts, Listed
from delaytopic_slo.model.words import Finding
from delaytopic_slo.report.objectives import MinuteCounts


@dataclass(frozen=True)
class Gathered:
    """What a report is made of. `minutes` cover the objective's window and the report's, the rest the report's."""

    minutes: list[MinuteCounts]
    partitions: dict[int, Counts]
    histogram: dict[int, dict[int, int]]
    """Records by minute and bucket."""
    findings: dict[Finding, list[Listed]]
    """Up to a bound of each."""
    provisional: int
    """Losses from the loss horizon on."""
