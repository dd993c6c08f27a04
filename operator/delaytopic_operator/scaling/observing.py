"""What a poll adds to the memory, before anything is decided."""

from __future__ import annotations

from dataclasses import replace

from delaytopic_operator.scaling.memory import Backlog, ScalingMemory, Step
from delaytopic_operator.scaling.reading import fresh
from delaytopic_operator.scaling.signals import FleetSignals

SETTLED_POLLS = 2
"""After the lead time, a step has had its effect."""
WORTH_IT = 1.2
"""A step up has helped if so much more is delivered."""
THROTTLED_MS = 600_000
"""After this, more relays are tried again."""


def observed(memory: ScalingMemory, current: int, signals: FleetSignals, now_ms: int, poll_ms: int) -> ScalingMemory:
    """The memory with this poll in it; wished sizes come later, with the decision."""
    seen = signals.due is not None and fresh(signals.pending, now_ms) is not None
    complete = seen and is_complete(signals, memory)
    memory = replace(
        memory,
        partitions=signals.partitions or memory.partitions,
        watch=memory.watch.observed(now_ms, seen=seen, complete=complete),
        arrivals=memory.arrivals.observed(signals.source_end),
        capacity=memory.capacity.observed(signals.relays, now_ms),
        lead_time=memory.lead_time.observed(signals),
        backlog=_backlog(signals, now_ms) or memory.backlog,
    )
    return _judged(_stepped(memory, current, signals, now_ms), signals, now_ms, poll_ms)


def is_complete(signals: FleetSignals, memory: ScalingMemory) -> bool:
    """Whether every partition is known in full; Kafka may be away as long as the number of partitions is known."""
    if signals.partitions is not None or memory.partitions is None:
        return signals.complete
    return replace(signals, partitions=memory.partitions).complete


def _backlog(signals: FleetSignals, now_ms: int) -> Backlog | None:
    if signals.position is None or signals.pending is None or signals.next_due is None or signals.settling:
        return None
    if not signals.pending.fresh(now_ms):
        return None
    return Backlog(signals.pending.as_of_ms, signals.pending.value, signals.next_due.value, signals.position.value)


def _stepped(memory: ScalingMemory, current: int, signals: FleetSignals, now_ms: int) -> ScalingMemory:
    """Another number than was decided last: somebody else took a step, and there is nothing to learn from it."""
    if memory.replicas is None or memory.replicas == current:
        return replace(memory, replicas=current)
    return replace(memory, replicas=current, step=Step(now_ms, memory.replicas, current, judged=True))


def _judged(memory: ScalingMemory, signals: FleetSignals, now_ms: int, poll_ms: int) -> ScalingMemory:
    """Whether the last step up has helped; what has been found is forgotten when nothing is overdue any more."""
    overdue = fresh(signals.overdue, now_ms)
    since_ms = memory.throttled_since_ms
    if since_ms is not None and (overdue == 0 or now_ms - since_ms >= THROTTLED_MS):
        memory = replace(memory, throttled_since_ms=None)
    step, fleet = memory.step, memory.capacity.fleet
    if step is None or step.judged or overdue is None or fleet is None:
        return memory
    at_work = sum(relay.delivering for relay in signals.relays)
    settled_ms = step.at_ms + memory.lead_time.p95_ms() + SETTLED_POLLS * poll_ms
    if now_ms < settled_ms or at_work < min(step.after, memory.partitions or 0):
        return memory
    memory = replace(memory, step=step._replace(judged=True))
    if step.per_second is None or step.overdue is None or step.after <= step.before:
        return memory
    in_vain = overdue > step.overdue and fleet.per_second < WORTH_IT * step.per_second
    return replace(memory, throttled_since_ms=now_ms) if in_vain else memory
