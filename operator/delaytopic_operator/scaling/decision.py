"""The decision: one pure function of the policy, the signals, the memory and the time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from delaytopic_api.values import AutoscalingMode, ScaleToZero, Suspend
from delaytopic_operator.scaling import conditions, wording
from delaytopic_operator.scaling.assessment import Assessment, ScalingPolicy, assess
from delaytopic_operator.scaling.by_hand import TOLD_MS, change_by_hand, explain_change
from delaytopic_operator.scaling.conditions import ScalingCondition
from delaytopic_operator.scaling.need import Forecast
from delaytopic_operator.scaling.rules import Context, Reason, Recommendation, recommend
from delaytopic_operator.scaling.signals import FleetSignals
from delaytopic_operator.scaling.state import ScalingMemory, Step, observed


@dataclass(frozen=True, slots=True)
class Decision:
    """A number of relays with its reason, and what to remember of it."""

    current: int
    replicas: int
    reason: Reason
    sentence: str
    """The sentence for the event and the status."""
    mode: AutoscalingMode
    active: ScalingCondition
    capacity: ScalingCondition
    forecast: Forecast | None
    """None while too little is known."""
    next_look_ms: int
    """The time to ask again, at the latest."""
    decided_at_ms: int
    memory: ScalingMemory
    """The memory to be kept once the step was taken."""
    held: ScalingMemory
    """The memory to be kept where no step was taken: there was none, or it was withheld or refused."""
    assessment: Assessment | None
    """The assessment behind it; None while the source's partitions are not known."""
    by_hand: str | None = None
    """A sentence about a change by somebody who does not decide, when it is noticed."""

    @property
    def changed(self) -> bool:
        """True if there is a step to take."""
        return self.replicas != self.current

    @property
    def max_useful(self) -> int | None:
        """The size beyond which relays cannot help, or are not allowed."""
        return self.assessment.sizes.max_useful if self.assessment else None

    @property
    def wanted(self) -> int:
        """The size that the schedule ahead asks for, whatever holds it."""
        return self.assessment.wanted if self.assessment and self.replicas else self.replicas


def decide(policy: ScalingPolicy, current: int, signals: FleetSignals, memory: ScalingMemory, now_ms: int) -> Decision:
    """Decide for a Deployment whose `spec.replicas` is `current`; ask again no later than `next_look_ms`."""
    mode, asked = policy.autoscaling.mode, policy.autoscaling.replicas
    change = change_by_hand(mode, memory.replicas, current, memory.asked, asked, now_ms)
    memory = observed(memory, current, signals, now_ms, policy.pace)
    memory = replace(memory, asked=asked, by_hand=change or memory.by_hand)
    decision = _decided(policy, current, signals, memory, now_ms)
    if decision.changed:
        decision = replace(decision, memory=replace(decision.memory, by_hand=None))
    told = memory.by_hand
    if told is None or now_ms - told.at_ms >= TOLD_MS:
        return decision
    sentence = explain_change(told, mode)
    active = replace(decision.active, message=f"{decision.active.message} {sentence}")
    return replace(decision, active=active, by_hand=sentence if change is not None else None)


def _decided(
    policy: ScalingPolicy, current: int, signals: FleetSignals, memory: ScalingMemory, now_ms: int
) -> Decision:
    assessment = assess(policy, signals, memory, now_ms)
    context = Context(policy, current, signals, memory, assessment, now_ms) if assessment is not None else None
    if policy.autoscaling.mode is not AutoscalingMode.OPERATOR:
        return _external(policy, current, memory, context, now_ms)
    if context is None:
        return _within_limits(policy, current, memory, now_ms)
    recommendation = recommend(context)
    forecast = _forecast(context, recommendation.replicas)
    held = _with_recommendation(context)
    return Decision(
        current=current,
        replicas=recommendation.replicas,
        reason=recommendation.reason,
        sentence=_sentence(current, recommendation),
        mode=policy.autoscaling.mode,
        active=conditions.autoscaling_active(context, recommendation),
        capacity=conditions.capacity_sufficient(context, forecast, recommendation.replicas),
        forecast=forecast if context.assessment.known else None,
        next_look_ms=_next_look_ms(context, recommendation),
        decided_at_ms=now_ms,
        memory=_with_step(context, held, recommendation.replicas),
        held=held,
        assessment=context.assessment,
    )


def _next_look_ms(context: Context, recommendation: Recommendation) -> int:
    """Return the next poll, the moment that a later need is at hand, or when a step is allowed again."""
    now_ms, raise_at_ms = context.now_ms, context.assessment.raise_at_ms(recommendation.replicas)
    moments = [now_ms + context.policy.pace.poll_ms, raise_at_ms, recommendation.look_ms]
    return max(now_ms + 1, min(moment for moment in moments if moment is not None))


def _with_recommendation(context: Context) -> ScalingMemory:
    memory, assessment, now_ms = context.memory, context.assessment, context.now_ms
    if not assessment.known:
        return memory
    window_ms = context.policy.autoscaling.scale_down_stabilization.ms
    return replace(
        memory,
        recommendations=memory.recommendations.with_size(assessment.enough, now_ms, window_ms),
        peaks=memory.peaks.with_size(assessment.wanted, now_ms),
    )


def _with_step(context: Context, memory: ScalingMemory, replicas: int) -> ScalingMemory:
    if replicas == context.current:
        return memory
    return replace(memory, replicas=replicas, step=Step(context.now_ms, context.current, replicas))


def _forecast(context: Context, replicas: int) -> Forecast:
    """Return the lateness ahead, for three fleets."""
    fleets = context.current, replicas, max(replicas, context.current, context.most)
    # These are one and the same as long as there is nothing to do.
    late_ms = {relays: context.assessment.lateness_ms(relays) for relays in set(fleets)}
    return Forecast(*(late_ms[relays] for relays in fleets))


def _sentence(current: int, recommendation: Recommendation) -> str:
    if recommendation.replicas == current:
        return f"Stays at {wording.count(current, 'relay')}: {recommendation.why}."
    return f"From {current} to {wording.count(recommendation.replicas, 'relay')}: {recommendation.why}."


def _within_limits(policy: ScalingPolicy, current: int, memory: ScalingMemory, now_ms: int) -> Decision:
    """Keep the limits in the spec: without the number of partitions nothing else can be kept."""
    replicas = _limited(policy, current, knows_backlog=memory.backlog is not None)
    reason = Reason.SIGNAL_STALE
    if replicas != current:
        reason = Reason.MIN_REPLICAS if replicas > current else Reason.MAX_REPLICAS
    return Decision(
        current=current,
        replicas=replicas,
        reason=reason,
        sentence=_sentence(current, Recommendation(replicas, reason, "the source's partitions are not known yet")),
        mode=policy.autoscaling.mode,
        active=conditions.ACTIVE_UNKNOWN,
        capacity=conditions.CAPACITY_UNKNOWN,
        forecast=None,
        next_look_ms=now_ms + policy.pace.poll_ms,
        decided_at_ms=now_ms,
        memory=replace(memory, replicas=replicas),
        held=memory,
        assessment=None,
    )


def _limited(policy: ScalingPolicy, current: int, *, knows_backlog: bool) -> int:
    autoscaling = policy.autoscaling
    may_sleep = autoscaling.scale_to_zero is ScaleToZero.WHEN_NOTHING_PENDING and knows_backlog
    least = 0 if current == 0 and may_sleep else max(1, autoscaling.min_replicas)
    replicas = max(current, least)
    if autoscaling.max_replicas is not None:
        replicas = min(replicas, autoscaling.max_replicas)
    held = policy.paused_scale_out if replicas > current else policy.paused_scale_in
    return current if held or policy.suspend is Suspend.ALL else replicas


def _external(
    policy: ScalingPolicy, current: int, memory: ScalingMemory, context: Context | None, now_ms: int
) -> Decision:
    """Pass on a number that somebody else decides, and say whether it is enough."""
    mode, replicas = policy.autoscaling.mode, policy.autoscaling.replicas
    assessment = context.assessment if context is not None else None
    sentence = _external_sentence(mode, replicas, assessment)
    forecast = _forecast(context, replicas) if context is not None else None
    capacity = conditions.CAPACITY_UNKNOWN
    if context is not None and forecast is not None:
        capacity = conditions.capacity_sufficient(context, forecast, replicas)
    return Decision(
        current=current,
        replicas=replicas,
        reason=Reason.FIXED if mode is AutoscalingMode.FIXED else Reason.EXTERNAL_SCALER,
        sentence=sentence,
        mode=mode,
        active=conditions.external(mode, sentence),
        capacity=capacity,
        forecast=forecast if assessment is not None and assessment.known else None,
        next_look_ms=now_ms + policy.pace.poll_ms,
        decided_at_ms=now_ms,
        memory=replace(memory, replicas=replicas),
        held=memory,
        assessment=assessment,
    )


def _external_sentence(mode: AutoscalingMode, replicas: int, assessment: Assessment | None) -> str:
    who = "as relay.replicas says" if mode is AutoscalingMode.FIXED else "as an external scaler asks"
    sentence = f"{wording.count(replicas, 'relay')}, {who}"
    if assessment is None or not replicas:
        return f"{sentence}."
    sizes = assessment.sizes
    equal = next(size for size in range(1, replicas + 1) if sizes.power(size) >= sizes.power(replicas))
    if equal == replicas:
        return f"{sentence}."
    return f"{sentence}; with {wording.count(sizes.partitions, 'partition')}, {equal} would do as much."
