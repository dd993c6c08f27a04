"""The verdict of the last audit, as the audit serves it: audits may not ask the API server. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, ValidationError

from delaytopic_api import documents
from delaytopic_api.documents import MOST_FAULTY_HOURS, AuditedFaults, AuditedSlo, ConditionType, Model
from delaytopic_operator.model.conditions import UNKNOWN, Condition
from delaytopic_operator.model.reconciliation import Key

NO_AUDIT: Final = "NoAudit"
"""Reason of SLOMet while no audit can be set up, which is no verdict: nothing of it is kept."""
WITHOUT_BUDGET: Final = "100%"
_LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""


class VerdictMessage(Model):
    """The message that `delaytopic audit run` serves with `--serve`."""

    delay_topic: str
    verdict: Annotated[str, Field(max_length=32)]
    generated_at_ms: Annotated[int, Field(ge=0, le=_LATEST_MS)]
    slo: AuditedSlo
    condition: documents.Condition

    @property
    def key(self) -> Key:
        """The DelayTopic."""
        namespace, _, name = self.delay_topic.partition("/")
        return Key(namespace, name)

    @property
    def audited_at(self) -> datetime:
        """The time of the audit, to the second."""
        return datetime.fromtimestamp(self.generated_at_ms // 1_000, UTC)


class AuditVerdict(NamedTuple):
    """The condition SLOMet, and the figures of the audit, as documents hold them."""

    condition: Condition
    slo: Mapping[str, Any]

    @property
    def shown(self) -> Mapping[str, Any]:
        """Return `status.slo`."""
        figures = parsed_slo(self.slo)
        return figures.shown().to_document() if figures is not None else {}

    def with_report(self, place: str | None) -> AuditVerdict:
        """Return the same with another place of the report; None: there is none to be found."""
        others = {name: value for name, value in self.slo.items() if name != "report"}
        return self._replace(slo={**others, **({"report": place} if place is not None else {})})


def last_verdict(
    status: Mapping[str, Any], now_ms: int, served: VerdictMessage | None, written: AuditedSlo | None = None
) -> AuditVerdict | None:
    """Return the verdict that was served last, or the one before.

    Pods are removed in time: `written` are the figures that were written down, of which the status shows some.
    """
    before = known_slo(status, written)
    if served is None or (before is not None and _is_older(served, before, now_ms)):
        return _of_before(status, before)
    told = served.condition
    condition = Condition(ConditionType.SLO_MET, told.status, told.reason, told.message)
    return AuditVerdict(condition, _merged(served, before).to_document())


def without_audit(last: AuditVerdict | None, failure: str) -> AuditVerdict:
    """Return the figures of the last audit, and that no other one can be set up."""
    condition = Condition(ConditionType.SLO_MET, UNKNOWN, NO_AUDIT, f"no audit can be set up: {failure}")
    return AuditVerdict(condition, last.slo if last is not None else {})


def known_slo(status: Mapping[str, Any], written: AuditedSlo | None) -> AuditedSlo | None:
    """Return the figures that were written down, unless the status shows those of a later audit."""
    shown = parsed_slo(status.get("slo"))
    if written is None or shown is None or shown.audited_at is None:
        return written or shown
    return shown if written.audited_at is None or shown.audited_at > written.audited_at else written


def parsed_slo(slo: object) -> AuditedSlo | None:
    """Return figures of an audit; None where there are none, or none that can be read."""
    try:
        return AuditedSlo.model_validate(slo, by_alias=True, by_name=False) if slo else None
    except ValidationError:
        return None


def newly_bad(now: Sequence[AuditedFaults], before: Sequence[AuditedFaults], objective: str) -> int:
    """Count the records that broke an objective and of which the audit before knew nothing.

    Hours are compared, as the window moves on and records may heal. Where a list is full, only what is later than its
    last entry is.
    """
    horizon = max((each[-1].hour for each in (now, before) if len(each) >= MOST_FAULTY_HOURS), default=None)
    known = {each.hour: each.records for each in before if each.objective == objective}
    return sum(
        max(0, each.records - known.get(each.hour, 0))
        for each in now
        if each.objective == objective and (horizon is None or each.hour > horizon)
    )


def _is_older(message: VerdictMessage, before: AuditedSlo, now_ms: int) -> bool:
    """Tell whether the status knows a later audit, whose pod is gone; a status from the future knows nothing."""
    known = before.audited_at
    return known is not None and message.audited_at < known and known.timestamp() * 1_000 <= now_ms


def _merged(message: VerdictMessage, before: AuditedSlo | None) -> AuditedSlo:
    """Return what the audit says, with what only a look at the audit before it tells."""
    if before is not None and before.audited_at == message.audited_at and before.objectives is not None:
        return before
    audited = {"verdict": message.verdict, "audited_at": message.audited_at}
    told = message.slo
    if told.window_end is None and before is not None and (before.window_end or before.window) is not None:
        return before.model_copy(update={**audited, **({"report": told.report} if told.report else {})})
    found, known = told.faults or [], (before.faults if before is not None else None) or []
    # What the status shows of an audit tells nothing of its faults: they are no news, and not known either.
    is_comparable = before is None or before.objectives is not None or before.window is None
    objectives = [
        each.model_copy(update={"newly_bad": newly_bad(found, known, each.name)})
        if each.objective == WITHOUT_BUDGET and is_comparable
        else each
        for each in told.objectives or []
    ]
    return told.model_copy(update={**audited, "objectives": objectives or None})


def parsed_message(text: str | bytes) -> VerdictMessage | None:
    """Return what an audit says; None for anything else."""
    try:
        return VerdictMessage.model_validate(json.loads(text or "{}"), by_alias=True, by_name=False)
    except (ValueError, ValidationError):
        return None


def _of_before(status: Mapping[str, Any], slo: AuditedSlo | None) -> AuditVerdict | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == ConditionType.SLO_MET and condition.get("reason") != NO_AUDIT:
            found = documents.Condition.model_validate(condition)
            before = Condition(ConditionType.SLO_MET, found.status, found.reason, found.message)
            return AuditVerdict(before, slo.to_document() if slo is not None else {})
    return None
