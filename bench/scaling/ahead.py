"""The operator's own rule, as it is in production, over what the witness reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.scaling.fleet import Fleet
from bench.scaling.horizontal import PHASE_SECONDS
from bench.scaling.witness import Witness, at_ms
from delaytopic_api.documents import AutoscalingSettings
from delaytopic_api.values import AutoscalingMode, Duration, Percent, ScaleToZero
from delaytopic_operator.scaling.assessment import ScalingPolicy
from delaytopic_operator.scaling.capacity import Capacity, LeadTime, RateEstimate
from delaytopic_operator.scaling.decision import decide
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.scaling.state import ScalingMemory

SETTINGS = AutoscalingSettings(
    mode=AutoscalingMode.OPERATOR,
    replicas=1,
    min_replicas=1,
    max_replicas=None,
    scale_to_zero=ScaleToZero.NEVER,
    look_ahead=Duration("10m"),
    scale_down_stabilization=Duration("5m"),
    target_utilization=Percent("60%"),
)


@dataclass(frozen=True, slots=True)
class Belief:
    """Knowledge that the operator starts with; None: that of a new one. `fixed` beliefs are never corrected."""

    per_second: int | None = None
    lead_seconds: int | None = None
    fixed: bool = False

    def memory(self) -> ScalingMemory:
        """Return the memory of an operator that has learnt this."""
        lead = LeadTime() if self.lead_seconds is None else LeadTime((self.lead_seconds * 1_000,) * 5)
        return ScalingMemory(
            capacity=Capacity(delivery=RateEstimate(remembered=self.per_second)),
            lead_time=lead,
        )


class ScheduleAware:
    """Polls as the operator does: every 15 s, and exactly when the last decision asked for it."""

    def __init__(self, witness: Witness, belief: Belief, precision_ms: int = 1_000) -> None:
        self._witness = witness
        self._belief = belief
        self._memory = belief.memory()
        self._policy = ScalingPolicy(SETTINGS, precision_ms)
        self._look_ms = at_ms(PHASE_SECONDS)

    def __call__(self, fleet: Fleet, second: int) -> None:
        """One second."""
        self._witness.tick(second)
        now_ms = at_ms(second)
        if now_ms < self._look_ms:
            return
        witness = self._witness
        signals = gather(witness.statuses(fleet, second), witness.offsets(fleet, second), now_ms)
        if self._belief.fixed:
            self._memory = replace(self._memory, capacity=self._belief.memory().capacity)
        decision = decide(self._policy, fleet.wanted, signals, self._memory, now_ms)
        self._memory, self._look_ms = decision.memory, decision.next_look_ms
        fleet.scale(decision.replicas, second)
