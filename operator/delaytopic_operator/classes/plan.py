"""The status of a DelayClass, and its protection while it is used. Pure.

Several operators may share a class, each with DelayTopics of its own. Each holds the class by a finalizer of its own;
the status is written by one of them, so that they do not write against each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from delaytopic_api.documents import API_VERSION, ConditionType
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Condition, merged
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.transitions import Event, transition_events
from delaytopic_operator.observe.observation import OfObject, Problem

MOST_NAMED: Final = 5
IN_USE: Final = "delaytopic.dev/in-use"


@dataclass(frozen=True)
class ClassObservation(OfObject):
    """One look at one DelayClass."""

    name: str
    now_ms: int
    config: OperatorConfig
    document: Mapping[str, Any] | None
    """The DelayClass; None when it is gone."""
    users: frozenset[Key] = frozenset()
    """The DelayTopics that use it, and those gone whose relays still have to be stopped by it."""
    problem: Problem | None = None
    """The first thing for which DelayTopics cannot use it."""

    @property
    def writes_status(self) -> bool:
        """True if the status is this operator's: it was first, or who was has no DelayTopics of the class any more."""
        writer = self.status.get("operator")
        if writer == self.config.namespace:
            return True
        if writer is None:
            # Who looks after some namespaces only says nothing of classes that others may use.
            return bool(self.users) or not self.config.watch_namespaces
        return bool(self.users) and self.status.get("users") == 0


@dataclass(frozen=True)
class ClassPlan:
    """The outcome of one look at one DelayClass."""

    held: bool | None = None
    """True if the operator is to hold the class from now on, False to let it go; None: it stays as it is."""
    status: Mapping[str, Any] | None = None
    """The document to apply as the status; None: it says nothing new, or is another operator's."""
    events: Sequence[Event] = ()
    """The events to be told once the status is written."""
    next_at_ms: int | None = None


def class_finalizer(operator_namespace: str) -> str:
    """Name the finalizer of the operator of a namespace."""
    return f"{operator_namespace}.{IN_USE}"


def plan_class(seen: ClassObservation) -> ClassPlan:
    """Decide what to write of a class now."""
    if seen.document is None:
        return ClassPlan()
    holds = class_finalizer(seen.config.namespace) in (seen.metadata.get("finalizers") or ())
    next_at_ms = seen.now_ms + seen.config.poll.ms
    if seen.is_going and not seen.users:
        return ClassPlan(held=False) if holds else ClassPlan(next_at_ms=next_at_ms)
    # Kubernetes takes no new finalizer of an object that is being deleted.
    held = bool(seen.users) if holds != bool(seen.users) and not (seen.is_going and not holds) else None
    if not seen.writes_status:
        return ClassPlan(held=held, next_at_ms=next_at_ms if seen.users else None)
    status = _status(seen)
    if _significant(status) == _significant(seen.status):
        return ClassPlan(held=held, next_at_ms=next_at_ms)
    events = transition_events(seen.status.get("conditions") or (), status["conditions"])
    return ClassPlan(held, _document(seen, status), events, next_at_ms)


def _status(seen: ClassObservation) -> dict[str, Any]:
    generation = seen.metadata.get("generation")
    conditions = [_accepted(seen), *([_blocked(seen)] if seen.is_going else [])]
    return {
        "observedGeneration": generation,
        "conditions": merged(seen.status.get("conditions") or (), conditions, generation, seen.now_ms),
        "users": len(seen.users),
        "operator": seen.config.namespace,
    }


def _accepted(seen: ClassObservation) -> Condition:
    problem = seen.problem
    if problem is None:
        return Condition(ConditionType.ACCEPTED, TRUE, "Accepted", "Secrets are there, and its servers answer")
    return Condition(ConditionType.ACCEPTED, UNKNOWN if problem.passing else FALSE, problem.reason, problem.message)


def _blocked(seen: ClassObservation) -> Condition:
    """Name some of the users: whoever deletes a class looks after all namespaces."""
    users = sorted(map(str, seen.users))
    more = f" and {len(users) - MOST_NAMED} more" if len(users) > MOST_NAMED else ""
    use = "1 DelayTopic uses it" if len(users) == 1 else f"{len(users)} DelayTopics use it"
    message = (
        f"{use}: {', '.join(users[:MOST_NAMED])}{more}. They go on as before; the class goes once they are deleted and "
        "their relays are stopped"
    )
    return Condition(ConditionType.DELETION_BLOCKED, TRUE, "InUse", message)


def _document(seen: ClassObservation, status: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": seen.name, "uid": seen.metadata.get("uid")}
    return {"apiVersion": API_VERSION, "kind": "DelayClass", "metadata": metadata, "status": dict(status)}


def _significant(status: Mapping[str, Any]) -> object:
    """Return what is worth a write: the words about servers that are away change with each look."""
    conditions = {
        each["type"]: (
            each["status"],
            each["reason"],
            each.get("observedGeneration"),
            each.get("message") if each["status"] != str(UNKNOWN) else None,
        )
        for each in status.get("conditions") or ()
    }
    return conditions, status.get("observedGeneration"), status.get("users"), status.get("operator")
