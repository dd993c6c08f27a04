"""The part of a report that belongs into a DelayTopic's status. Pure; whoever may write the status applies it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from delaytopic_api.documents import (
    AuditedBurnRate,
    AuditedFaults,
    AuditedObjective,
    AuditedSlo,
    Condition,
    ConditionStatus,
    ConditionType,
)
from delaytopic_api.values import Duration
from delaytopic_audit.model.report import Budget, BurnRate, Objective, ObjectiveName, Report, Verdict
from delaytopic_audit.report.exhaustion import ALERTING

_ALERTING = {Duration.of_ms(length_ms) for length_ms, _ in ALERTING}
"""Windows of the burn rates of further thresholds: others are in the report alone, as the status is to be short."""
_STATUS = {
    Verdict.MET: ConditionStatus.TRUE,
    Verdict.MISSED: ConditionStatus.FALSE,
    Verdict.CANNOT_JUDGE: ConditionStatus.UNKNOWN,
}


def slo_status(report: Report, place: str | None) -> AuditedSlo:
    """Return the figures for the operator, of which `status.slo` shows some; `place` is that of the whole report."""
    verdict, audited_at = str(report.verdict), _instant(report.generated_at_ms)
    if report.window is None:
        return AuditedSlo(verdict=verdict, audited_at=audited_at, report=place)
    timely = next((each for each in report.objectives if each.name == ObjectiveName.TIMELY), None)
    late = report.lateness
    spent_ms = report.exhaustion.at_ms if report.exhaustion is not None else None
    return AuditedSlo(
        verdict=verdict,
        audited_at=audited_at,
        window=Duration.of_ms(report.window.to_ms - report.window.from_ms),
        window_end=_instant(report.window.to_ms),
        records=report.counts.asked if report.counts is not None else None,
        lateness_p50=_duration(late.p50_ms) if late is not None else None,
        lateness_p99=_duration(late.p99_ms) if late is not None else None,
        lateness_p999=_duration(late.p999_ms) if late is not None else None,
        attainment_percent=timely.attainment if timely is not None else None,
        budget_left_percent=_left(report.budget),
        budget_exhausted_at=_instant(spent_ms) if spent_ms is not None else None,
        objectives=[_objective(report, each) for each in report.objectives if each.verdict is not Verdict.NOT_PROMISED],
        missed=[each.name for each in report.objectives if each.verdict is Verdict.MISSED] or None,
        burn_rates=_burn_rates(report.burn_rates),
        faults=[
            AuditedFaults(hour=_instant(each.hour_ms), objective=each.objective, records=each.records)
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
    """Say how the objectives with a budget stand, where something was due."""
    graded = {each.name: each for each in report.objectives}
    left = _left(report.budget)
    timely = graded.get(ObjectiveName.TIMELY)
    if timely is not None and timely.attainment is not None and left is not None:
        yield f"{timely.attainment} on time, of {timely.objective}; error budget left: {left}."
    if report.exhaustion is not None and report.exhaustion.at_ms is not None:
        yield report.exhaustion.sentence
    for each in report.thresholds:
        objective, left = graded[each.objective], _left(each.budget)
        if objective.attainment is not None and left is not None:
            within = Duration.of_ms(each.lateness_ms)
            yield f"{objective.attainment} within {within}, of {objective.objective}; error budget left: {left}."


def _left(budget: Budget | None) -> str | None:
    left = budget.remaining if budget is not None else None
    return f"{_decimal(left * 100)}%" if left is not None else None


def _objective(report: Report, objective: Objective) -> AuditedObjective:
    of = next((each for each in report.thresholds if each.objective == objective.name), None)
    spent_ms = of.exhaustion.at_ms if of is not None and of.exhaustion is not None else None
    return AuditedObjective(
        name=objective.name,
        objective=objective.objective,
        attainment=objective.attainment,
        bad=objective.bad,
        budget_left_percent=_left(of.budget) if of is not None else None,
        budget_exhausted_at=_instant(spent_ms) if spent_ms is not None else None,
        burn_rates=_burn_rates(each for each in of.burn_rates if each.window in _ALERTING) if of is not None else None,
        counts_from=_instant(of.counts_from_ms) if of is not None and of.counts_from_ms is not None else None,
    )


def _burn_rates(rates: Iterable[BurnRate]) -> list[AuditedBurnRate] | None:
    return [_burn_rate(each, each.rate) for each in rates if each.rate is not None] or None


def _burn_rate(burn: BurnRate, rate: float) -> AuditedBurnRate:
    return AuditedBurnRate(window=burn.window, rate=_decimal(rate), bad=burn.bad)


def _instant(moment_ms: int) -> datetime:
    """Return a time to the second, as Kubernetes writes it."""
    return datetime.fromtimestamp(moment_ms // 1_000, UTC)


def _duration(length_ms: float | None) -> Duration | None:
    return Duration.of_ms(round(length_ms)) if length_ms is not None else None


def _decimal(number: float) -> str:
    """Return it as text without an exponent: floats do not survive every client."""
    return f"{round(number, 4) + 0.0:.4f}".rstrip("0").rstrip(".")
