"""The conditions AutoscalingActive and CapacitySufficient."""

from __future__ import annotations

from dataclasses import dataclass

from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_api.values import AutoscalingMode
from delaytopic_operator.scaling import wording
from delaytopic_operator.scaling.need import Forecast, useful_sizes
from delaytopic_operator.scaling.rules import Context, Reason, Recommendation, missing


@dataclass(frozen=True, slots=True)
class ScalingCondition:
    """A condition without the fields that whoever merges it knows: generation and time of transition."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str


def _active(status: ConditionStatus, reason: str, message: str) -> ScalingCondition:
    return ScalingCondition(ConditionType.AUTOSCALING_ACTIVE, status, reason, message)


NO_SOURCE = "Kafka has not told yet how many partitions the source has."


ACTIVE_UNKNOWN = _active(ConditionStatus.FALSE, Reason.SIGNAL_STALE, NO_SOURCE)


def external(mode: AutoscalingMode, sentence: str) -> ScalingCondition:
    """Say that somebody else decides."""
    reason = Reason.FIXED if mode is AutoscalingMode.FIXED else Reason.EXTERNAL_SCALER
    return _active(ConditionStatus.FALSE, reason, sentence)


def autoscaling_active(context: Context, recommendation: Recommendation) -> ScalingCondition:
    """Say whether the signals are fresh, and nobody holds the fleet."""
    policy = context.policy
    if recommendation.reason is Reason.SUSPENDED and not policy.takes_in:
        return _active(
            ConditionStatus.FALSE, Reason.SUSPENDED, "Delivery and ingest are suspended: relays stay as they are."
        )
    if policy.paused_scale_in and policy.paused_scale_out:
        return _active(ConditionStatus.FALSE, "Paused", "Both directions are paused by annotations.")
    if context.current == 0:
        if recommendation.reason in (Reason.SIGNAL_STALE, Reason.BLIND):
            return _active(
                ConditionStatus.FALSE, Reason.SIGNAL_STALE, f"{recommendation.why[0].upper()}{recommendation.why[1:]}."
            )
        return _active(
            ConditionStatus.TRUE, Reason.ASLEEP, "No relay runs; Kafka's offsets and the next due time are watched."
        )
    if context.stale:
        return _stale(context)
    if policy.paused_scale_in or policy.paused_scale_out:
        direction = Reason.PAUSED_SCALE_IN if policy.paused_scale_in else Reason.PAUSED_SCALE_OUT
        return _active(ConditionStatus.TRUE, direction, "One direction is paused by an annotation.")
    return _active(ConditionStatus.TRUE, "SignalsFresh", "Every source partition tells what is due.")


def _stale(context: Context) -> ScalingCondition:
    if context.memory.watch.complete_ms is None and not context.is_blind and not context.assessment.known:
        return _active(ConditionStatus.UNKNOWN, Reason.SIGNAL_STALE, "No relay has told yet what is due.")
    what = missing(context) if context.assessment.known else "no relay tells what is due"
    return _active(
        ConditionStatus.FALSE,
        Reason.SIGNAL_STALE,
        f"{what[0].upper()}{what[1:]}: relays are not taken away until it is known.",
    )


INSUFFICIENT = "CapacityInsufficient"
"""Other settings would help."""
PARTITION_CEILING = "PartitionCeiling"
"""Only more partitions would."""


def _capacity(status: ConditionStatus, reason: str, message: str) -> ScalingCondition:
    return ScalingCondition(ConditionType.CAPACITY_SUFFICIENT, status, reason, message)


CAPACITY_UNKNOWN = _capacity(ConditionStatus.UNKNOWN, Reason.SIGNAL_STALE, NO_SOURCE)


def capacity_sufficient(context: Context, forecast: Forecast, replicas: int) -> ScalingCondition:
    """Judge all relays that there may be, where the operator decides; else those that somebody asked for."""
    assessment = context.assessment
    if not context.policy.delivers:
        return _capacity(ConditionStatus.UNKNOWN, Reason.SUSPENDED, "Delivery is suspended.")
    if context.current == 0 and not context.signals.covered:
        return _without_relays(context)
    if not assessment.known:
        return _capacity(ConditionStatus.UNKNOWN, Reason.SIGNAL_STALE, "No relay tells what is due.")
    by_operator = context.policy.autoscaling.mode is AutoscalingMode.OPERATOR
    late_ms = forecast.best_ms if by_operator else forecast.decided_ms
    relays = assessment.sizes.allowed[-1] if by_operator else replicas
    if late_ms > context.policy.precision_ms:
        return _insufficient(context, late_ms, relays)
    return _capacity(ConditionStatus.TRUE, "Sufficient", f"{_fleet(relays)} can deliver all that is due on time.")


def _without_relays(context: Context) -> ScalingCondition:
    """Say whether that is as it should be: the operator puts to sleep a fleet without work, others may not."""
    backlog = context.memory.backlog
    if backlog is not None and (context.may_sleep or not backlog.pending):
        return _capacity(ConditionStatus.TRUE, Reason.ASLEEP, "Nothing is due soon.")
    return _capacity(ConditionStatus.UNKNOWN, Reason.SIGNAL_STALE, "No relay runs, and nobody tells what is due.")


def _insufficient(context: Context, late_ms: int, relays: int) -> ScalingCondition:
    """Say what it would take: other settings while more relays would do more, and otherwise partitions."""
    sizes = context.assessment.sizes
    rate = round(context.assessment.per_second * sizes.power(relays))
    late = f"Records will be up to {wording.length(late_ms)} late: {_fleet(relays)} can deliver {rate:,} a second."
    if sizes.power(relays) < sizes.power(sizes.max_useful):
        return _capacity(ConditionStatus.FALSE, INSUFFICIENT, f"{late} {_fleet(_better(context))} would do better.")
    if not sizes.bound_by_partitions:
        advice = f"Raise maxReplicas ({sizes.most}): up to {sizes.partitions} are of use."
        return _capacity(ConditionStatus.FALSE, INSUFFICIENT, f"{late} {advice}")
    many = wording.count(sizes.partitions, "partition")
    advice = f"More cannot help, as the source has {many}: add partitions, or allow a larger precision."
    return _capacity(ConditionStatus.FALSE, PARTITION_CEILING, f"{late} {advice}")


def _better(context: Context) -> int:
    """Return the smallest fleet that is on time, or the largest that is of use."""
    sizes = context.assessment.sizes
    in_time = (
        size
        for size in useful_sizes(sizes.partitions)
        if size <= sizes.max_useful and context.assessment.lateness_ms(size) <= context.policy.precision_ms
    )
    return next(in_time, sizes.max_useful)


def _fleet(relays: int) -> str:
    return wording.count(relays, "relay")
