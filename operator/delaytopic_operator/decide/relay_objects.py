"""The relays of a DelayTopic: which objects to write or remove, and what their state says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from delaytopic_api.documents import Settings
from delaytopic_api.values import AutoscalingMode, Suspend
from delaytopic_operator.decide import revoked
from delaytopic_operator.decide.drift import drift
from delaytopic_operator.decide.plan import Action, Apply, Delete
from delaytopic_operator.decide.relay_configs import config_place, configs_in_use, is_relay_config, is_spoilt
from delaytopic_operator.decide.rules_in_force import rules_of
from delaytopic_operator.model.conditions import TRUE, Condition
from delaytopic_operator.observe.fleet import availability, punctuality
from delaytopic_operator.observe.observation import Observation, address_of, identity_of
from delaytopic_operator.resources import Remembered, relay_objects
from delaytopic_operator.resources.identity import APPLIED_HASH, IN_TURN
from delaytopic_operator.rules.validate import Accepted
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.topics.ownership import ACCEPT_RECREATION, accepted_ids, accepted_source

_ROLLS = ".spec.template"
KINDS = ("ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "ServiceAccount")
"""The kinds that are made for relays. KafkaTopics are none of them: nothing but deletion removes them."""

Document = dict[str, Any]
Address = tuple[str, str, str]
"""Kind, namespace and name."""


def wanted(seen: Observation, accepted: Accepted, decision: Decision | None, *, may_begin: bool) -> list[Document]:
    """List every object that there shall be; none while not everything is there that they need."""
    if (seen.fleet.deployment is None and not may_begin) or seen.route.secrets_problem is not None:
        return []
    return desired_objects(seen, accepted, accepted.settings, replicas(seen, accepted.settings, decision))


def changes(seen: Observation, wanted: Sequence[Document], decision: Decision | None) -> list[Action]:
    """List the objects to write or to remove, of those that are `wanted`; none while nothing is."""
    if not wanted:
        return []
    return [*_applied(seen, wanted, decision), *(Delete(document) for document in _not_wanted(seen, wanted))]


def draining(seen: Observation, accepted: Accepted) -> list[Action]:
    """List the same while it is being deleted: what is pending is delivered, nothing is taken in.

    With a fixed delay everything pending waits in the source: what is not taken in would never be delivered.
    """
    settings = accepted.settings
    if settings.schedule.fixed_delay is None:
        holds = settings.suspend in (Suspend.DELIVERY, Suspend.ALL)
        settings = replace(settings, suspend=Suspend.ALL if holds else Suspend.INGEST)
    wanted = desired_objects(seen, accepted, settings, max(1, seen.fleet.desired))
    return [*_applied(seen, wanted), *(Delete(document) for document in _not_wanted(seen, wanted))]


def desired_objects(seen: Observation, accepted: Accepted, settings: Settings, count: int | None) -> list[Document]:
    """List every object that there shall be."""
    identity = identity_of(seen, accepted)
    of_class = accepted.delay_class
    template = of_class.spec.relay if of_class is not None else None
    return relay_objects(
        settings,
        identity,
        accepted.topic,
        template,
        seen.config,
        seen.route.secrets_version,
        count,
        Remembered(rules_of(seen, accepted).declared_ms, _accepted_source(seen)),
    )


def _accepted_source(seen: Observation) -> str | None:
    source = seen.route.record.source if seen.route.record is not None else None
    return accepted_source(source, accepted_ids(seen.route.annotations.get(ACCEPT_RECREATION)))


def replicas(seen: Observation, settings: Settings, decision: Decision | None) -> int:
    """Return the number of relays as decided, or the one to begin with."""
    if decision is not None:
        return decision.replicas
    if seen.fleet.deployment is not None:
        return seen.fleet.desired
    scaling = settings.autoscaling
    if scaling.mode is not AutoscalingMode.OPERATOR:
        # The limits are the operator's own: somebody who asks for none has none, not even for a moment.
        return scaling.replicas
    most = scaling.max_replicas if scaling.max_replicas is not None else max(scaling.replicas, scaling.min_replicas)
    return min(max(scaling.replicas, scaling.min_replicas), most)


def conditions(seen: Observation, decision: Decision | None = None) -> list[Condition]:
    """List the conditions of relays, scaling and audit; nothing of scaling and audit before there are relays."""
    found = [revoked.stopped(seen) or _stopped(seen, availability(seen.fleet))]
    if seen.fleet.deployment is None:
        return found
    if seen.route.accepted is not None and seen.fleet.desired > 0:
        found.append(punctuality(seen.fleet, seen.route.accepted.settings.precision.ms, seen.now_ms))
    if decision is not None:
        for each in (decision.capacity, decision.active):
            found.append(Condition(each.type, each.status, each.reason, each.message))
    if seen.audit.slo is not None:
        found.append(seen.audit.slo.condition)
    return found


def _stopped(seen: Observation, available: Condition) -> Condition:
    """Say of relays that work that they are not started anew, as others did not become ready; name none of them."""
    failed = seen.route.no_turn.failed if seen.route.no_turn is not None else ()
    if not failed or available.status is not TRUE:
        return available
    message = (
        f"{available.message}, and run on as they are. They are not started anew: for an upgrade, a class or a Secret, "
        f"relays of {len(failed)} other DelayTopics were, and did not become ready. Who looks after the "
        "operator finds their names in its log; once what is wrong was set right, and one of them is ready, it goes on"
    )
    return Condition(available.type, TRUE, "RolloutStopped", message)


def next_look(seen: Observation, decision: Decision | None) -> int:
    """Return the next poll, or when scaling has to decide before; without relays, the next resync is enough."""
    if seen.topics_problem is not None or seen.route.secrets_problem is not None or seen.fleet.deployment is not None:
        poll_ms = seen.now_ms + seen.config.poll.ms
        return min(poll_ms, decision.next_look_ms) if decision is not None else poll_ms
    return seen.now_ms + seen.config.resync.ms


def strimzi_changes(
    wanted: Iterable[Document], obsolete: Iterable[str], live: Iterable[Mapping[str, Any]]
) -> list[Action]:
    """List KafkaTopics to write, and those to delete by name."""
    there = {str(document["metadata"]["name"]): dict(document) for document in live}
    found: list[Action] = []
    for document in wanted:
        before = there.get(document["metadata"]["name"])
        differences = drift(document, before) if before is not None else []
        if before is None or differences:
            found.append(Apply(document, differences, exists=before is not None))
    return [*found, *(Delete(there[name]) for name in obsolete if name in there)]


def _applied(seen: Observation, wanted: Iterable[Document], decision: Decision | None = None) -> list[Action]:
    there = {address_of(document): document for document in seen.route.objects}
    wanted = list(wanted)
    found: list[Action] = []
    waits = any(_waits(seen, each, there) for each in wanted)
    for document in wanted:
        live = there.get(address_of(document))
        differences = drift(document, live) if live is not None else []
        if live is None:
            # A Deployment and what its pods start from change together.
            found += [] if waits and is_relay_config(document) else [Apply(document, step=_step(document, decision))]
        elif is_relay_config(document) and is_spoilt(differences):
            found += [Delete(live), Apply(document)]
        elif differences and not _waits(seen, document, there):
            in_turn = _in_turn(seen, document, differences)
            written = _marked(document, live, differences, in_turn=in_turn)
            found.append(Apply(written, differences, True, _step(document, decision), in_turn))
    return found


def _marked(document: Document, live: Document, differences: Sequence[str], *, in_turn: bool) -> Document:
    """Return a Deployment that tells whether its relays started anew last in a turn: so another leader knows, too."""
    metadata = document["metadata"]
    is_as_before = not _rolls(document, differences) and IN_TURN in (live["metadata"].get("annotations") or {})
    if not in_turn and not is_as_before:
        return document
    annotations = {**metadata.get("annotations", {}), IN_TURN: "true"}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _waits(seen: Observation, document: Document, there: Mapping[Address, Document]) -> bool:
    """Tell if the Deployment is to change, and was refused a turn to start its relays anew.

    Without what its pods start from it waits for nobody.
    """
    live = there.get(address_of(document))
    if document["kind"] != "Deployment" or live is None or seen.route.no_turn is None:
        return False
    place = config_place(live)
    can_start = place is None or ("ConfigMap", *place) in there
    return can_start and _in_turn(seen, document, drift(document, live))


def _in_turn(seen: Observation, document: Document, differences: Sequence[str]) -> bool:
    """Tell if relays start anew for others' sake: what its author changed is not held up by others."""
    return (seen.route.follows_class or not seen.route.is_changed) and _rolls(document, differences)


def _step(document: Document, decision: Decision | None) -> Decision | None:
    """Return the scaling step that is taken by writing this object."""
    is_step = document["kind"] == "Deployment" and decision is not None and decision.changed
    return decision if is_step else None


def _rolls(document: Document, differences: Iterable[str]) -> bool:
    """Tell if pods start anew; a change of the Deployment itself starts none."""
    if document["kind"] != "Deployment":
        return False
    # A field that is wanted no longer shows in the digest alone.
    paths = list(differences)
    return any(_ROLLS in f".{path}" for path in paths) or all(APPLIED_HASH in path for path in paths)


def _not_wanted(seen: Observation, wanted: Iterable[Document]) -> list[Document]:
    kept = {address_of(document) for document in wanted} | {("ConfigMap", *each) for each in configs_in_use(seen)}
    return [each for each in seen.route.objects if each["kind"] in KINDS and address_of(each) not in kept]
