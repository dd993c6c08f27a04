"""The rule, as an ordered list: the first that has something to say decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from delaytopic_api.values import ScaleToZero, Suspend
from delaytopic_operator.scaling import wording
from delaytopic_operator.scaling.assessment import Assessment, ScalingPolicy
from delaytopic_operator.scaling.need import TAKES_IN_PER_SECOND, Need, NeedKind
from delaytopic_operator.scaling.signals import FleetSignals, fresh
from delaytopic_operator.scaling.state import ScalingMemory, is_complete


class Reason(StrEnum):
    """A word for programs: the reason for the number of relays."""

    DUE = "DueSoon"
    OVERDUE = "Overdue"
    INGEST = "IngestLag"
    MIN_REPLICAS = "MinReplicas"
    MAX_REPLICAS = "MaxReplicas"
    LESS_NEEDED = "LessNeeded"
    NOTHING_PENDING = "NothingPending"
    NEXT_DUE = "NextDue"
    NEW_RECORDS = "NewRecords"
    BLIND = "Blind"

    ENOUGH = "Enough"
    AT_MAXIMUM = "AtMaximum"
    NEEDED_SOON = "NeededSoon"
    STABILIZING = "Stabilizing"
    SIGNAL_STALE = "SignalStale"
    STEP_TOO_SOON = "StepTooSoon"
    PAUSED_SCALE_IN = "PausedScaleIn"
    PAUSED_SCALE_OUT = "PausedScaleOut"
    SUSPENDED = "Suspended"
    ASLEEP = "Asleep"
    EXTERNAL_SCALER = "ExternalScaler"
    FIXED = "Fixed"


class Recommendation(NamedTuple):
    """A number of relays, why, and when that will have to be looked at again (None: at the next poll)."""

    replicas: int
    reason: Reason
    why: str
    look_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Context:
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
        """True if there may be no relay at all."""
        return self.policy.autoscaling.scale_to_zero is ScaleToZero.WHEN_NOTHING_PENDING

    @property
    def complete(self) -> bool:
        """True if all is known, as of now."""
        return self.assessment.known and is_complete(self.signals, self.memory)

    @property
    def blind_ms(self) -> int:
        """The time for which no relay has told anything; 0 while one does."""
        seen_ms = self.memory.watch.seen_ms
        return self.now_ms - seen_ms if seen_ms is not None else 0

    @property
    def stale(self) -> bool:
        """True if something has been missing for longer than a rebalance explains."""
        pace = self.policy.pace
        return not pace.continues(self.memory.watch.complete_ms, self.now_ms, pace.stale_ms)

    @property
    def is_blind(self) -> bool:
        """True if no relay has told anything for so long that the present says less than the last day."""
        pace = self.policy.pace
        return not pace.continues(self.memory.watch.seen_ms, self.now_ms, pace.blind_ms - 1)

    def hold(self, reason: Reason, why: str, look_ms: int | None = None) -> Recommendation:
        """Leave everything as it is."""
        return Recommendation(self.current, reason, why, look_ms)


SILENT_MS = 600_000
"""The time for which nothing must have arrived."""
LEADS = 2
"""The number of lead times before a due time at which relays are started."""


def asleep(context: Context) -> Recommendation | None:
    """Wake, or sleep on, where there is no relay."""
    if context.current > 0:
        return None
    if not context.may_sleep:
        return _wake(context, Reason.MIN_REPLICAS, "scaleToZero is Never")
    end, backlog = fresh(context.signals.source_end, context.now_ms), context.memory.backlog
    if backlog is None:
        return _wake(context, Reason.BLIND, "nobody knows what is pending")
    if context.policy.delivers and backlog.pending:
        wake_ms = None if backlog.next_due_ms is None else backlog.next_due_ms - LEADS * context.assessment.lead_ms
        if wake_ms is None or context.now_ms >= wake_ms:
            return _wake(context, Reason.NEXT_DUE, _next_due(backlog.next_due_ms))
    if context.policy.takes_in and end is None:
        return _blind(context)
    if context.policy.takes_in and end != backlog.end:
        return _wake(context, Reason.NEW_RECORDS, f"{_new(end, backlog.end)} in the source")
    return _sleep_on(context)


def may_go(context: Context) -> Recommendation | None:
    """Take all relays away once none is needed."""
    if not context.may_sleep or not context.complete or context.current == 0 or not context.policy.delivers:
        return None
    signals, now_ms = context.signals, context.now_ms
    pending = fresh(signals.pending, now_ms)
    end, position = fresh(signals.source_end, now_ms), fresh(signals.position, now_ms)
    silent_ms = context.memory.arrivals.silent_ms(now_ms)
    if pending != 0 or end is None or end != position or silent_ms is None or silent_ms < SILENT_MS:
        return None
    return Recommendation(
        0, Reason.NOTHING_PENDING, f"nothing is pending, and nothing has arrived for {wording.length(silent_ms)}"
    )


def _sleep_on(context: Context) -> Recommendation:
    backlog = context.memory.backlog
    if backlog is None or not backlog.pending or backlog.next_due_ms is None:
        return context.hold(Reason.ASLEEP, "nothing is pending")
    why = f"{wording.count(backlog.pending, 'record')} pending, the next due at {wording.clock(backlog.next_due_ms)}"
    return context.hold(Reason.ASLEEP, why, backlog.next_due_ms - LEADS * context.assessment.lead_ms)


def _blind(context: Context) -> Recommendation:
    watched_ms = context.memory.arrivals.points[-1].at_ms if context.memory.arrivals.points else None
    since_ms = max(each for each in (watched_ms, context.memory.watch.seen_ms, 0) if each is not None)
    if context.policy.pace.continues(since_ms, context.now_ms, context.policy.pace.blind_ms - 1):
        return context.hold(Reason.SIGNAL_STALE, "Kafka does not tell whether records have arrived")
    return _wake(context, Reason.BLIND, "Kafka has not told for long whether records have arrived")


def _wake(context: Context, reason: Reason, why: str) -> Recommendation:
    return Recommendation(max(context.least, context.assessment.wanted), reason, why)


def _next_due(next_due_ms: int | None) -> str:
    return "records are pending" if next_due_ms is None else f"a record is due at {wording.clock(next_due_ms)}"


def _new(end: int | None, before: int) -> str:
    more = (end or 0) - before
    return wording.count(more, "new record") if more > 0 else "other records than before"


STEP_MS = 30_000
"""The time between any two steps."""
STEP_DOWN_MS = 60_000
"""The time between a step and one down: each costs a rebalance."""

REASONS = {NeedKind.DUE: Reason.DUE, NeedKind.OVERDUE: Reason.OVERDUE, NeedKind.INGEST: Reason.INGEST}


def suspended(context: Context) -> Recommendation | None:
    """Hold the fleet while everything stands still on purpose."""
    if context.policy.suspend is not Suspend.ALL:
        return None
    return context.hold(Reason.SUSPENDED, "delivery and ingest are suspended")


def limits(context: Context) -> Recommendation | None:
    """Keep the limits that people set, whatever the signals say."""
    if context.current > context.most:
        why = f"{context.most} of {wording.count(context.assessment.sizes.partitions, 'partition')} is the most of use"
        if not context.assessment.sizes.bound_by_partitions:
            why = f"maxReplicas is {context.policy.autoscaling.max_replicas}"
        return Recommendation(context.most, Reason.MAX_REPLICAS, why)
    if 0 < context.current < context.least:
        return Recommendation(
            context.least, Reason.MIN_REPLICAS, f"minReplicas is {context.policy.autoscaling.min_replicas}"
        )
    return None


def blind(context: Context) -> Recommendation | None:
    """Hold while no relay tells anything, and after a while trust the last day more than the present."""
    if context.assessment.known:
        return None
    peak = min(context.most, context.memory.peaks.p95() or 0)
    if context.is_blind and peak > context.current:
        why = f"no relay has told anything for {wording.length(context.blind_ms)}; so many were enough in the last day"
        return Recommendation(peak, Reason.BLIND, why)
    return context.hold(Reason.SIGNAL_STALE, "no relay tells what is due", context.now_ms + context.policy.pace.poll_ms)


def up(context: Context) -> Recommendation | None:
    """Add relays, if the work at hand asks for them."""
    wanted = context.assessment.wanted
    need = context.assessment.binding if wanted > context.current else None
    if need is None:
        return None
    return Recommendation(wanted, REASONS[need.kind], need_sentence(context, need))


def down(context: Context) -> Recommendation | None:
    """Take relays away, if fewer were enough for a while, and will be for as long as anybody can see."""
    window_ms = context.policy.autoscaling.scale_down_stabilization.ms
    if context.assessment.enough >= context.current or not context.policy.delivers:
        return None
    if not context.complete:
        return context.hold(Reason.SIGNAL_STALE, missing(context))
    if context.assessment.enough_ahead >= context.current:
        later = context.assessment.later
        return context.hold(Reason.NEEDED_SOON, need_sentence(context, later) if later else "more is needed soon")
    since_ms = context.memory.watch.since_ms
    if since_ms is None or context.now_ms - since_ms < window_ms:
        seen_ms = context.now_ms - since_ms if since_ms is not None else 0
        why = f"all signals have been there for {wording.length(seen_ms)} of {wording.length(window_ms)}"
        return context.hold(Reason.STABILIZING, why)
    past = context.memory.recommendations.most(context.now_ms, window_ms)
    if past is not None and past.relays >= context.current:
        verb = "was" if past.relays == 1 else "were"
        why = f"{wording.count(past.relays, 'relay')} {verb} wanted at {wording.clock(past.at_ms)}"
        return context.hold(Reason.STABILIZING, why)
    least = max(context.assessment.enough_ahead, past.relays if past else 0)
    have = "relay has" if least == 1 else "relays have"
    return Recommendation(least, Reason.LESS_NEEDED, f"{least} {have} been enough for {wording.length(window_ms)}")


def enough(context: Context) -> Recommendation:
    """Hold: there is nothing to do, or there are no more relays to add."""
    power = context.assessment.sizes.power(context.current)
    need = context.assessment.binding if context.assessment.most > power else None
    if need is not None and need.relays > power:
        return context.hold(Reason.AT_MAXIMUM, need_sentence(context, need))
    if not context.policy.delivers:
        return context.hold(Reason.SUSPENDED, "delivery is suspended: what is due waits, and relays stay for it")
    return context.hold(Reason.ENOUGH, "no more are needed, and no fewer")


RULES: tuple[Callable[[Context], Recommendation | None], ...] = (
    suspended,
    limits,
    asleep,
    blind,
    up,
    may_go,
    down,
)


def recommend(context: Context) -> Recommendation:
    """Apply the first rule that speaks, then what holds its step."""
    for rule in RULES:
        recommendation = rule(context)
        if recommendation is not None:
            return restrained(context, recommendation)
    return enough(context)


def restrained(context: Context, recommendation: Recommendation) -> Recommendation:
    """Hold a step that an annotation pauses, or that comes too soon after the last one."""
    if recommendation.replicas == context.current:
        return recommendation
    upward = recommendation.replicas > context.current
    past = f"{wording.count(recommendation.replicas, 'relay')} would be right: {recommendation.why}"
    if upward and context.policy.paused_scale_out:
        return context.hold(Reason.PAUSED_SCALE_OUT, past)
    if not upward and context.policy.paused_scale_in:
        return context.hold(Reason.PAUSED_SCALE_IN, past)
    step = context.memory.step
    # A sleeping fleet wakes at once: it was put to sleep after long silence, so that this cannot flap.
    if step is None or context.current == 0:
        return recommendation
    next_ms = step.at_ms + (STEP_MS if upward else STEP_DOWN_MS)
    if context.now_ms < next_ms and recommendation.reason not in (Reason.MIN_REPLICAS, Reason.MAX_REPLICAS):
        return context.hold(Reason.STEP_TOO_SOON, past, next_ms)
    return recommendation


def need_sentence(context: Context, need: Need) -> str:
    """Put a need in words, with its numbers."""
    records = wording.count(need.records, "record")
    if need.kind is NeedKind.OVERDUE:
        return f"{records} overdue, and a relay delivers {context.assessment.per_second:,} a second"
    if need.kind is NeedKind.INGEST:
        return f"{records} to take in within a minute, and a relay is taken to take in {TAKES_IN_PER_SECOND:,} a second"
    when = wording.between(need.from_ms, need.to_ms)
    return f"{records} due {when}, and a relay delivers {context.assessment.per_second:,} a second"


def missing(context: Context) -> str:
    """Say which signals are missing."""
    if context.signals.uncovered:
        return f"no relay reports {wording.partitions(context.signals.uncovered)}"
    if context.signals.settling:
        return f"{wording.partitions(tuple(sorted(context.signals.settling)))} being recovered"
    return "not all source partitions are known"
