"""The status of a DelayTopic: its document, whether it is worth a write, the write, and its gauges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from delaytopic_api.documents import API_VERSION, ConditionType
from delaytopic_operator import __version__
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.decide.plan import (
    Action,
    Apply,
    Delete,
    DoTopic,
    ForgetRecord,
    Plan,
    Purge,
    RemoveFinalizer,
    RestoreOffsets,
    WriteRecord,
)
from delaytopic_operator.errors import Conflict, OperatorError, Rejected
from delaytopic_operator.execute.executor import Outcome
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import FALSE, Condition, instant_ms, merged, summed_up
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RecordState, RouteRecord
from delaytopic_operator.model.transitions import Event, transition_events
from delaytopic_operator.observe.observation import Observation, is_paused
from delaytopic_operator.report.events import EventRecorder
from delaytopic_operator.report.metrics import OperatorMetrics
from delaytopic_operator.report.slo import by_metric, slo_samples
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.need import Crest
from delaytopic_operator.topics.rules import failed_condition

MOST_PLANNED: Final = 50
REQUESTED: Final = "delaytopic.dev/reconcile-requested-at"

_VOLATILE: Final = frozenset({"asOf", "ageMs", "decidedAtMs", "nextLookMs", "lastTransitionTime"})
"""Fields that only say when something was looked at."""
_ADVICE: Final = frozenset({"desiredReplicas", "maxUsefulReplicas"})
"""The fields of the relays that follow from numbers."""
STATUS_MANAGER: Final = "delaytopic-operator-status"
AT_LEAST_ONE = 1
"""Stands for a count that nobody knows: a backlog that may be there must not look like none."""


def status_document(seen: Observation, plan: Plan, *, dry_run: bool = False) -> dict[str, Any]:
    """Make the document to apply as the status."""
    previous: Sequence[Mapping[str, Any]] = seen.route.status.get("conditions") or ()
    generation = seen.route.metadata.get("generation")
    if any(condition.type is ConditionType.PAUSED for condition in plan.conditions):
        return _document(seen, _paused(seen, plan))
    conditions = summed_up(plan.conditions, plan.progress, suspended=plan.suspended)
    status = {
        "observedGeneration": generation,
        "conditions": merged(previous, conditions, generation, seen.now_ms),
        **plan.parts,
        "operatorVersion": __version__,
        **_asked(seen),
        **({"plan": _planned(plan.actions)} if dry_run else {}),
    }
    return _document(seen, status)


def worth_writing(
    document: Mapping[str, Any], live: Mapping[str, Any], now_ms: int, interval_ms: int, written_ms: int | None = None
) -> bool:
    """Return whether the status says something new: what programs act on at once, numbers and sentences once an
    interval.

    `written_ms`: when it was written last; None: the times in it tell, as far as there are any.
    """
    wanted = document["status"]
    if _significant(wanted) != _significant(live):
        return True
    if _steady(wanted) == _steady(live):
        return False
    last_ms = written_ms if written_ms is not None else _told_ms(live)
    return last_ms is None or now_ms - last_ms >= interval_ms


def _told_ms(live: Mapping[str, Any]) -> int | None:
    """Return the time of the numbers in a status: the later one of backlog and scaling, as either may be missing."""
    as_of = (live.get("backlog") or {}).get("asOf")
    times = (instant_ms(as_of) if as_of else None, (live.get("scaling") or {}).get("decidedAtMs"))
    return max((int(each) for each in times if each is not None), default=None)


def _document(seen: Observation, status: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": seen.key.name, "namespace": seen.key.namespace, "uid": seen.route.metadata.get("uid")}
    return {"apiVersion": API_VERSION, "kind": "DelayTopic", "metadata": metadata, "status": dict(status)}


def _paused(seen: Observation, plan: Plan) -> dict[str, Any]:
    """Keep the status as it was, and add that it is paused: nothing was looked at."""
    transient = (ConditionType.PAUSED, ConditionType.RECONCILING)
    before = [each for each in seen.route.status.get("conditions") or () if each.get("type") not in transient]
    paused = [each for each in seen.route.status.get("conditions") or () if each.get("type") == ConditionType.PAUSED]
    found = merged(paused, plan.conditions, seen.route.metadata.get("generation"), seen.now_ms)
    generation = seen.route.metadata.get("generation")
    return {**seen.route.status, "observedGeneration": generation, "conditions": [*before, *found]}


def _asked(seen: Observation) -> dict[str, str]:
    asked = seen.route.annotations.get(REQUESTED)
    return {"lastHandledReconcileAt": asked} if asked else {}


def _planned(actions: Sequence[Action]) -> list[dict[str, Any]]:
    return [action.planned().to_document() for action in actions[:MOST_PLANNED]]


def _significant(status: Mapping[str, Any]) -> object:
    """Return what others act on: conditions, which generation they are about, replicas, and the answer to a request.

    Of the figures of an audit, when it was: its pod waits until they are written. The numbers that scaling would like
    to have are numbers like others.
    """
    conditions = {
        (each.get("type"), each.get("status"), each.get("reason"), each.get("observedGeneration"))
        for each in status.get("conditions") or ()
    }
    kept = ("observedGeneration", "source", "target", "deadLetter", "history", "outcomes", "effective", "plan")
    relay = {name: value for name, value in (status.get("relay") or {}).items() if name not in _ADVICE}
    audited_at = (status.get("slo") or {}).get("auditedAt")
    return (
        conditions,
        {name: status.get(name) for name in kept},
        relay,
        audited_at,
        status.get("lastHandledReconcileAt"),
    )


def _steady(part: object) -> object:
    """Return a part without what only says when something was looked at."""
    if isinstance(part, Mapping):
        return {name: _steady(value) for name, value in part.items() if name not in _VOLATILE and value is not None}
    if isinstance(part, list | tuple):
        return [_steady(value) for value in part]
    return part


class StatusWriter:
    """Says how it stands, and never more often than somebody could want to know."""

    def __init__(self, kube: KubeApi, events: EventRecorder, config: OperatorConfig) -> None:
        """`events` writes them in its own time."""
        self._kube = kube
        self._events = events
        self._config = config
        self._written_ms: dict[Key, int] = {}

    def report(self, seen: Observation, plan: Plan, outcome: Outcome, *, dry_run: bool) -> None:
        """Status first, so that an event never tells what the status does not show yet."""
        if seen.route.document is None:
            self._written_ms.pop(seen.key, None)
            self._of_gone(seen, plan, outcome)
            return
        if outcome.was_gone:
            return
        plan = with_failure(plan, outcome)
        document = status_document(seen, plan, dry_run=dry_run)
        released = outcome.failure is None and any(isinstance(action, RemoveFinalizer) for action in plan.actions)
        if not (seen.route.is_going and (released or (not plan.actions and not plan.conditions))):
            try:
                self._write(seen, document)
            except OperatorError:
                # It is not done again, so that nobody would ever tell of it.
                self._events.tell(seen.route.document, outcome.events)
                raise
        transitions = transition_events(
            seen.route.status.get("conditions") or (), document["status"].get("conditions") or ()
        )
        self._events.tell(seen.route.document, [*outcome.events, *self._planned(plan, outcome), *transitions])

    def _write(self, seen: Observation, document: dict[str, object]) -> None:
        # What drains is counted in the status at each look: each tenth that has left is told once.
        interval_ms = 0 if seen.route.is_going else self._config.status_interval.ms
        written_ms = self._written_ms.get(seen.key)
        if not worth_writing(document, seen.route.status, seen.now_ms, interval_ms, written_ms):
            return
        try:
            self._kube.apply_status(document, STATUS_MANAGER)
            self._written_ms[seen.key] = seen.now_ms
        except Conflict:
            if self._kube.get(kinds.DELAY_TOPIC, *seen.key) is not None:
                raise

    def _of_gone(self, seen: Observation, plan: Plan, outcome: Outcome) -> None:
        metadata = {"namespace": seen.key.namespace, "name": seen.key.name}
        about = {"apiVersion": API_VERSION, "kind": "DelayTopic", "metadata": metadata}
        self._events.tell(about, self._planned(plan, outcome))

    def _planned(self, plan: Plan, outcome: Outcome) -> tuple[Event, ...]:
        """Return the events of the plan: they are true once all of it was executed."""
        return tuple(plan.events) if outcome.failure is None else ()


def with_failure(plan: Plan, outcome: Outcome) -> Plan:
    """The plan whose conditions say what could not be done, and whether a person has to act."""
    failure, action = outcome.failure, outcome.failed
    if failure is None:
        return plan
    if isinstance(action, DoTopic | Purge):
        found = failed_condition(failure)
    elif isinstance(action, RestoreOffsets):
        found = Condition(
            ConditionType.BACKEND_READY, FALSE, failure.reason, f"relays wait for their offsets: {failure}"
        )
    elif isinstance(action, Apply | Delete):
        found = Condition(ConditionType.RELAY_AVAILABLE, FALSE, failure.reason, str(failure))
    else:
        return plan
    stalled = str(failure) if isinstance(failure, Rejected) else plan.progress.stalled
    progress = plan.progress._replace(stalled=stalled, stalled_reason=failure.reason) if stalled else plan.progress
    return replace(_found(plan, found), progress=progress)


def _found(plan: Plan, found: Condition) -> Plan:
    """Return the plan with this in the place of what else was found about it."""
    return replace(plan, conditions=[*(each for each in plan.conditions if each.type is not found.type), found])


class StatusMetrics:
    """Thread-safe for different keys."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        """`metrics` is the page they are on."""
        self._metrics = metrics

    def update(self, seen: Observation, plan: Plan, outcome: Outcome) -> None:
        """Say how it stands after a reconciliation."""
        if not is_paused(seen):
            stopped = seen.route.rollouts.stopped.items()
            self._metrics.set_stopped_rollouts({image: len(failed) for image, failed in stopped})
        if seen.route.document is not None:
            self._living(seen, with_failure(plan, outcome))
            return
        self._metrics.forget(seen.key)
        retained = retained_records(left_behind(seen, plan, outcome))
        if retained is not None:
            self._metrics.set_retained(seen.key, retained)

    def _living(self, seen: Observation, plan: Plan) -> None:
        conditions = summed_up(plan.conditions, plan.progress, suspended=plan.suspended)
        self._metrics.set_conditions(seen.key, {condition.type: condition.status for condition in conditions})
        self._metrics.set_retained(seen.key, None)
        self._metrics.set_slo(seen.key, by_metric(slo_samples(seen)))
        if plan.scaling is not None:
            self.update_scaling(seen, plan.scaling)

    def update_scaling(self, seen: Observation, decision: Decision) -> None:
        """Say how many relays would be right, and what is ahead."""
        lateness_s = decision.forecast.best_ms / 1_000 if decision.forecast is not None else None
        crests = decision.assessment.crests if decision.assessment is not None else ()
        peak = max((_per_second(crest) for crest in crests), default=None)
        self._metrics.set_scaling(seen.key, decision.wanted, peak, lateness_s)


def _per_second(crest: Crest) -> float:
    return (crest.sudden + crest.smooth) * 1_000 / max(1, crest.end_ms - crest.start_ms)


def left_behind(seen: Observation, plan: Plan, outcome: Outcome) -> RouteRecord | None:
    """The record after a reconciliation."""
    record = seen.route.record
    for action in plan.actions:
        if action is outcome.failed:
            break
        if isinstance(action, WriteRecord):
            record = action.record
        elif isinstance(action, ForgetRecord):
            record = None
    return record


def retained_records(record: RouteRecord | None) -> int | None:
    """Return how many records wait for their DelayTopic to be applied again; None: nothing waits."""
    if record is None or record.state is not RecordState.RETAINED or record.pending == 0:
        return None
    return AT_LEAST_ONE if record.pending is None else record.pending
