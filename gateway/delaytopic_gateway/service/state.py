"""The state of a DelayTopic beside its records: the audit's last verdict, readiness and lateness. Pure.

On a cluster the status has it, with `delaytopic local` the report that an audit on this machine wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import ConfigDict, Field, ValidationError

from delaytopic_api import Settings
from delaytopic_api.documents import Condition, ConditionStatus, ConditionType, DelayTopicStatus
from delaytopic_api.documents.model import Model
from delaytopic_api.errors import InvalidText
from delaytopic_api.values import Duration
from delaytopic_gateway.client.lateness import milliseconds_text

NO_AUDIT: Final = "NoAudit"
"""The operator's reason of SLOMet while no audit can be set up: no verdict."""
HOW_TO_AUDIT_A_CLUSTER: Final = (
    "no audit yet: the operator's configuration sets them up (audit of the chart's values), or run delaytopic audit run"
)
HOW_TO_AUDIT_LOCAL: Final = "no audit yet: run delaytopic audit run -f {}"
_VERDICTS: Final = {
    ConditionStatus.TRUE: "Met",
    ConditionStatus.FALSE: "Missed",
    ConditionStatus.UNKNOWN: "CannotJudge",
}


class AuditDocument(Model):
    """The last verdict of the audit on a DelayTopic."""

    verdict: str
    """Met, Missed or CannotJudge."""
    at_ms: int | None = None
    """The time at which it was made; null where it does not say."""
    message: str = ""
    """A sentence for people."""
    lateness: str
    """Records that were later than this count as late."""
    objective: str
    """The share of records that must not be late."""
    attainment: str | None = None
    """The share that was not late."""
    window: str
    """The time that the objective is about."""
    budget_remaining: float | None = None
    """The share of the error budget that is left, below zero when it is overspent; null where it is not known."""
    lateness_p99_ms: int | None = Field(None, alias="latenessP99Ms")
    """99 of 100 records were at most this late."""
    report: str | None = None
    """The place of the whole report: an address, or a file where the audit ran."""


class ReadyDocument(Model):
    """The condition Ready, as the operator wrote it last."""

    status: str
    """True, False or Unknown."""
    reason: str
    """A word for programs."""
    message: str
    """A sentence for people."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a DelayTopic beside its records. Nothing is guessed: None stands for not known."""

    ready: ReadyDocument | None = None
    audit: AuditDocument | None = None
    no_audit: str = HOW_TO_AUDIT_A_CLUSTER
    """The reason why there is no verdict, and how to get one."""
    late_p99_ms: float | None = None
    """99 of 100 records of the last half minute were at most this late, as the relays measured. May be infinite."""

    @property
    def lateness(self) -> str | None:
        """The words on how late 99 of 100 records were at most, and when that was."""
        if self.late_p99_ms is not None:
            known = self.late_p99_ms < HOUR_MS
            return f"≤ {milliseconds_text(round(self.late_p99_ms))} (last 30 s)" if known else "> 1 h (last 30 s)"
        if self.audit is not None and self.audit.lateness_p99_ms is not None:
            return f"{milliseconds_text(self.audit.lateness_p99_ms)} (audit)"
        return None


HOUR_MS: Final = 3_600_000
UNKNOWN: Final = State()


def state_of_status(document: Mapping[str, Any], settings: Settings) -> State:
    """Return what the status of an object says."""
    try:
        status = DelayTopicStatus.model_validate(document)
    except ValidationError:
        return UNKNOWN
    ready, met = status.condition(ConditionType.READY), status.condition(ConditionType.SLO_MET)
    told = ReadyDocument(status=str(ready.status), reason=ready.reason, message=ready.message) if ready else None
    if met is None or met.reason == NO_AUDIT:
        return State(told, None, met.message if met is not None else HOW_TO_AUDIT_A_CLUSTER)
    return State(told, _audit_of_status(status, met, settings))


def _audit_of_status(status: DelayTopicStatus, met: Condition, settings: Settings) -> AuditDocument:
    slo = status.slo
    return AuditDocument(
        verdict=_VERDICTS[met.status],
        at_ms=_epoch_ms(slo.audited_at) if slo is not None else None,
        message=met.message,
        attainment=slo.attainment_percent if slo is not None else None,
        budget_remaining=_share(slo.budget_left_percent) if slo is not None else None,
        lateness_p99_ms=_duration_ms(slo.lateness_p99) if slo is not None else None,
        report=slo.report if slo is not None else None,
        lateness=str(settings.slo.lateness),
        objective=str(settings.slo.objective),
        window=str(settings.slo.calendar or settings.slo.window),
    )


class _Lenient(Model):
    # The audit may be newer.
    model_config = ConfigDict(extra="ignore")


class _Objective(_Lenient):
    name: str
    attainment: str | None = None


class _Budget(_Lenient):
    remaining: float | None = None


class _Lateness(_Lenient):
    p99_ms: float | None = Field(None, alias="p99Ms")


class _Report(_Lenient):
    """The part of `report.json` that is shown."""

    verdict: str
    sentence: str
    reasons: list[str] = Field([])
    generated_at_ms: int
    objectives: list[_Objective] = Field([])
    budget: _Budget | None = None
    lateness: _Lateness | None = None


def audit_of_report(text: str, settings: Settings) -> AuditDocument | None:
    """Return the verdict of a report.json, or None for what is none."""
    try:
        report = _Report.model_validate_json(text)
    except ValidationError:
        return None
    timely = next((each.attainment for each in report.objectives if each.name == "Timely"), None)
    p99_ms = report.lateness.p99_ms if report.lateness is not None else None
    return AuditDocument(
        verdict=report.verdict,
        at_ms=report.generated_at_ms,
        message=" ".join([report.sentence, *report.reasons]),
        attainment=timely,
        budget_remaining=report.budget.remaining if report.budget is not None else None,
        lateness_p99_ms=round(p99_ms) if p99_ms is not None else None,
        lateness=str(settings.slo.lateness),
        objective=str(settings.slo.objective),
        window=str(settings.slo.calendar or settings.slo.window),
    )


def _epoch_ms(time: datetime | None) -> int | None:
    return round(time.timestamp() * 1_000) if time is not None else None


def _share(percent: str | None) -> float | None:
    try:
        return float(percent.removesuffix("%")) / 100 if percent is not None else None
    except ValueError:
        return None


def _duration_ms(text: str | None) -> int | None:
    try:
        return Duration(text).ms if text is not None else None
    except InvalidText:
        return None
