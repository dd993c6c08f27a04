"""The status of a DelayTopic as a document, and whether it is worth a write. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from delaytopic_api.documents import API_VERSION, ConditionType
from delaytopic_operator import __version__
from delaytopic_operator.decide.actions import Action
from delaytopic_operator.decide.plan import Plan
from delaytopic_operator.model.conditions import instant_ms, merged, summed_up
from delaytopic_operator.observe.observation import Observation

MOST_PLANNED: Final = 50
REQUESTED: Final = "delaytopic.dev/reconcile-requested-at"

_VOLATILE: Final = frozenset({"asOf", "ageMs", "decidedAtMs", "nextLookMs", "lastTransitionTime"})
"""Fields that only say when something was looked at."""


def status_document(seen: Observation, plan: Plan, *, dry_run: bool = False) -> dict[str, Any]:
    """Make the document to apply as the status."""
    previous: Sequence[Mapping[str, Any]] = seen.status.get("conditions") or ()
    generation = seen.metadata.get("generation")
    if any(finding.type is ConditionType.PAUSED for finding in plan.findings):
        return _document(seen, _paused(seen, plan))
    findings = summed_up(plan.findings, plan.progress, suspended=plan.suspended)
    status = {
        "observedGeneration": generation,
        "conditions": merged(previous, findings, generation, seen.now_ms),
        **plan.parts,
        "operatorVersion": __version__,
        **_asked(seen),
        **({"plan": _planned(plan.actions)} if dry_run else {}),
    }
    return _document(seen, status)


def worth_writing(document: Mapping[str, Any], live: Mapping[str, Any], now_ms: int, interval_ms: int) -> bool:
    """Return whether the status says something new: what programs act on at once, numbers and sentences once an
    interval.
    """
    wanted = document["status"]
    if _significant(wanted) != _significant(live):
        return True
    if _steady(wanted) == _steady(live):
        return False
    as_of = (live.get("backlog") or {}).get("asOf")
    return as_of is None or now_ms - instant_ms(as_of) >= interval_ms


def _document(seen: Observation, status: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": seen.key.name, "namespace": seen.key.namespace, "uid": seen.metadata.get("uid")}
    return {"apiVersion": API_VERSION, "kind": "DelayTopic", "metadata": metadata, "status": dict(status)}


def _paused(seen: Observation, plan: Plan) -> dict[str, Any]:
    """Keep the status as it was, and add that it is paused: nothing was looked at."""
    transient = (ConditionType.PAUSED, ConditionType.RECONCILING)
    before = [each for each in seen.status.get("conditions") or () if each.get("type") not in transient]
    paused = [each for each in seen.status.get("conditions") or () if each.get("type") == ConditionType.PAUSED]
    found = merged(paused, plan.findings, seen.metadata.get("generation"), seen.now_ms)
    generation = seen.metadata.get("generation")
    return {**seen.status, "observedGeneration": generation, "conditions": [*before, *found]}


def _asked(seen: Observation) -> dict[str, str]:
    asked = seen.annotations.get(REQUESTED)
    return {"lastHandledReconcileAt": asked} if asked else {}


def _planned(actions: Sequence[Action]) -> list[dict[str, Any]]:
    return [action.planned().to_document() for action in actions[:MOST_PLANNED]]


def _significant(status: Mapping[str, Any]) -> object:
    """Return what others act on: conditions, which generation they are about, replicas, and the answer to a request."""
    conditions = {
        (each.get("type"), each.get("status"), each.get("reason"), each.get("observedGeneration"))
        for each in status.get("conditions") or ()
    }
    kept = ("observedGeneration", "relay", "source", "target", "deadLetter", "effective", "plan", "slo")
    return conditions, {name: status.get(name) for name in kept}, status.get("lastHandledReconcileAt")


def _steady(part: object) -> object:
    """Without what only says when something was looked at."""
    if isinstance(part, Mapping):
        return {name: _steady(value) for name, value in part.items() if name not in _VOLATILE and value is not None}
    if isinstance(part, list | tuple):
        return [_steady(value) for value in part]
    return part
