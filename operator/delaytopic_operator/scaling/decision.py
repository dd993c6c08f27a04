"""How many relays there shall be: one pure function of the policy, the signals, the memory and the time."""

from __future__ import annotations

from dataclasses import replace

from delaytopic_api.values import AutoscalingMode
from delaytopic_operator.scaling import activity, sufficiency
from delaytopic_operator.scaling.assessment import assess
from delaytopic_operator.scaling.memory import ScalingMemory, Step
from delaytopic_operator.scaling.observing import observed
from delaytopic_operator.scaling.outcome import Decision
from delaytopic_operator.scaling.passing_on import forecast_of, passed_on, sentence_of, source_unknown
from delaytopic_operator.scaling.policy import ScalingPolicy
from delaytopic_operator.scaling.reading import fresh
from delaytopic_operator.scaling.rules import first_verdict
from delaytopic_operator.scaling.signals import FleetSignals
from delaytopic_operator.scaling.verdict import Case, Verdict


def decide(policy: ScalingPolicy, current: int, signals: FleetSignals, memory: ScalingMemory, now_ms: int) -> Decision:
    """What to do now.

    `current` is the Deployment's `spec.replicas`. Keep the decision's memory once its step was taken, or when it has
    none, and ask again no later than its `next_look_ms`.
    """
    memory = observed(memory, current, signals, now_ms, policy.poll_ms)
    assessment = assess(policy, current, signals, memory, now_ms)
    if policy.autoscaling.mode is not AutoscalingMode.OPERATOR:
        return passed_on(policy, current, signals, memory, assessment, now_ms)
    if assessment is None:
        return source_unknown(policy, current, memory, now_ms)
    case = Case(policy, current, signals, memory, assessment, now_ms)
    verdict = first_verdict(case)
    forecast = forecast_of(assessment, current, verdict.replicas)
    return Decision(
        current=current,
        replicas=verdict.replicas,
        reason=verdict.reason,
        sentence=sentence_of(current, verdict),
        mode=policy.autoscaling.mode,
        active=activity.autoscaling_active(case, verdict),
        capacity=sufficiency.capacity_sufficient(case, forecast, verdict.replicas),
        forecast=forecast if assessment.known else None,
        next_look_ms=_next_look_ms(case, verdict),
        decided_at_ms=now_ms,
        memory=_remembered(case, verdict),
        assessment=assessment,
    )


def _next_look_ms(case: Case, verdict: Verdict) -> int:
    """At the next poll, or exactly when a later need will be at hand, or when a step is allowed again."""
    moments = [case.now_ms + case.policy.poll_ms, case.assessment.raise_at_ms(verdict.replicas), verdict.look_ms]
    return max(case.now_ms + 1, min(moment for moment in moments if moment is not None))


def _remembered(case: Case, verdict: Verdict) -> ScalingMemory:
    memory, now_ms = case.memory, case.now_ms
    if case.assessment.known:
        window_ms = case.policy.autoscaling.scale_down_stabilization.ms
        memory = replace(
            memory,
            wishes=memory.wishes.with_wish(case.assessment.enough, now_ms, window_ms),
            peaks=memory.peaks.with_wish(case.assessment.wanted, now_ms),
        )
    memory = replace(memory, replicas=verdict.replicas)
    if verdict.replicas == case.current:
        return memory
    fleet = memory.capacity.fleet
    rate = fleet.per_second if fleet is not None else None
    overdue = fresh(case.signals.overdue, now_ms)
    return replace(memory, step=Step(now_ms, case.current, verdict.replicas, rate, overdue))
