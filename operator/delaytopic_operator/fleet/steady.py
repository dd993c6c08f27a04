"""Looks at the numbers of a DelayTopic alone, as long as they are no reason to act or to say something new. Pure.

What is declared changes when somebody writes; numbers change by the second. A look at the numbers builds and compares
no object: it decides how many relays there shall be, and what is to be said of those that there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from delaytopic_operator.decide import relay_objects
from delaytopic_operator.decide.plan import NOTHING_CHANGES, Plan
from delaytopic_operator.decide.planner import decide_scaling, findings
from delaytopic_operator.decide.status_parts import parts_of
from delaytopic_operator.kafka.credentials import kafka_secrets
from delaytopic_operator.model.conditions import Condition
from delaytopic_operator.observe.observation import Document, Observation, RouteFacts
from delaytopic_operator.resources import image_of
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.topics.plan import TopicPlan

Said = frozenset[tuple[str, str, str]]
"""Type, status and reason of each condition: what programs act on."""


@dataclass(frozen=True, slots=True)
class Steady:
    """A DelayTopic of which a whole look found nothing to do."""

    seen: Observation
    topics: TopicPlan
    said: Said
    suspended: str | None
    """The parts that `spec.suspend` pauses, in words."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The outcome of a look at the numbers."""

    decision: Decision | None
    conditions: Sequence[Condition]
    next_at_ms: int


def steady(seen: Observation, decided: Plan) -> Steady | None:
    """Return what to look at from now on; None while something is done, waited for or wrong."""
    route, topics = seen.route, seen.topics
    if route.accepted is None or topics is None or decided.topics is None or route.is_going or decided.actions:
        return None
    if decided.progress != NOTHING_CHANGES or seen.fleet.deployment is None:
        return None
    if route.record is None or not decided.rules_are_settled or topics.strimzi is not None or topics.other_clusters:
        return None
    if _has_former_buckets(seen):
        return None
    if (route.record_problem, seen.topics_problem, route.secrets_problem, seen.committed) != (None, None, None, None):
        return None
    return Steady(_lean(seen), decided.topics, said(decided.conditions), decided.suspended)


def numbers(now: Observation, before: Steady) -> Numbers | None:
    """Decide by a look at pages and offsets alone; None where it is time for a whole look."""
    assert before.seen.topics is not None
    if now.topics is None or _of_topics(now) != _of_topics(before.seen):
        return None
    decision = decide_scaling(now)
    if decision is not None and (
        decision.changed or decision.by_hand is not None or decision.held.worth_saving(now.fleet.saved_memory)
    ):
        return None
    assert now.route.record is not None
    found = findings(now, before.topics, decision, now.route.record.rules)
    if said(found) != before.said:
        return None
    return Numbers(decision, found, relay_objects.next_look(now, decision))


def shown(now: Observation, before: Steady, found: Numbers) -> Plan:
    """Return what a status says of a look, which is made of the whole document: a plan to do nothing."""
    parts = parts_of(now, before.topics, found.decision)
    return Plan(conditions=found.conditions, suspended=before.suspended, parts=parts, scaling=found.decision)


def said(conditions: Iterable[Condition]) -> Said:
    """Return what programs act on."""
    return frozenset((str(each.type), str(each.status), each.reason) for each in conditions)


def _lean(seen: Observation) -> Observation:
    """Return what a look at the numbers reads: thousands are kept in memory."""
    fleet = seen.fleet
    assert fleet.deployment is not None
    assert seen.route.document is not None
    made = fleet.deployment
    containers = [{"image": image_of(made)}]
    of_template = (made["spec"].get("template") or {}).get("metadata") or {}
    template = {"metadata": of_template, "spec": {"containers": containers}}
    deployment = {
        "metadata": _only(made["metadata"], "name", "namespace", "generation", "creationTimestamp"),
        "spec": {**_only(made["spec"], "replicas"), "template": template},
        "status": made.get("status") or {},
    }
    pods = [_lean_pod(pod) for pod in fleet.pods]
    document = _only(seen.route.document, "apiVersion", "kind", "metadata")
    return replace(
        seen,
        route=replace(seen.route, document=document, objects=(), secrets=_lean_secrets(seen.route)),
        fleet=replace(fleet, deployment=deployment, pods=pods, pages=(), signals=None, memory=None),
    )


def _lean_secrets(route: RouteFacts) -> Mapping[str, Document | None]:
    """Return what logs in to Kafka; of other Secrets, which relays read, the version alone."""
    assert route.accepted is not None
    connection = route.accepted.settings.connection
    read = kafka_secrets(connection) if connection is not None else ()
    return {
        name: secret if secret is None or name in read else {"metadata": _only(secret["metadata"], "resourceVersion")}
        for name, secret in route.secrets.items()
    }


def _lean_pod(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    containers = [_only(each, "ports") for each in (pod.get("spec") or {}).get("containers") or ()]
    kept = ("name", "namespace", "creationTimestamp", "deletionTimestamp", "annotations")
    status = _only(pod.get("status") or {}, "phase", "podIP", "containerStatuses")
    return {"metadata": _only(pod["metadata"], *kept), "spec": {"containers": containers}, "status": status}


def _only(part: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: part[name] for name in names if name in part}


def _has_former_buckets(seen: Observation) -> bool:
    """Tell if bucket topics of a former backend are still to go, once they are empty."""
    record = seen.route.record
    return record is not None and bool(record.buckets) and not (seen.topics and seen.topics.buckets)


def _of_topics(seen: Observation) -> object:
    """Return what topics are planned by, and what is advised about their brokers."""
    topics = seen.topics
    assert topics is not None
    return topics.view, topics.buckets, topics.released, topics.cluster_id, topics.offsets_retention_ms
