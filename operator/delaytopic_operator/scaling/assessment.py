"""The settings in force, and what the signals ask for under them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from delaytopic_api.documents import AutoscalingSettings, Settings
from delaytopic_api.values import Suspend
from delaytopic_operator.scaling.need import (
    Crest,
    Need,
    Sizes,
    lateness_ms,
    most_of_due,
    need_of_ingest,
    needs_of_due,
    pieces,
    sizes_of,
)
from delaytopic_operator.scaling.pace import USUAL, Pace
from delaytopic_operator.scaling.signals import STALE_MS, FleetSignals, fresh
from delaytopic_operator.scaling.state import ScalingMemory

PAUSED_SCALE_IN = "delaytopic.dev/paused-scale-in"
PAUSED_SCALE_OUT = "delaytopic.dev/paused-scale-out"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """All that `decide` has to know of a DelayTopic's spec and annotations."""

    autoscaling: AutoscalingSettings
    precision_ms: int
    suspend: Suspend = Suspend.NONE
    paused_scale_in: bool = False
    paused_scale_out: bool = False
    pace: Pace = USUAL

    @classmethod
    def of(cls, settings: Settings, annotations: Mapping[str, str], pace: Pace = USUAL) -> Self:
        """Read what is in force; an annotation counts when it says "true"."""
        return cls(
            autoscaling=settings.autoscaling,
            precision_ms=settings.precision.ms,
            suspend=settings.suspend,
            paused_scale_in=annotations.get(PAUSED_SCALE_IN, "").strip().lower() == "true",
            paused_scale_out=annotations.get(PAUSED_SCALE_OUT, "").strip().lower() == "true",
            pace=pace,
        )

    @property
    def delivers(self) -> bool:
        """True if due records leave."""
        return self.suspend not in (Suspend.DELIVERY, Suspend.ALL)

    @property
    def takes_in(self) -> bool:
        """True if new records are taken in."""
        return self.suspend not in (Suspend.INGEST, Suspend.ALL)

    @property
    def utilization(self) -> float:
        """The share of a relay's capacity to plan with."""
        return float(self.autoscaling.target_utilization.ratio)

    def sizes(self, partitions: int) -> Sizes:
        """Return the sizes that the fleet may have."""
        return sizes_of(partitions, self.autoscaling.min_replicas, self.autoscaling.max_replicas)


MARGIN = 1.1
"""A smaller size must have a tenth to spare, so that noise around its limit does not move relays."""


@dataclass(frozen=True)
class Assessment:
    """A need that presses within `reach_ms` from now is one to act on."""

    sizes: Sizes
    now_ms: int
    reach_ms: int
    lead_ms: int
    per_second: int
    """Delivered by one relay."""
    planned_per_second: float
    """The part of that to plan with."""
    precision_ms: int
    overdue: int
    crests: tuple[Crest, ...]
    ingest: Need | None
    """The need for what is not taken in."""
    known: bool
    """True if the relays told what is due; otherwise the needs are a lower bound, or nothing."""

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """The needs of relays. Most decisions do without them: `most` is enough."""
        ahead, per_second = pieces(self.crests), self.planned_per_second
        due = needs_of_due(ahead, self.overdue, per_second, self.precision_ms, self.now_ms)
        return due if self.ingest is None else (*due, self.ingest)

    @cached_property
    def most(self) -> float:
        """A number of relays that no need exceeds."""
        return max(most_of_due(self.crests, self.overdue, self.planned_per_second), _relays(self.ingest))

    def at_hand(self, need: Need) -> bool:
        """Return whether relays started at the next look would come too late for it."""
        return need.pressing_ms <= self.now_ms + self.reach_ms

    @cached_property
    def binding(self) -> Need | None:
        """The largest need to act on."""
        return _largest(need for need in self.needs if self.at_hand(need))

    @cached_property
    def later(self) -> Need | None:
        """The largest need after that."""
        return _largest(need for need in self.needs if not self.at_hand(need))

    @cached_property
    def wanted(self) -> int:
        """The size for what is at hand."""
        return self._fit(lambda: _relays(self.binding))

    @cached_property
    def enough(self) -> int:
        """The size for what is at hand, with a margin: a fleet may shrink to it."""
        return self._fit(lambda: _relays(self.binding) * MARGIN)

    @property
    def enough_ahead(self) -> int:
        """The size for everything ahead, with a margin: later needs do not raise the fleet yet, but keep it."""
        return max(self.enough, self._fit(lambda: _relays(self.later) * MARGIN))

    def _fit(self, need: Callable[[], float]) -> int:
        least = self.sizes.allowed[0]
        return least if self.most * MARGIN <= self.sizes.power(least) else self.sizes.fit(need())

    def raise_at_ms(self, relays: int) -> int | None:
        """Return when more than so many relays will be asked for: just early enough for the first larger need."""
        most = self.sizes.outgrown_by(relays)
        if self.most <= most:
            return None
        larger = (need for need in self.needs if need.relays > most and not self.at_hand(need))
        return min((need.pressing_ms - self.reach_ms for need in larger), default=None)

    def lateness_ms(self, relays: int) -> int:
        """Forecast the most lateness ahead with so many relays, all running."""
        return lateness_ms(self.crests, self.overdue, self.per_second * self.sizes.power(relays))


def assess(policy: ScalingPolicy, signals: FleetSignals, memory: ScalingMemory, now_ms: int) -> Assessment | None:
    """Assess the signals; None while nobody knows how many partitions the source has."""
    if memory.partitions is None:
        return None
    sizes, capacity = policy.sizes(memory.partitions), memory.capacity
    due = signals.due if signals.due is not None and now_ms - signals.due.as_of_ms <= STALE_MS else None
    lead_ms = memory.lead_time.p95_ms()
    return Assessment(
        sizes=sizes,
        now_ms=now_ms,
        reach_ms=lead_ms + policy.pace.poll_ms,
        lead_ms=lead_ms,
        per_second=capacity.per_second,
        planned_per_second=capacity.per_second * policy.utilization,
        precision_ms=policy.precision_ms,
        overdue=fresh(signals.overdue, now_ms) or 0 if policy.delivers else 0,
        crests=tuple(due.crests(now_ms)) if due is not None and policy.delivers else (),
        ingest=_ingest(signals, memory, now_ms) if policy.takes_in else None,
        known=due is not None,
    )


def _ingest(signals: FleetSignals, memory: ScalingMemory, now_ms: int) -> Need | None:
    # Without any relay Kafka alone knows what has not been taken in.
    lag = fresh(signals.ingest_lag if signals.covered else signals.unread, now_ms)
    arriving = memory.arrivals.per_second() if fresh(signals.source_end, now_ms) is not None else None
    if lag is None and arriving is None:
        return None
    need = need_of_ingest(arriving or 0.0, lag or 0, now_ms)
    return need if need.relays > 0 else None


def _largest(needs: Iterable[Need]) -> Need | None:
    return max(needs, key=lambda need: need.relays, default=None)


def _relays(need: Need | None) -> float:
    return need.relays if need is not None else 0.0
