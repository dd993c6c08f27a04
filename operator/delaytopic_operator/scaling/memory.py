"""What scaling remembers of a DelayTopic from poll to poll: bounded, and kept as a small document, so that an operator
that restarts goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from delaytopic_operator.scaling.arrivals import Arrivals
from delaytopic_operator.scaling.capacity import Capacity
from delaytopic_operator.scaling.lead_time import LeadTime
from delaytopic_operator.scaling.reading import STALE_MS
from delaytopic_operator.scaling.window import Peaks, Wishes

VERSION = 1


class Backlog(NamedTuple):
    """The last backlog that was known in full; `end` is the sum of the offsets below which all was taken in."""

    as_of_ms: int
    pending: int
    next_due_ms: int | None
    end: int


class Step(NamedTuple):
    """The last change of the number of relays, and how the fleet did before it."""

    at_ms: int
    before: int
    after: int
    per_second: int | None = None
    overdue: int | None = None
    judged: bool = False
    """Whether it was looked at what it brought."""


class Watch(NamedTuple):
    """How long the fleet has been in sight; a gap in the asking itself starts it anew."""

    asked_ms: int | None = None
    """When a decision was last asked for."""
    seen_ms: int | None = None
    """When any relay last told something, or when asking began."""
    complete_ms: int | None = None
    """When all was last known."""
    since_ms: int | None = None
    """Since when all has been known, with no gap longer than what is stale."""

    def observed(self, now_ms: int, *, seen: bool, complete: bool) -> Watch:
        """One more look."""
        watch = self if self.asked_ms is not None and now_ms - self.asked_ms <= STALE_MS else Watch(seen_ms=now_ms)
        unbroken = watch.complete_ms is not None and now_ms - watch.complete_ms <= STALE_MS
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
    """As decided last: another number means that somebody else changed it."""
    step: Step | None = None
    watch: Watch = NEVER_WATCHED
    throttled_since_ms: int | None = None
    """Since when more relays do not help."""
    backlog: Backlog | None = None
    wishes: Wishes = field(default_factory=Wishes)
    peaks: Peaks = field(default_factory=Peaks)
    arrivals: Arrivals = field(default_factory=Arrivals)
    capacity: Capacity = field(default_factory=Capacity)
    lead_time: LeadTime = field(default_factory=LeadTime)

    def to_document(self, now_ms: int) -> dict[str, Any]:
        """Plain JSON."""
        return {"version": VERSION, "savedAtMs": now_ms, "memory": _MEMORY.dump_python(self, mode="json")}

    @classmethod
    def from_document(cls, document: object) -> ScalingMemory:
        """What `to_document` wrote; anything else, such as another version's, is the empty memory."""
        if not isinstance(document, Mapping) or document.get("version") != VERSION:
            return cls()
        try:
            return _MEMORY.validate_python(document.get("memory"))
        except ValidationError:
            # A memory only saves learning again: nothing depends on it being there.
            return cls()

    def worth_saving(self, saved: ScalingMemory | None) -> bool:
        """Whether a restart from what was saved would decide worse; False in a steady state: no write per poll."""
        return saved is None or _lasting(self) != _lasting(saved)


def _lasting(memory: ScalingMemory) -> tuple[object, ...]:
    backlog = memory.backlog if memory.replicas == 0 else None
    return (
        memory.partitions,
        memory.replicas,
        memory.step,
        memory.throttled_since_ms,
        backlog._replace(as_of_ms=0) if backlog else None,
        memory.peaks.p95(),
        tuple(wish.relays for wish in memory.wishes.kept),
        memory.lead_time.starts_ms,
        _roughly(memory.capacity.delivery.remembered),
        _roughly(memory.capacity.ingest.remembered),
    )


def _roughly(value: int | None) -> int | None:
    """Two values of the same order are not worth a write."""
    return None if value is None else value.bit_length()


_MEMORY: TypeAdapter[ScalingMemory] = TypeAdapter(ScalingMemory)
