"""Conditions: their words, their sum in Ready, and how they follow on those of the reconciliation before. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from delaytopic_api.documents import ConditionStatus, ConditionType

LONGEST_MESSAGE: Final = 1_024

TRUE: Final = ConditionStatus.TRUE
FALSE: Final = ConditionStatus.FALSE
UNKNOWN: Final = ConditionStatus.UNKNOWN

_SUMMED_UP: Final = (
    ConditionType.POLICY_ACCEPTED,
    ConditionType.TOPICS_READY,
    ConditionType.BACKEND_READY,
    ConditionType.RELAY_AVAILABLE,
)
"""The conditions that Ready needs, in the order in which one needs the other. Lateness is not among it: a peak of load
must not stop a GitOps wave."""


class Condition(NamedTuple):
    """A condition as this reconciliation found it, before the times that the status adds."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str = ""


class Progress(NamedTuple):
    """The words on what still changes, and on what needs a person; they become messages."""

    reconciling: str | None = None
    stalled: str | None = None
    stalled_reason: str = "InvalidSpec"


def summed_up(conditions: Sequence[Condition], progress: Progress, *, suspended: str | None = None) -> list[Condition]:
    """Return the conditions with Ready, Reconciling and Stalled as kstatus reads them.

    The latter two are there only while they are true. `suspended` names the parts that `spec.suspend` pauses.
    """
    return [_ready(conditions, suspended), *_kstatus(progress), *conditions]


def merged(
    previous: Iterable[Mapping[str, Any]], conditions: Sequence[Condition], generation: int | None, now_ms: int
) -> list[dict[str, Any]]:
    """Conditions as the status holds them: the time of the last transition stays while the status is the same.

    Types of which nothing was found are left out.
    """
    before = {condition.get("type"): condition for condition in previous}
    return [_document(condition, before.get(str(condition.type)), generation, now_ms) for condition in conditions]


def instant(time_ms: int) -> str:
    """Return a time as Kubernetes writes it, to the second."""
    return datetime.fromtimestamp(time_ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant_ms(text: str) -> int:
    """Return a time as Kubernetes writes it, in milliseconds."""
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


def ready_counts(documents: Iterable[Mapping[str, Any]]) -> Counter[tuple[str, ...]]:
    """Count objects by namespace, and by status and reason of Ready; what was not looked at yet is Unknown, without a
    reason.
    """
    return Counter((document["metadata"]["namespace"], *_told_ready(document)) for document in documents)


def _told_ready(document: Mapping[str, Any]) -> tuple[str, str]:
    conditions = (document.get("status") or {}).get("conditions") or ()
    found = next((each for each in conditions if each["type"] == ConditionType.READY), None)
    return (found["status"], found["reason"]) if found is not None else (str(UNKNOWN), "")


def _ready(conditions: Sequence[Condition], suspended: str | None) -> Condition:
    found = {condition.type: condition for condition in conditions}
    going = found.get(ConditionType.DRAINING)
    if going is not None:
        return Condition(ConditionType.READY, FALSE, "Draining", going.message)
    for condition in (found[needed] for needed in _SUMMED_UP if needed in found):
        if condition.status is not TRUE:
            return Condition(ConditionType.READY, condition.status, condition.reason, condition.message)
    for needed in _SUMMED_UP:
        if needed not in found:
            return Condition(ConditionType.READY, UNKNOWN, "Reconciling", f"{needed} is not known yet")
    if suspended is not None:
        return Condition(ConditionType.READY, FALSE, "Suspended", suspended)
    return Condition(ConditionType.READY, TRUE, "Ready", "records are taken in and delivered at their own time")


def _kstatus(progress: Progress) -> Iterable[Condition]:
    if progress.reconciling is not None:
        yield Condition(ConditionType.RECONCILING, TRUE, "Reconciling", progress.reconciling)
    if progress.stalled is not None:
        yield Condition(ConditionType.STALLED, TRUE, progress.stalled_reason, progress.stalled)


def _document(
    condition: Condition, before: Mapping[str, Any] | None, generation: int | None, now_ms: int
) -> dict[str, Any]:
    same = before is not None and before.get("status") == str(condition.status)
    since = before["lastTransitionTime"] if before is not None and same else instant(now_ms)
    seen = {"observedGeneration": generation} if generation is not None else {}
    return {
        "type": str(condition.type),
        "status": str(condition.status),
        **seen,
        "lastTransitionTime": since,
        "reason": condition.reason,
        "message": _shortened(condition.message),
    }


def _shortened(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"


def micro_time(wall_ms: int) -> str:
    """Return a time as Kubernetes writes those with fractions: `2026-11-21T20:00:00.123000Z`."""
    return datetime.fromtimestamp(wall_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
