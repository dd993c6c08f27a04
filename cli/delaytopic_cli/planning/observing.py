"""What the operator would see of a DelayTopic, as far as documents and objects tell it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from delaytopic_api.values import AutoscalingMode, ScaleToZero, TopicProvisioning
from delaytopic_cli.planning.applying import NOT_YET_KNOWN
from delaytopic_cli.planning.assumed_topics import Lived, assumed_view, record_of_status
from delaytopic_cli.planning.without_secrets import as_if_read
from delaytopic_cli.planning.world import World
from delaytopic_operator.decide.children import desired, identity_of, replicas
from delaytopic_operator.decide.record import COMPONENT, RouteRecord, find_former_record, find_record, record_of
from delaytopic_operator.decide.validate import Accepted, Refusal
from delaytopic_operator.errors import RecordUnreadable
from delaytopic_operator.kube.keys import Key
from delaytopic_operator.observe.fleet import Fleet
from delaytopic_operator.observe.observation import NamespaceFacts, Observation, Topics, Trouble
from delaytopic_operator.resources import connection_files, secrets_version
from delaytopic_operator.runtime.indexers import owner_of
from delaytopic_operator.scaling.decision import decide
from delaytopic_operator.scaling.memory import ScalingMemory
from delaytopic_operator.scaling.policy import ScalingPolicy
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.topics.needed_buckets import needed_buckets
from delaytopic_operator.topics.strimzi import strimzi_place, strimzi_topics

Document = dict[str, Any]


def observe(
    world: World, key: Key, verdict: Accepted | Refusal, lived: Lived | None, children: Sequence[Document] | None
) -> Observation:
    """What the operator would see of it; `children` None: those that were read."""
    state, document = world.state, world.topics[key]
    made = [each for each in state.made if owner_of(each) == key] if children is None else list(children)
    seen = Observation(
        key=key,
        now_ms=world.now_ms,
        config=state.config,
        document=document,
        namespace=_facts(world, key),
        verdict=verdict,
        record=None,
        record_trouble=None,
        children=[each for each in made if not _is_record(each)],
        fleet=Fleet(_deployment(made), (), (), _partitions(document)),
    )
    if isinstance(verdict, Refusal):
        return seen
    seen = _with_record(world, seen, verdict, lived)
    seen = _with_decision(_with_topics(seen, verdict, lived), verdict)
    files = connection_files(verdict.settings)
    seen = replace(seen, secrets_version=secrets_version(files.read_once, {}))
    wanted = desired(seen, verdict, verdict.settings, replicas(seen, verdict.settings))
    compared = as_if_read(seen.children, wanted, seen.secrets_version)
    return replace(seen, children=compared, fleet=replace(seen.fleet, deployment=_deployment(compared)))


def _facts(world: World, key: Key) -> NamespaceFacts:
    namespace = world.namespaces.get(key.namespace)
    metadata = namespace["metadata"] if namespace is not None else {}
    return NamespaceFacts(
        metadata.get("uid", NOT_YET_KNOWN), metadata.get("labels") or {}, "deletionTimestamp" in metadata
    )


def _with_record(world: World, seen: Observation, accepted: Accepted, lived: Lived | None) -> Observation:
    assert seen.namespace is not None
    made, place = world.state.made, seen.config.namespace
    found = find_record(made, seen.key, place) or find_former_record(made, seen.key, place)
    if found is not None:
        try:
            record = record_of(found, seen.key)
        except RecordUnreadable as error:
            return replace(seen, record_trouble=Trouble(error.reason, str(error), stalled=True))
        return _in_namespace_of(replace(seen, record=record), record)
    if seen.config.namespace in world.state.unseen and lived is not None and lived.status.get("source"):
        return replace(seen, record=record_of_status(accepted.settings, seen.namespace.uid, lived.status))
    return seen


def _in_namespace_of(seen: Observation, record: RouteRecord) -> Observation:
    """A namespace that may not be read is taken to be that of the record."""
    assert seen.namespace is not None
    if seen.namespace.uid != NOT_YET_KNOWN:
        return seen
    return replace(seen, namespace=replace(seen.namespace, uid=record.namespace_uid))


def _with_topics(seen: Observation, accepted: Accepted, lived: Lived | None) -> Observation:
    settings = accepted.settings
    view = assumed_view(settings, accepted.topic.spec, seen.record, lived)
    topics = Topics(view, needed_buckets(settings))
    if settings.topic_provisioning is TopicProvisioning.STRIMZI_KAFKA_TOPIC and settings.connection is not None:
        namespace = identity_of(seen, accepted).namespace
        place = strimzi_place(settings.connection.bootstrap_servers, namespace)
        topics = replace(topics, strimzi=strimzi_topics(place, ()) if place is not None else None)
    return replace(seen, topics=topics)


def _with_decision(seen: Observation, accepted: Accepted) -> Observation:
    """Of the number of relays what follows from the spec; what follows from the load is not known here."""
    scaling = accepted.settings.autoscaling
    may_sleep = scaling.mode is AutoscalingMode.OPERATOR and scaling.scale_to_zero is not ScaleToZero.NEVER
    if seen.fleet.deployment is None or (may_sleep and seen.fleet.desired == 0):
        return seen
    policy = ScalingPolicy.of(accepted.settings, seen.annotations)
    signals = gather([], None, seen.now_ms)
    decision = decide(policy, seen.fleet.desired, signals, ScalingMemory(), seen.now_ms)
    return replace(seen, decision=decision)


def _deployment(children: Iterable[Document]) -> Document | None:
    return next((each for each in children if each["kind"] == "Deployment"), None)


def _partitions(document: Mapping[str, Any]) -> int | None:
    count = ((document.get("status") or {}).get("source") or {}).get("partitions")
    return int(count) if count is not None else None


def _is_record(document: Document) -> bool:
    return bool((document["metadata"].get("labels") or {}).get("app.kubernetes.io/component") == COMPONENT)
