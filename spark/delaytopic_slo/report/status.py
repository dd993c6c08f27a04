"""The part of a report that belongs into a DelayTopic's status. Pure; whoever may write the status applies it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from delaytopic_api.documents import (
    Condition,
    ConditionStatus,
    ConditionType,
    SloBurnRateStatus,
    SloFaultsStatus,
    SloObjectiveStatus,
    SloStatus,
)
from delaytopic_api.values import Duration
from delaytopic_slo.model.report import BurnRate, Objective, ObjectiveName, Report, Verdict

_STATUS = {
    Verdict.MET: ConditionStatus.TRUE,
    Verdict.MISSED: ConditionStatus.FALSE,
    Verdict.CANNOT_JUDGE: ConditionStatus.UNKNOWN,
}


def slo_status(report: Report, place: str | None) -> SloStatus:
    """Return `status.slo`; `place` is the address of the whole report."""
    verdict, audited_at = str(report.verdict), _instant(report.generated_at_ms)
    if report.window is None:
        return SloStatus(verdict=verdict, audited_at=audited_at, report=place)
    timely = next((each for each in report.objectives if each.name is ObjectiveName.TIMELY), None)
    late = report.lateness
    spent_ms = report.exhaustion.at_ms if report.exhaustion is not None else None
    return SloStatus(
        verdict=verdict,
        audited_at=audited_at,
        window=Duration.of_ms(report.window.to_ms - report.window.from_ms),
        window_end=_instant(report.window.to_ms),
        records=report.counts.asked if report.counts is not None else None,
        lateness_p50=_duration(late.p50_ms) if late is not None else None,
        lateness_p99=_duration(late.p99_ms) if late is not None else None,
        lateness_p999=_duration(late.p999_ms) if late is not None else None,
        attainment_percent=timely.attainment if timely is not None else None,
        budget_left_percent=_left(report),
        budget_exhausted_at=_instant(spent_ms) if spent_ms is not None else None,
        objectives=[_objective(each) for each in report.objectives if each.verdict is not Verdict.NOT_PROMISED],
        burn_rates=[_burn_rate(each, each.rate) for each in report.burn_rates if each.rate is not None] or None,
        faults=[
            SloFaultsStatus(hour=_instant(each.hour_ms), objective=str(each.objective), records=each.records)
            for each in report.faulty_hours
        ]
        or None,
        report=place,
    )


def slo_condition(report: Report, generation: int | None, previous: Condition | None) -> Condition:
    """Return the condition `SLOMet`; `previous` keeps the time of its last transition while the status is the same."""
    status = _STATUS[report.verdict]
    now = datetime.fromtimestamp(report.generated_at_ms / 1000, UTC)
    since = previous.last_transition_time if previous is not None and previous.status is status else now
    return Condition(
        type=ConditionType.SLO_MET,
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=str(report.verdict),
        message=" ".join([report.sentence, *_figures(report), *report.reasons]),
    )


def _figures(report: Report) -> Iterator[str]:
    """Say how the objective with a budget stands, where something was due."""
    timely = next((each for each in report.objectives if each.name is ObjectiveName.TIMELY), None)
    left = _left(report)
    if timely is not None and timely.attainment is not None and left is not None:
        yield f"{timely.attainment} on time, of {timely.objective}; error budget left: {left}."
    if report.exhaustion is not None and report.exhaustion.at_ms is not None:
        yield report.exhaustion.sentence


def _left(report: Report) -> str | None:
    left = report.budget.remaining if report.budget is not None else None
    return f"{_decimal(left * 100)}%" if left is not None else None


def _objective(objective: Objective) -> SloObjectiveStatus:
    return SloObjectiveStatus(
        name=str(objective.name),
        objective=objective.objective,
        attainment=objective.attainment,
        bad=objective.bad,
    )


def _burn_rate(burn: BurnRate, rate: float) -> SloBurnRateStatus:
    return SloBurnRateStatus(window=burn.window, rate=_decimal(rate), bad=burn.bad)


def _instant(moment_ms: int) -> datetime:
    """Return a time to the second, as Kubernetes writes it."""
    return datetime.fromtimestamp(moment_ms // 1_000, UTC)


def _duration(length_ms: float | None) -> Duration | None:
    return Duration.of_ms(round(length_ms)) if length_ms is not None else None


def _decimal(number: float) -> str:
    """Return it as text without an exponent: floats do not survive every client."""
    return f"{round(number, 4) + 0.0:.4f}".rstrip("0").rstrip(".")
