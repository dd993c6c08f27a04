"""How late records will be with so many relays: the due curve goes through a queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delaytopic_operator.scaling.due_curve import Crest


@dataclass(frozen=True, slots=True)
class Forecast:
    """The most lateness ahead: with the relays that there are, with those decided, and with all that may be."""

    held_ms: int
    decided_ms: int
    best_ms: int


def lateness_ms(crests: Sequence[Crest], overdue: int, per_second: float) -> int:
    """The most that a record in the look-ahead will be late at this rate of delivery; none waits twice for a start.

    What stands out of a span counts as due in one instant, and what is even leaves as it comes.
    """
    backlog = most = float(overdue)
    for crest in crests:
        backlog += crest.sudden
        most = max(most, backlog)
        width_seconds = (crest.end_ms - crest.start_ms) / 1_000
        backlog = max(0.0, backlog + crest.smooth - per_second * width_seconds)
        most = max(most, backlog)
    return round(most * 1_000 / per_second) if per_second > 0 else LONGEST_MS if most else 0


LONGEST_MS = 86_400_000
"""Stands for ever: no relay, and work to do."""
