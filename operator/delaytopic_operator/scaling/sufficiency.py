"""The condition CapacitySufficient: whether what is ahead can be delivered on time, said before it is late."""

from __future__ import annotations

from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_api.values import AutoscalingMode
from delaytopic_operator.scaling import wording
from delaytopic_operator.scaling.activity import NO_SOURCE
from delaytopic_operator.scaling.forecast import Forecast
from delaytopic_operator.scaling.outcome import Reason, ScalingCondition
from delaytopic_operator.scaling.sizes import useful_sizes
from delaytopic_operator.scaling.verdict import Case

INSUFFICIENT = "CapacityInsufficient"
"""Other settings would help."""
PARTITION_CEILING = "PartitionCeiling"
"""Only more partitions would."""


def _capacity(status: ConditionStatus, reason: str, message: str) -> ScalingCondition:
    return ScalingCondition(ConditionType.CAPACITY_SUFFICIENT, status, reason, message)


def source_unknown() -> ScalingCondition:
    """While nothing is known of the source."""
    return _capacity(ConditionStatus.UNKNOWN, Reason.SIGNAL_STALE, NO_SOURCE)


def capacity_sufficient(case: Case, forecast: Forecast, replicas: int) -> ScalingCondition:
    """With all relays that there may be, where the operator decides; else with those that somebody asked for."""
    assessment = case.assessment
    if not case.policy.delivers:
        return _capacity(ConditionStatus.UNKNOWN, Reason.SUSPENDED, "Delivery is suspended.")
    if case.current == 0 and not case.signals.covered:
        return _without_relays(case)
    if not assessment.known:
        return _capacity(ConditionStatus.UNKNOWN, Reason.SIGNAL_STALE, "No relay tells what is due.")
    if case.memory.throttled_since_ms is not None:
        return _capacity(ConditionStatus.FALSE, Reason.TARGET_THROTTLED, _throttled(assessment.overdue))
    by_operator = case.policy.autoscaling.mode is AutoscalingMode.OPERATOR
    late_ms = forecast.best_ms if by_operator else forecast.decided_ms
    relays = assessment.sizes.allowed[-1] if by_operator else replicas
    if late_ms > case.policy.precision_ms:
        return _insufficient(case, late_ms, relays)
    return _capacity(ConditionStatus.TRUE, "Sufficient", f"{_fleet(relays)} can deliver all that is due on time.")


def _without_relays(case: Case) -> ScalingCondition:
    """Whether that is as it should be: the operator puts to sleep what has nothing to do, others may not."""
    backlog = case.memory.backlog
    if backlog is not None and (case.may_sleep or not backlog.pending):
        return _capacity(ConditionStatus.TRUE, Reason.ASLEEP, "Nothing is due soon.")
    return _capacity(ConditionStatus.UNKNOWN, Reason.SIGNAL_STALE, "No relay runs, and nobody tells what is due.")


def _insufficient(case: Case, late_ms: int, relays: int) -> ScalingCondition:
    """What it would take: other settings while more relays would do more, and otherwise partitions."""
    sizes = case.assessment.sizes
    rate = round(case.assessment.per_second * sizes.power(relays))
    late = f"Records will be up to {wording.length(late_ms)} late: {_fleet(relays)} can deliver {rate:,} a second."
    if sizes.power(relays) < sizes.power(sizes.max_useful):
        return _capacity(ConditionStatus.FALSE, INSUFFICIENT, f"{late} {_fleet(_better(case))} would do better.")
    if not sizes.bound_by_partitions:
        advice = f"Raise maxReplicas ({sizes.most}): up to {sizes.partitions} are of use."
        return _capacity(ConditionStatus.FALSE, INSUFFICIENT, f"{late} {advice}")
    many = wording.count(sizes.partitions, "partition")
    advice = f"More cannot help, as the source has {many}: add partitions, or allow a larger precision."
    return _capacity(ConditionStatus.FALSE, PARTITION_CEILING, f"{late} {advice}")


def _better(case: Case) -> int:
    """The smallest fleet that is on time, or the largest that is of use."""
    sizes = case.assessment.sizes
    in_time = (
        size
        for size in useful_sizes(sizes.partitions)
        if size <= sizes.max_useful and case.assessment.lateness_ms(size) <= case.policy.precision_ms
    )
    return next(in_time, sizes.max_useful)


def _fleet(relays: int) -> str:
    return wording.count(relays, "relay")


def _throttled(overdue: int) -> str:
    late = f"{wording.count(overdue, 'record')} overdue, and more relays deliver no more"
    return f"{late}: look at the brokers, quotas and partitions of the target topic."
