"""The part of a report that belongs into a DelayTopic's status. Pure; whoever may write the status applies it."""

from __future__ import annotations

from datetime import UTC, datetime

from delaytopic_api.documents import Condition, ConditionStatus, ConditionType, SloStatus
from delaytopic_api.values import Duration
from delaytopic_slo.model.report import ObjectiveName, Report, Verdict

_STATUS = {
    Verdict.MET: ConditionStatus.TRUE,
    Verdict.MISSED: ConditionStatus.FALSE,
    Verdict.CANNOT_JUDGE: ConditionStatus.UNKNOWN,
}


def slo_status(report: Report, place: str | None) -> SloStatus:
    """Return `status.slo`; `place` is the address of the whole report."""
    timely = next((each for each in report.objectives if each.name is ObjectiveName.TIMELY), None)
    p99_ms = report.lateness.p99_ms if report.lateness is not None else None
    return SloStatus(
        lateness_p99=Duration.of_ms(round(p99_ms)) if p99_ms is not None else None,
        attainment_percent=timely.attainment if timely is not None else None,
        report=place,
        as_of=_time(report),
    )


def slo_condition(report: Report, generation: int | None, previous: Condition | None) -> Condition:
    """Return the condition `SLOMet`; `previous` keeps the time of its last transition while the status is the same."""
    status = _STATUS[report.verdict]
    since = previous.last_transition_time if previous is not None and previous.status is status else _time(report)
    return Condition(
        type=ConditionType.SLO_MET,
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=str(report.verdict),
        message=" ".join([report.sentence, *report.reasons]),
    )


def _time(report: Report) -> datetime:
    return datetime.fromtimestamp(report.generated_at_ms // 1000, UTC)
