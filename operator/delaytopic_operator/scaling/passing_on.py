"""Decisions that are not the operator's: somebody else says how many, or nothing is known of the source yet."""

from __future__ import annotations

from dataclasses import replace

from delaytopic_api.values import AutoscalingMode, ScaleToZero, Suspend
from delaytopic_operator.scaling import activity, sufficiency, wording
from delaytopic_operator.scaling.assessment import Assessment
from delaytopic_operator.scaling.forecast import Forecast
from delaytopic_operator.scaling.memory import ScalingMemory
from delaytopic_operator.scaling.outcome import Decision, Reason
from delaytopic_operator.scaling.policy import ScalingPolicy
from delaytopic_operator.scaling.signals import FleetSignals
from delaytopic_operator.scaling.verdict import Case, Verdict


def forecast_of(assessment: Assessment, current: int, replicas: int) -> Forecast:
    """The lateness ahead, for three fleets."""
    best = max(replicas, current, assessment.sizes.allowed[-1])
    return Forecast(*(assessment.lateness_ms(relays) for relays in (current, replicas, best)))


def sentence_of(current: int, verdict: Verdict) -> str:
    """A verdict for people."""
    if verdict.replicas == current:
        return f"Stays at {wording.count(current, 'relay')}: {verdict.why}."
    return f"From {current} to {wording.count(verdict.replicas, 'relay')}: {verdict.why}."


def source_unknown(policy: ScalingPolicy, current: int, memory: ScalingMemory, now_ms: int) -> Decision:
    """Without the number of partitions only the limits in the spec can be kept."""
    replicas = _within_limits(policy, current, knows_backlog=memory.backlog is not None)
    reason = Reason.SIGNAL_STALE
    if replicas != current:
        reason = Reason.MIN_REPLICAS if replicas > current else Reason.MAX_REPLICAS
    verdict = Verdict(replicas, reason, "the source's partitions are not known yet")
    return Decision(
        current=current,
        replicas=replicas,
        reason=reason,
        sentence=sentence_of(current, verdict),
        mode=policy.autoscaling.mode,
        active=activity.source_unknown(),
        capacity=sufficiency.source_unknown(),
        forecast=None,
        next_look_ms=now_ms + policy.poll_ms,
        decided_at_ms=now_ms,
        memory=replace(memory, replicas=replicas),
        assessment=None,
    )


def _within_limits(policy: ScalingPolicy, current: int, *, knows_backlog: bool) -> int:
    autoscaling = policy.autoscaling
    may_sleep = autoscaling.scale_to_zero is ScaleToZero.WHEN_NOTHING_PENDING and knows_backlog
    least = 0 if current == 0 and may_sleep else max(1, autoscaling.min_replicas)
    replicas = max(current, least)
    if autoscaling.max_replicas is not None:
        replicas = min(replicas, autoscaling.max_replicas)
    held = policy.paused_scale_out if replicas > current else policy.paused_scale_in
    return current if held or policy.suspend is Suspend.ALL else replicas


def passed_on(
    policy: ScalingPolicy,
    current: int,
    signals: FleetSignals,
    memory: ScalingMemory,
    assessment: Assessment | None,
    now_ms: int,
) -> Decision:
    """Somebody else decides; whether that is enough can still be said."""
    mode, replicas = policy.autoscaling.mode, policy.autoscaling.replicas
    sentence = _of_somebody_else(mode, replicas, assessment)
    capacity, forecast = sufficiency.source_unknown(), None
    if assessment is not None:
        forecast = forecast_of(assessment, current, replicas)
        case = Case(policy, current, signals, memory, assessment, now_ms)
        capacity = sufficiency.capacity_sufficient(case, forecast, replicas)
    return Decision(
        current=current,
        replicas=replicas,
        reason=Reason.FIXED if mode is AutoscalingMode.FIXED else Reason.EXTERNAL_SCALER,
        sentence=sentence,
        mode=mode,
        active=activity.passed_on(mode, sentence),
        capacity=capacity,
        forecast=forecast if assessment is not None and assessment.known else None,
        next_look_ms=now_ms + policy.poll_ms,
        decided_at_ms=now_ms,
        memory=replace(memory, replicas=replicas),
        assessment=assessment,
    )


def _of_somebody_else(mode: AutoscalingMode, replicas: int, assessment: Assessment | None) -> str:
    who = "as relay.replicas says" if mode is AutoscalingMode.FIXED else "as an external scaler asks"
    sentence = f"{wording.count(replicas, 'relay')}, {who}"
    if assessment is None or not replicas:
        return f"{sentence}."
    sizes = assessment.sizes
    equal = next(size for size in range(1, replicas + 1) if sizes.power(size) >= sizes.power(replicas))
    if equal == replicas:
        return f"{sentence}."
    return f"{sentence}; with {wording.count(sizes.partitions, 'partition')}, {equal} would do as much."
