"""The condition AutoscalingActive: whether the number of relays follows the schedule."""

from __future__ import annotations

from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_api.values import AutoscalingMode
from delaytopic_operator.scaling.outcome import Reason, ScalingCondition
from delaytopic_operator.scaling.rules import BLIND_MS, missing
from delaytopic_operator.scaling.verdict import Case, Verdict


def _active(status: ConditionStatus, reason: str, message: str) -> ScalingCondition:
    return ScalingCondition(ConditionType.AUTOSCALING_ACTIVE, status, reason, message)


NO_SOURCE = "Kafka has not told yet how many partitions the source has."


def source_unknown() -> ScalingCondition:
    """While nothing is known of the source."""
    return _active(ConditionStatus.FALSE, Reason.SIGNAL_STALE, NO_SOURCE)


def passed_on(mode: AutoscalingMode, sentence: str) -> ScalingCondition:
    """AutoscalingActive where somebody else decides."""
    reason = Reason.FIXED if mode is AutoscalingMode.FIXED else Reason.EXTERNAL_SCALER
    return _active(ConditionStatus.FALSE, reason, sentence)


def autoscaling_active(case: Case, verdict: Verdict) -> ScalingCondition:
    """Whether the signals are fresh, and nobody holds the fleet."""
    policy = case.policy
    if verdict.reason is Reason.SUSPENDED and not policy.takes_in:
        return _active(
            ConditionStatus.FALSE, Reason.SUSPENDED, "Delivery and ingest are suspended: relays stay as they are."
        )
    if policy.paused_scale_in and policy.paused_scale_out:
        return _active(ConditionStatus.FALSE, "Paused", "Both directions are paused by annotations.")
    if case.current == 0:
        if verdict.reason in (Reason.SIGNAL_STALE, Reason.BLIND):
            return _active(ConditionStatus.FALSE, Reason.SIGNAL_STALE, f"{verdict.why[0].upper()}{verdict.why[1:]}.")
        return _active(
            ConditionStatus.TRUE, Reason.ASLEEP, "No relay runs; Kafka's offsets and the next due time are watched."
        )
    if case.stale:
        return _stale(case)
    if policy.paused_scale_in or policy.paused_scale_out:
        direction = Reason.PAUSED_SCALE_IN if policy.paused_scale_in else Reason.PAUSED_SCALE_OUT
        return _active(ConditionStatus.TRUE, direction, "One direction is paused by an annotation.")
    return _active(ConditionStatus.TRUE, "SignalsFresh", "Every source partition tells what is due.")


def _stale(case: Case) -> ScalingCondition:
    if case.memory.watch.complete_ms is None and case.blind_ms < BLIND_MS and not case.assessment.known:
        return _active(ConditionStatus.UNKNOWN, Reason.SIGNAL_STALE, "No relay has told yet what is due.")
    what = missing(case) if case.assessment.known else "no relay tells what is due"
    return _active(
        ConditionStatus.FALSE,
        Reason.SIGNAL_STALE,
        f"{what[0].upper()}{what[1:]}: relays are not taken away until it is known.",
    )
