"""Edge: writes the status when it says something new, and tells transitions as events."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delaytopic_api.documents import API_VERSION, ConditionType
from delaytopic_operator.config.operator_config import OperatorConfig
from delaytopic_operator.decide.actions import Apply, Delete, DoTopic, Purge, RemoveFinalizer, RestoreProgress
from delaytopic_operator.decide.plan import Plan
from delaytopic_operator.errors import Conflict, Rejected
from delaytopic_operator.execute.executor import Outcome
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import FALSE, UNKNOWN, Finding
from delaytopic_operator.model.transitions import WARNING, Event, told
from delaytopic_operator.observe.audit_verdict import NO_AUDIT
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.report.event_recorder import EventRecorder
from delaytopic_operator.report.status_document import status_document, worth_writing
from delaytopic_operator.topics.findings import failed_finding

STATUS_MANAGER: Final = "delaytopic-operator-status"


class StatusWriter:
    """Says how it stands, and never more often than somebody could want to know."""

    def __init__(self, kube: KubeApi, events: EventRecorder, config: OperatorConfig) -> None:
        """`events` writes them in its own time."""
        self._kube = kube
        self._events = events
        self._config = config

    def report(self, seen: Observation, plan: Plan, outcome: Outcome, *, dry_run: bool) -> None:
        """Status first, so that an event never tells what the status does not show yet."""
        if seen.document is None:
            self._of_gone(seen, plan, outcome)
            return
        if outcome.was_gone:
            return
        plan = with_failure(plan, outcome)
        document = status_document(seen, plan, dry_run=dry_run)
        released = outcome.failure is None and any(isinstance(action, RemoveFinalizer) for action in plan.actions)
        if not (seen.is_going and (released or (not plan.actions and not plan.findings))):
            self._write(seen, document)
        transitions = told(seen.status.get("conditions") or (), document["status"].get("conditions") or ())
        for event in (*outcome.events, *self._planned(plan, outcome), *transitions):
            self._events.record(dict(seen.document), event.reason, event.message, warning=event.type == WARNING)

    def _write(self, seen: Observation, document: dict[str, object]) -> None:
        if not worth_writing(document, seen.status, seen.now_ms, self._config.status_interval.ms):
            return
        try:
            self._kube.apply_status(document, STATUS_MANAGER)
        except Conflict:
            if self._kube.get(kinds.DELAY_TOPIC, *seen.key) is not None:
                raise

    def _of_gone(self, seen: Observation, plan: Plan, outcome: Outcome) -> None:
        metadata = {"namespace": seen.key.namespace, "name": seen.key.name}
        about = {"apiVersion": API_VERSION, "kind": "DelayTopic", "metadata": metadata}
        for event in self._planned(plan, outcome):
            self._events.record(about, event.reason, event.message, warning=event.type == WARNING)

    def _planned(self, plan: Plan, outcome: Outcome) -> tuple[Event, ...]:
        """Return the events of the plan: they are true once all of it was executed."""
        return tuple(plan.events) if outcome.failure is None else ()


def with_failure(plan: Plan, outcome: Outcome) -> Plan:
    """The plan whose findings say what could not be done, and whether a person has to act."""
    failure, action = outcome.failure, outcome.failed
    if failure is None:
        return plan
    if isinstance(action, DoTopic | Purge):
        found = failed_finding(failure)
    elif isinstance(action, RestoreProgress):
        found = Finding(
            ConditionType.BACKEND_READY, FALSE, failure.reason, f"relays wait for their progress: {failure}"
        )
    elif isinstance(action, Apply | Delete) and action.document["kind"] == kinds.CRON_JOB.name:
        # Records are delivered without an audit, too.
        return _found(plan, Finding(ConditionType.SLO_MET, UNKNOWN, NO_AUDIT, f"no audit can be set up: {failure}"))
    elif isinstance(action, Apply | Delete):
        found = Finding(ConditionType.RELAY_AVAILABLE, FALSE, failure.reason, str(failure))
    else:
        return plan
    stalled = str(failure) if isinstance(failure, Rejected) else plan.progress.stalled
    progress = plan.progress._replace(stalled=stalled, stalled_reason=failure.reason) if stalled else plan.progress
    return replace(_found(plan, found), progress=progress)


def _found(plan: Plan, found: Finding) -> Plan:
    """With this in the place of what else was found about it."""
    return replace(plan, findings=[*(each for each in plan.findings if each.type is not found.type), found])
