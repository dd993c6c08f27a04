"""Goals of the figures, and the verdicts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """A figure, its goal, and whether it is reached."""

    OK = "ok"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The figure must not be below the limit."""

    limit: float

    def judge(self, value: float) -> Verdict:
        """The verdict on a figure."""
        return Verdict.OK if value >= self.limit else Verdict.MISSED


@dataclass(frozen=True, slots=True)
class AtMost:
    """The figure must not be above the limit."""

    limit: float

    def judge(self, value: float) -> Verdict:
        """The verdict on a figure."""
        return Verdict.OK if value <= self.limit else Verdict.MISSED


Goal = AtLeast | AtMost


def all_of(*verdicts: Verdict) -> Verdict:
    """One verdict of several."""
    return Verdict.OK if all(verdict is Verdict.OK for verdict in verdicts) else Verdict.MISSED


FIXED_DELAY: Final = AtLeast(0.60)
"""Of the plain null relay's rate, with AtLeastOnce."""
WITHIN_HORIZON: Final = AtLeast(0.45)
"""Of the plain null relay's rate, with AtLeastOnce."""
BACKLOG: Final = AtLeast(0.30)
"""Of the plain null relay's rate, in and out, with AtLeastOnce."""
DIALECT: Final = AtLeast(0.80)
"""Of the native dialect's rate inside the horizon, with AtLeastOnce."""
JSON_DIALECT: Final = AtLeast(0.60)
"""The same, for records in JSON."""
EXACTLY_ONCE: Final = AtLeast(0.75)
"""Of the same case's rate with AtLeastOnce."""

AT_LEAST_ONCE_P50_MS: Final = AtMost(3)
AT_LEAST_ONCE_P99_MS: Final = AtMost(20)
EXACTLY_ONCE_P50_MS: Final = AtMost(30)
EXACTLY_ONCE_P99_MS: Final = AtMost(80)
BURST_MS: Final = AtMost(1_000)
"""From the due time that all share until the last is visible."""
