"""The verdict of the last audit, from the termination message of its pod: it may not ask the API server. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from delaytopic_api import documents
from delaytopic_api.documents import ConditionType, Model, SloStatus
from delaytopic_operator.model.conditions import Condition

NO_AUDIT: Final = "NoAudit"
"""Reason of SLOMet while no audit can be set up, which is no verdict: nothing of it is kept."""


class _Message(Model):
    """The message that `delaytopic slo run --status-file` writes."""

    delay_topic: str
    verdict: str
    generated_at_ms: int
    slo: SloStatus
    condition: documents.Condition


class AuditVerdict(NamedTuple):
    """The condition SLOMet, and `status.slo`."""

    condition: Condition
    slo: Mapping[str, Any]


def last_verdict(pods: Iterable[Mapping[str, Any]], status: Mapping[str, Any]) -> AuditVerdict | None:
    """Return the newest verdict of the audit's pods, or that of the status, as pods are removed in time."""
    newest = max(_messages(pods), key=lambda message: message.generated_at_ms, default=None)
    if newest is not None:
        told = newest.condition
        condition = Condition(ConditionType.SLO_MET, told.status, told.reason, told.message)
        return AuditVerdict(condition, newest.slo.to_document())
    return _of_before(status)


def _messages(pods: Iterable[Mapping[str, Any]]) -> Iterator[_Message]:
    for pod in pods:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            text = ((container.get("state") or {}).get("terminated") or {}).get("message")
            try:
                yield _Message.model_validate(json.loads(text or "{}"), by_alias=True, by_name=False)
            except (ValueError, ValidationError):
                # A run without a verdict left nothing, or an error's text: the Job says so.
                continue


def _of_before(status: Mapping[str, Any]) -> AuditVerdict | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == ConditionType.SLO_MET and condition.get("reason") != NO_AUDIT:
            found = documents.Condition.model_validate(condition)
            before = Condition(ConditionType.SLO_MET, found.status, found.reason, found.message)
            return AuditVerdict(before, status.get("slo") or {})
    return None
