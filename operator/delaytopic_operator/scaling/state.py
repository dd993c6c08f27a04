"""The memory of scaling from poll to poll: bounded, and kept as a small document."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from delaytopic_operator.scaling.by_hand import HandChange
from delaytopic_operator.scaling.capacity import Arrivals, Capacity, LeadTime
from delaytopic_operator.scaling.pace import Pace
from delaytopic_operator.scaling.signals import FleetSignals, fresh

MOST_RECOMMENDATIONS = 64
HOUR_MS = 3_600_000
HOURS = 24


class PastRecommendation(NamedTuple):
    """A size, and when it was last recommended."""

    at_ms: int
    relays: int


@dataclass(frozen=True, slots=True)
class Recommendations:
    """Recommended sizes, later ones smaller: one that came before a larger one does not matter."""

    kept: tuple[PastRecommendation, ...] = ()

    def with_size(self, relays: int, now_ms: int, window_ms: int) -> Recommendations:
        """Take in a size, and forget what lies before the window."""
        kept = [past for past in self.kept if now_ms - past.at_ms <= window_ms and past.relays > relays]
        return Recommendations((*kept, PastRecommendation(now_ms, relays))[-MOST_RECOMMENDATIONS:])

    def most(self, now_ms: int, window_ms: int) -> PastRecommendation | None:
        """Return the largest that was recommended in the window."""
        return max(
            (past for past in self.kept if now_ms - past.at_ms <= window_ms), key=lambda past: past.relays, default=None
        )


class Peak(NamedTuple):
    """The most relays wanted in one hour since the epoch."""

    hour: int
    relays: int


@dataclass(frozen=True, slots=True)
class Peaks:
    """A day of hourly peaks."""

    kept: tuple[Peak, ...] = ()

    def with_size(self, relays: int, now_ms: int) -> Peaks:
        """Take in a wanted size."""
        hour = now_ms // HOUR_MS
        by_hour = {peak.hour: peak.relays for peak in self.kept if hour - HOURS < peak.hour <= hour}
        by_hour[hour] = max(relays, by_hour.get(hour, 0))
        return Peaks(tuple(Peak(each, by_hour[each]) for each in sorted(by_hour)))

    def p95(self) -> int | None:
        """Return the size that was enough in 95 of 100 hours."""
        ordered = sorted(peak.relays for peak in self.kept)
        return ordered[math.ceil(0.95 * len(ordered)) - 1] if ordered else None


VERSION: Final = 4
MEMORY_KEY: Final = "scaling.json"
"""The key in the data of the ConfigMap that holds the record of the route."""


class Backlog(NamedTuple):
    """The last backlog that was known in full; `end` is the sum of the offsets below which all was taken in."""

    as_of_ms: int
    pending: int
    next_due_ms: int | None
    end: int


class Step(NamedTuple):
    """The last change of the number of relays."""

    at_ms: int
    before: int
    after: int


class Watch(NamedTuple):
    """The time for which the fleet has been in sight; a gap in the asking itself starts it anew."""

    asked_ms: int | None = None
    """The time at which a decision was last asked for."""
    seen_ms: int | None = None
    """The time at which any relay last told something, or asking began."""
    complete_ms: int | None = None
    """The time at which all was last known."""
    since_ms: int | None = None
    """Since when all has been known, with no gap longer than what is stale."""

    def observed(self, now_ms: int, pace: Pace, *, seen: bool, complete: bool) -> Watch:
        """Take in one more look."""
        watch = self if pace.continues(self.asked_ms, now_ms, pace.stale_ms) else Watch(seen_ms=now_ms)
        unbroken = pace.continues(watch.complete_ms, now_ms, pace.stale_ms)
        since_ms = watch.since_ms if unbroken else None
        return Watch(
            asked_ms=now_ms,
            seen_ms=now_ms if seen else watch.seen_ms,
            complete_ms=now_ms if complete else watch.complete_ms,
            since_ms=now_ms if complete and since_ms is None else since_ms,
        )


NEVER_WATCHED = Watch()


@dataclass(frozen=True, slots=True)
class ScalingMemory:
    """Everything that a decision needs from the past. The empty one belongs to a DelayTopic never seen before."""

    partitions: int | None = None
    replicas: int | None = None
    """The number left by the last reconciliation: another one means that somebody else changed it."""
    asked: int | None = None
    """`spec.relay.replicas` as it was seen last."""
    by_hand: HandChange | None = None
    """The last change by somebody who does not decide."""
    step: Step | None = None
    watch: Watch = NEVER_WATCHED
    backlog: Backlog | None = None
    recommendations: Recommendations = field(default_factory=Recommendations)
    peaks: Peaks = field(default_factory=Peaks)
    arrivals: Arrivals = field(default_factory=Arrivals)
    capacity: Capacity = field(default_factory=Capacity)
    lead_time: LeadTime = field(default_factory=LeadTime)

    def to_document(self, now_ms: int) -> dict[str, Any]:
        """Dump plain JSON."""
        return {"version": VERSION, "savedAtMs": now_ms, "memory": _MEMORY.dump_python(self, mode="json")}

    @classmethod
    def from_document(cls, document: object) -> ScalingMemory:
        """Read what `to_document` wrote; anything else, such as another version's, is the empty memory."""
        if not isinstance(document, Mapping) or document.get("version") != VERSION:
            return cls()
        try:
            return _MEMORY.validate_python(document.get("memory"))
        except ValidationError:
            # A memory only saves learning again: nothing depends on it being there.
            return cls()

    def worth_saving(self, saved: ScalingMemory | None) -> bool:
        """Return whether a restart from `saved` would decide worse; False in a steady state: no write per poll."""
        if saved is None:
            return True
        return _lasting(self) != _lasting(saved)


def _lasting(memory: ScalingMemory) -> tuple[object, ...]:
    backlog = memory.backlog if memory.replicas == 0 else None
    return (
        memory.partitions,
        memory.replicas,
        memory.asked,
        memory.by_hand,
        memory.step,
        backlog._replace(as_of_ms=0) if backlog else None,
        memory.peaks.p95(),
        tuple(past.relays for past in memory.recommendations.kept),
        memory.lead_time.starts_ms,
        _roughly(memory.capacity.delivery.remembered),
    )


def _roughly(value: int | None) -> int | None:
    """Two values of the same order are not worth a write."""
    return None if value is None else value.bit_length()


_MEMORY: TypeAdapter[ScalingMemory] = TypeAdapter(ScalingMemory)


def memory_data(memory: ScalingMemory, now_ms: int) -> dict[str, str]:
    """Write the memory as data of a ConfigMap."""
    return {MEMORY_KEY: json.dumps(memory.to_document(now_ms), sort_keys=True)}


def memory_in(config_map: Mapping[str, Any] | None) -> ScalingMemory | None:
    """Read what `memory_data` wrote; None when nothing was written down, or nothing that can be read."""
    text = ((config_map or {}).get("data") or {}).get(MEMORY_KEY)
    if text is None:
        return None
    try:
        return ScalingMemory.from_document(json.loads(text))
    except ValueError:
        # A memory only saves learning again: nothing depends on it being there.
        return None


def observed(memory: ScalingMemory, current: int, signals: FleetSignals, now_ms: int, pace: Pace) -> ScalingMemory:
    """Take in this poll; recommended sizes come later, with the decision."""
    seen = signals.due is not None and fresh(signals.pending, now_ms) is not None
    complete = seen and is_complete(signals, memory)
    memory = replace(
        memory,
        partitions=signals.partitions or memory.partitions,
        watch=memory.watch.observed(now_ms, pace, seen=seen, complete=complete),
        arrivals=memory.arrivals.observed(signals.source_end, pace),
        capacity=memory.capacity.observed(signals.relays, now_ms, pace),
        lead_time=memory.lead_time.observed(signals),
        backlog=_backlog(signals, now_ms) or memory.backlog,
    )
    return _stepped(memory, current, now_ms)


def is_complete(signals: FleetSignals, memory: ScalingMemory) -> bool:
    """Return whether every partition is known in full, with Kafka's last count of them while it is away."""
    if signals.partitions is not None or memory.partitions is None:
        return signals.complete
    return replace(signals, partitions=memory.partitions).complete


def _backlog(signals: FleetSignals, now_ms: int) -> Backlog | None:
    if signals.position is None or signals.pending is None or signals.next_due is None or signals.settling:
        return None
    if not signals.pending.fresh(now_ms):
        return None
    return Backlog(signals.pending.as_of_ms, signals.pending.value, signals.next_due.value, signals.position.value)


def _stepped(memory: ScalingMemory, current: int, now_ms: int) -> ScalingMemory:
    """Take in a number that the last reconciliation did not leave: the step was another's."""
    if memory.replicas == current:
        return memory
    if memory.replicas is None:
        return replace(memory, replicas=current)
    return replace(memory, replicas=current, step=Step(now_ms, memory.replicas, current))
