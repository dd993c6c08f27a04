"""One poll's case, and what a rule has to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from delaytopic_api.values import ScaleToZero
from delaytopic_operator.scaling.assessment import Assessment
from delaytopic_operator.scaling.memory import ScalingMemory
from delaytopic_operator.scaling.observing import is_complete
from delaytopic_operator.scaling.outcome import Reason
from delaytopic_operator.scaling.policy import ScalingPolicy
from delaytopic_operator.scaling.reading import STALE_MS
from delaytopic_operator.scaling.signals import FleetSignals


class Verdict(NamedTuple):
    """A number of relays, why, and when that will have to be looked at again (None: at the next poll)."""

    replicas: int
    reason: Reason
    why: str
    look_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that rules look at; `memory` has this poll in it."""

    policy: ScalingPolicy
    current: int
    signals: FleetSignals
    memory: ScalingMemory
    assessment: Assessment
    now_ms: int

    @property
    def least(self) -> int:
        """Fewest relays while awake."""
        return self.assessment.sizes.allowed[0]

    @property
    def most(self) -> int:
        """Most relays."""
        return self.assessment.sizes.allowed[-1]

    @property
    def may_sleep(self) -> bool:
        """Whether there may be no relay at all."""
        return self.policy.autoscaling.scale_to_zero is ScaleToZero.WHEN_NOTHING_PENDING

    @property
    def complete(self) -> bool:
        """Whether all is known, as of now."""
        return self.assessment.known and is_complete(self.signals, self.memory)

    @property
    def blind_ms(self) -> int:
        """For how long no relay has told anything; 0 while one does."""
        seen_ms = self.memory.watch.seen_ms
        return self.now_ms - seen_ms if seen_ms is not None else 0

    @property
    def stale(self) -> bool:
        """Whether something has been missing for longer than a rebalance explains."""
        complete_ms = self.memory.watch.complete_ms
        return complete_ms is None or self.now_ms - complete_ms > STALE_MS

    def hold(self, reason: Reason, why: str, look_ms: int | None = None) -> Verdict:
        """Leave everything as it is."""
        return Verdict(self.current, reason, why, look_ms)
