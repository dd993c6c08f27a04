"""The parts of the status that are no conditions: topics, backend, relays, backlog, scaling and SLO. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delaytopic_api.documents import BackendStatus, EffectiveStatus, RelayFleetStatus, ScalingStatus
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.observe.fleet import FleetFacts, backlog
from delaytopic_operator.observe.former_rules import former_rules
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.resources import image_of, selector
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.explain import explain
from delaytopic_operator.topics.plan import TopicPlan

KEPT_WHEN_UNKNOWN = (
    "source",
    "target",
    "deadLetter",
    "history",
    "outcomes",
    "backlog",
    "slo",
    "effective",
    "backend",
    "formerRules",
)
"""Parts that stay as they were while there is nothing newer to say."""


def parts_of(seen: Observation, topic_plan: TopicPlan | None, decision: Decision | None = None) -> dict[str, Any]:
    """Return the parts that are known now, and some as they were known last."""
    last = {name: seen.route.status[name] for name in KEPT_WHEN_UNKNOWN if name in seen.route.status}
    now = {**_topics(topic_plan), **_settings(seen), **_fleet(seen, decision), **_scaling(seen, decision), **_slo(seen)}
    # An empty object that held something before becomes null on the API server, which refuses it.
    return {name: part for name, part in {**last, **now}.items() if part}


def _topics(topic_plan: TopicPlan | None) -> dict[str, Any]:
    if topic_plan is None:
        return {}
    statuses = {
        "source": topic_plan.source,
        "target": topic_plan.target,
        "deadLetter": topic_plan.dead_letter,
        "history": topic_plan.history,
        "outcomes": topic_plan.outcomes,
    }
    return {name: status.to_document() for name, status in statuses.items() if status is not None}


def _settings(seen: Observation) -> dict[str, Any]:
    if seen.route.accepted is None:
        return {}
    settings, of_class = seen.route.accepted.settings, seen.route.accepted.delay_class
    schedule = settings.schedule
    effective = EffectiveStatus(
        precision=str(settings.precision),
        dialect=str(schedule.dialect),
        max_delay=str(schedule.max_delay),
        default_delay=str(schedule.default_delay) if schedule.default_delay is not None else None,
        fixed_delay=str(schedule.fixed_delay) if schedule.fixed_delay is not None else None,
        ids=str(schedule.ids),
        delay_class=of_class.metadata.name if of_class else None,
        delay_class_generation=_applied_generation(seen),
    )
    backend = BackendStatus(type=settings.backend.type, id=settings.backend.id, to_move=seen.fleet.to_move or None)
    return {"effective": effective.to_document(), "backend": backend.to_document()}


def _applied_generation(seen: Observation) -> int | None:
    """Return the generation of the class; the one before, while relays wait for their turn to start anew."""
    of_class = seen.route.accepted.delay_class if seen.route.accepted is not None else None
    if of_class is None:
        return None
    if seen.route.waits_to_roll:
        before = (seen.route.status.get("effective") or {}).get("delayClassGeneration")
        return int(before) if before is not None else None
    return of_class.metadata.generation


def _fleet(seen: Observation, decision: Decision | None) -> dict[str, Any]:
    fleet = seen.fleet
    if fleet.deployment is None:
        return {}
    status = RelayFleetStatus(
        replicas=fleet.replicas,
        ready_replicas=fleet.ready,
        desired_replicas=decision.wanted if decision is not None else fleet.desired,
        max_useful_replicas=decision.max_useful if decision is not None else None,
        selector=",".join(f"{name}={value}" for name, value in selector(seen.key).items()),
        summary=f"{fleet.ready}/{fleet.desired}",
        version=_version(fleet.deployment),
    )
    relay = {**status.to_document(), **_last_scale(decision)}
    look_ahead_ms = seen.route.accepted.settings.autoscaling.look_ahead.ms if seen.route.accepted is not None else 0
    counted = backlog(fleet, look_ahead_ms)
    return {
        "relay": relay,
        **({"backlog": counted.to_document()} if counted is not None else {}),
        **_former_rules(fleet),
    }


def _former_rules(fleet: FleetFacts) -> dict[str, Any]:
    """Return an empty list only where every partition was heard of."""
    found = former_rules(fleet)
    return {"formerRules": [each.to_document() for each in found]} if found or fleet.complete else {}


def _last_scale(decision: Decision | None) -> dict[str, Any]:
    # Only what was executed is a step: the one of this plan shows at the next reconciliation.
    step = decision.held.step if decision is not None else None
    return {"lastScaleTime": instant(step.at_ms)} if step is not None else {}


def _scaling(seen: Observation, decision: Decision | None) -> dict[str, Any]:
    if decision is None or seen.fleet.signals is None:
        return {}
    return {"scaling": ScalingStatus.model_validate(explain(decision, seen.fleet.signals)).to_document()}


def _slo(seen: Observation) -> dict[str, Any]:
    return {"slo": dict(seen.audit.slo.shown)} if seen.audit.slo is not None else {}


def _version(deployment: Mapping[str, Any]) -> str | None:
    image = image_of(deployment)
    return image.rpartition(":")[2] if ":" in image.rpartition("/")[2] else None
