"""A relay that is killed under load and started again in the same place: how long nothing came, and how long late."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

from bench.bed import Bed
from bench.cases.contenders import Contender
from bench.cases.flow import Flow, run_flow
from bench.clock import now_ms
from bench.errors import Unmeasurable
from bench.processes.measured import BenchProcess
from bench.processes.plan import Plan

AROUND_MS = 300
LATE_MS = 100
"""A record that comes so long after its time is one of those that the restart has delayed."""
ON_TIME_MS = 250
"""A relay has caught up when nothing was late for so long."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap from the kill until the first record came again, and until none was late any more."""

    first_ms: float
    caught_up_ms: float
    twice: int


def run_restart(bed: Bed, name: str, contender: Contender, plan: Plan, kill_after_s: float) -> Gap:
    """Kill a relay in the middle of a plan, and start it at once."""
    killed_ms = 0.0

    def kill(relay: BenchProcess) -> None:
        nonlocal killed_ms
        time.sleep(kill_after_s)
        relay.check()
        killed_ms = now_ms()
        relay.kill()
        relay.start()

    flow = run_flow(bed, name, contender, plan, kill)
    return gap_in(name, flow, killed_ms)


def gap_in(name: str, flow: Flow, killed_ms: float) -> Gap:
    """Return the gap of a flow. Raises `Unmeasurable` where nothing was on its way when the relay was killed.

    Some records are seen after the kill that were there before it, so that the silence begins a moment later.
    """
    arrivals = sorted((arrived_ms, sequence) for sequence, arrived_ms in flow.arrived_ms.items())
    moments = [arrived_ms for arrived_ms, _ in arrivals]
    silences = [(end - begin, end) for begin, end in pairwise(moments) if abs(begin - killed_ms) <= AROUND_MS]
    if not any(killed_ms - AROUND_MS <= at_ms <= killed_ms for at_ms in moments) or not silences:
        raise Unmeasurable(f"{name}: nothing arrived for a while before the relay was killed")
    _, first_ms = max(silences)
    last_late_ms = first_ms
    for arrived_ms, sequence in arrivals:
        if arrived_ms > last_late_ms + ON_TIME_MS:
            break
        if arrived_ms > first_ms and arrived_ms - flow.due_ms[sequence] > LATE_MS:
            last_late_ms = arrived_ms
    return Gap(first_ms - killed_ms, last_late_ms - killed_ms, flow.twice)
