"""Lateness at the target, under steady load and for a burst that is due in one instant. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.cases.flow import Flow
from bench.figures.statistics import Lateness, lateness_of
from bench.processes.plan import Phase, Plan


@dataclass(frozen=True, slots=True)
class LatenessRun:
    """Lateness in each phase of a plan, and the time that the burst took from its due time; None without one."""

    arrived: tuple[tuple[Phase, Lateness], ...]
    appended: tuple[tuple[Phase, Lateness], ...]
    burst_ms: float | None


def lateness_in(plan: Plan, flow: Flow) -> LatenessRun:
    """Return the figures of a plan that has run. No record is left out."""
    *steady, burst = plan.ranges()

    def by_phase(times_ms: Mapping[int, int]) -> tuple[tuple[Phase, Lateness], ...]:
        return tuple(
            (phase, lateness_of(times_ms[sequence] - flow.due_ms[sequence] for sequence in sequences))
            for phase, sequences in zip(plan.phases, steady, strict=True)
        )

    last_ms = max((flow.arrived_ms[sequence] - flow.due_ms[sequence] for sequence in burst), default=None)
    return LatenessRun(by_phase(flow.arrived_ms), by_phase(flow.appended_ms), last_ms)
