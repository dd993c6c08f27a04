"""The observation that the operator would have of a DelayTopic, as far as documents and objects tell it. Pure.

Kafka is not asked. A topic is as the status of its DelayTopic says, with the settings that the DelayTopic in the
cluster asks for. One that no status speaks of is not there yet, unless it is `management: Observe`: then it is, and as
it should be.

Secrets are not read. Their digest is in the hash of relays' pods, since relays start anew when one changes: the hash
that follows from the live configuration takes the place of the one that is there. The digest of a gateway's token that
is in a Secret is the one that the relays know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from delaytopic_api import RelayConfig, Settings
from delaytopic_api.documents import DelayTopicSpec, Ownership
from delaytopic_api.errors import ApiError
from delaytopic_api.loading import load_relay_config
from delaytopic_api.values import AutoscalingMode, Management, ScaleToZero, TopicProvisioning
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.decide.planner import decide_scaling
from delaytopic_operator.decide.relay_configs import config_place
from delaytopic_operator.decide.relay_objects import desired_objects, replicas
from delaytopic_operator.errors import RecordUnreadable
from delaytopic_operator.kube.indexers import owner_of
from delaytopic_operator.model.declared_rules import DeclaredRules, declared, taken_over
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import (
    COMPONENT,
    Role,
    RouteRecord,
    TopicRecord,
    begin_record,
    find_record,
    record_of,
)
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.observe.observation import (
    NamespaceFacts,
    Observation,
    Problem,
    RouteFacts,
    Topics,
    address_of,
    identity_of,
)
from delaytopic_operator.offline.changes import NOT_YET_KNOWN
from delaytopic_operator.offline.cluster_view import ClusterView, LiveTopic, namespace_labels
from delaytopic_operator.offline.documents import Document
from delaytopic_operator.resources import connection_files, kube_cluster_of, secrets_version
from delaytopic_operator.resources.identity import APPLIED_HASH, CONFIG_HASH, config_hash, stamped
from delaytopic_operator.resources.pod import CONFIG_KEY
from delaytopic_operator.rules.revoked import revoked
from delaytopic_operator.rules.validate import Accepted, Refusal
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.topics.actions import CreateTopic
from delaytopic_operator.topics.desired import DesiredTopic, desired_topics, needed_buckets
from delaytopic_operator.topics.strimzi import strimzi_place, strimzi_topics

ONE_AT_LEAST: Final = 1
"""Partitions and copies where the broker's configuration decides."""


def observe(
    view: ClusterView,
    key: Key,
    verdict: Accepted | Refusal,
    live: LiveTopic | None,
    objects: Sequence[Document] | None,
) -> Observation:
    """Return the observation of a DelayTopic; `objects` None: those that were read."""
    state, document = view.state, view.topics[key]
    made = [each for each in state.made if owner_of(each) == key] if objects is None else list(objects)
    route = RouteFacts(
        document=document,
        namespace=_facts(view, key),
        verdict=verdict,
        record=None,
        record_problem=None,
        objects=[each for each in made if not _is_record(each)],
        # Users of a plan need not be able to read what the operator makes it from.
        kube_cluster=kube_cluster_of(_deployment(made)),
    )
    fleet = FleetFacts(_deployment(made), (), partitions=_partitions(document))
    seen = Observation(key, view.now_ms, _with_known_token(state.config, made), route, fleet)
    seen = _with_record(view, seen, verdict, live)
    if isinstance(verdict, Refusal):
        return _with_revoked(view, seen)
    seen = _with_signals(_with_topics(seen, verdict, live), verdict)
    files = connection_files(verdict.settings)
    seen = replace(seen, route=replace(seen.route, secrets_version=secrets_version(files.read_once, {})))
    wanted = desired_objects(seen, verdict, verdict.settings, replicas(seen, verdict.settings, decide_scaling(seen)))
    compared = as_if_read(seen.route.objects, wanted, seen.route.secrets_version)
    fleet = replace(seen.fleet, deployment=_deployment(compared))
    return replace(seen, route=replace(seen.route, objects=compared), fleet=fleet)


def _with_known_token(config: OperatorConfig, made: Sequence[Document]) -> OperatorConfig:
    live = _live_config(made)
    known = live.http.pending_token_sha256 if live is not None else None
    reads_a_secret = config.gateway is not None and config.gateway.token_secret is not None
    return config.with_relay_token(known) if known is not None and reads_a_secret else config


def _facts(view: ClusterView, key: Key) -> NamespaceFacts:
    namespace = view.namespaces.get(key.namespace)
    metadata = namespace["metadata"] if namespace is not None else {}
    return NamespaceFacts(
        metadata.get("uid", NOT_YET_KNOWN), metadata.get("labels") or {}, "deletionTimestamp" in metadata
    )


def _with_revoked(view: ClusterView, seen: Observation) -> Observation:
    """Add the right that relays of a refused DelayTopic have no longer."""
    if seen.route.record is None:
        return seen
    labels = namespace_labels(view, view.topics[seen.key])
    return replace(seen, route=replace(seen.route, revoked=revoked(seen.route.record, view.parsed_classes, labels)))


def _with_record(
    view: ClusterView, seen: Observation, verdict: Accepted | Refusal, live: LiveTopic | None
) -> Observation:
    route, namespace = seen.route, seen.route.namespace
    assert namespace is not None
    made, place = view.state.made, seen.config.namespace
    found = find_record(made, seen.key, place)
    if found is not None:
        try:
            route = _in_namespace_of(route, record_of(found, seen.key))
        except RecordUnreadable as error:
            route = replace(route, record_problem=Problem(error.reason, str(error), stalled=True))
    elif seen.config.namespace in view.state.unseen and live is not None and live.status.get("source"):
        settings = verdict.settings if isinstance(verdict, Accepted) else live.settings
        record = record_of_status(settings, namespace.uid, live.status)
        route = replace(route, record=record.model_copy(update={"rules": _live_rules(seen, live)}))
    return replace(seen, route=route)


def _live_rules(seen: Observation, live: LiveTopic) -> DeclaredRules:
    """Return the rules in the cluster, declared when the relays' configuration says, as far as that may be read."""
    rules = taken_over(declared(None, live.settings, seen.now_ms), seen.now_ms)
    config = _live_config(seen.route.objects)
    said_ms = config.schedule.declared_ms if config is not None else None
    return rules.model_copy(update={"declared_ms": said_ms}) if said_ms is not None else rules


def _in_namespace_of(route: RouteFacts, record: RouteRecord) -> RouteFacts:
    """Add the record; a namespace that may not be read is taken to be that of the record."""
    namespace = route.namespace
    assert namespace is not None
    known = namespace if namespace.uid != NOT_YET_KNOWN else replace(namespace, uid=record.namespace_uid)
    return replace(route, record=record, namespace=known)


def _with_topics(seen: Observation, accepted: Accepted, live: LiveTopic | None) -> Observation:
    settings = accepted.settings
    kafka = assumed_view(settings, accepted.topic.spec, seen.route.record, live)
    topics = Topics(kafka, needed_buckets(settings))
    if settings.topic_provisioning is TopicProvisioning.STRIMZI_KAFKA_TOPIC and settings.connection is not None:
        namespace = identity_of(seen, accepted).namespace
        place = strimzi_place(settings.connection.bootstrap_servers, namespace)
        topics = replace(topics, strimzi=strimzi_topics(place, ()) if place is not None else None)
    return replace(seen, topics=topics)


def _with_signals(seen: Observation, accepted: Accepted) -> Observation:
    """Add signals that hold nothing: only the number of relays that follows from the spec is known here."""
    scaling = accepted.settings.autoscaling
    may_sleep = scaling.mode is AutoscalingMode.OPERATOR and scaling.scale_to_zero is not ScaleToZero.NEVER
    if seen.fleet.deployment is None or (may_sleep and seen.fleet.desired == 0):
        return seen
    return replace(seen, fleet=replace(seen.fleet, signals=gather([], None, seen.now_ms)))


def _deployment(objects: Iterable[Document]) -> Document | None:
    return next((each for each in objects if each["kind"] == "Deployment"), None)


def _partitions(document: Mapping[str, Any]) -> int | None:
    count = ((document.get("status") or {}).get("source") or {}).get("partitions")
    return int(count) if count is not None else None


def _is_record(document: Document) -> bool:
    return bool((document["metadata"].get("labels") or {}).get("app.kubernetes.io/component") == COMPONENT)


def assumed_view(
    settings: Settings, spec: DelayTopicSpec, record: RouteRecord | None, live: LiveTopic | None
) -> KafkaView:
    """Return every topic that the planner asks about."""
    before = {desired.role: desired for desired in desired_topics(live.settings, live.spec, None, ())} if live else {}
    found: dict[str, TopicFacts] = {}
    missing: set[str] = set()
    for desired in desired_topics(settings, spec, None, needed_buckets(settings)):
        if desired.role is None:
            facts = _bucket_facts(desired, record, live)
        else:
            recorded = record.of_role(desired.role) if record else None
            status = (live.status.get(desired.role.value) or {}) if live else {}
            facts = _topic_facts(desired, before.get(desired.role), recorded, status)
        if facts is not None:
            found[desired.name] = facts
        else:
            missing.add(desired.name)
    for name, recorded in (record.buckets if record else {}).items():
        found.setdefault(name, TopicFacts(name, recorded.topic_id or NOT_YET_KNOWN, ONE_AT_LEAST, ONE_AT_LEAST, None))
    return KafkaView(found, frozenset(missing))


def made_topic(action: CreateTopic) -> TopicFacts:
    """Return a topic once it was made."""
    partitions, copies = max(ONE_AT_LEAST, action.partitions), max(ONE_AT_LEAST, action.replication_factor)
    return TopicFacts(action.name, NOT_YET_KNOWN, partitions, copies, dict(action.config), frozenset(action.config))


def record_of_status(settings: Settings, namespace_uid: str, status: Mapping[str, Any]) -> RouteRecord:
    """Return the record that follows from the status, for users who may not read the record itself."""
    record = begin_record(settings, namespace_uid)
    names = {
        Role.SOURCE: settings.source.topic,
        Role.TARGET: settings.target.topic,
        Role.DEAD_LETTER: settings.dead_letter.topic,
        **({Role.HISTORY: settings.history.topic} if settings.history is not None else {}),
        **({Role.OUTCOMES: settings.outcomes.topic} if settings.outcomes is not None else {}),
    }
    for role, name in names.items():
        said = status.get(role.value) or {}
        if said.get("ownership"):
            topic = TopicRecord(name=name, ownership=Ownership(said["ownership"]), topic_id=said.get("topicId"))
            record = record.with_role(role, topic)
    made = {
        bucket.name: TopicRecord(name=bucket.name, ownership=Ownership.CREATED, topic_id=NOT_YET_KNOWN)
        for bucket in (needed_buckets(settings) if status.get("relay") else ())
    }
    return record.with_buckets(made)


def _bucket_facts(desired: DesiredTopic, record: RouteRecord | None, live: LiveTopic | None) -> TopicFacts | None:
    """Return a recorded bucket as the operator keeps it: with as many partitions as the source has."""
    recorded = record.buckets.get(desired.name) if record else None
    if recorded is None or recorded.topic_id is None:
        return None
    source = (live.status.get(Role.SOURCE.value) or {}) if live else {}
    partitions = source.get("partitions") or desired.partitions or ONE_AT_LEAST
    config = desired.new_config
    copies = desired.replication_factor or ONE_AT_LEAST
    return TopicFacts(desired.name, recorded.topic_id, partitions, copies, config, frozenset(config))


def _topic_facts(
    desired: DesiredTopic, before: DesiredTopic | None, recorded: TopicRecord | None, status: Mapping[str, Any]
) -> TopicFacts | None:
    same = before is not None and before.name == desired.name
    recorded = recorded if recorded is not None and recorded.name == desired.name else None
    topic_id = (recorded.topic_id if recorded else None) or (status.get("topicId") if same else None)
    if topic_id is not None:
        config = before.new_config if before is not None and same else desired.new_config
        copies = (before.replication_factor if before is not None and same else None) or desired.replication_factor
        partitions = (status.get("partitions") if same else None) or desired.partitions or ONE_AT_LEAST
        known = config if desired.management is not Management.OBSERVE else None
        return TopicFacts(desired.name, topic_id, partitions, copies or ONE_AT_LEAST, known, frozenset(config))
    if desired.management is Management.OBSERVE:
        copies = desired.replication_factor or ONE_AT_LEAST
        return TopicFacts(desired.name, NOT_YET_KNOWN, desired.partitions or ONE_AT_LEAST, copies, None)
    return None


def as_if_read(objects: Sequence[Document], wanted: Iterable[Document], secrets_version: str) -> list[Document]:
    """Return the live objects with the hashes of `wanted` where nothing but Secrets can make the difference."""
    desired = next((each for each in wanted if each["kind"] == "Deployment"), None)
    fresh = _live_hash(objects, secrets_version)
    if desired is None or fresh is None:
        return list(objects)
    return [_rebased(each, desired, fresh) if each["kind"] == "Deployment" else each for each in objects]


def _live_hash(objects: Sequence[Document], secrets_version: str) -> str | None:
    """Return the hash of the configuration that is in the cluster."""
    config = _live_config(objects)
    return config_hash(config, secrets_version) if config is not None else None


def _live_config(objects: Sequence[Document]) -> RelayConfig | None:
    deployment = _deployment(objects)
    place = config_place(deployment) if deployment is not None else None
    live = [each for each in objects if place is not None and address_of(each) == ("ConfigMap", *place)]
    texts = [(each.get("data") or {}).get(CONFIG_KEY) for each in live]
    try:
        return next((load_relay_config(text) for text in texts if text), None)
    except ApiError:
        return None


def _rebased(live: Document, desired: Document, fresh: str) -> Document:
    """Give live pods the fresh hash: only with the live configuration's can the difference be due to Secrets."""
    there = _pod_hash(live)
    if there is None:
        return live
    same_but_for_secrets = _restamped(desired, there) if _pod_hash(desired) == fresh else None
    applied = (live["metadata"].get("annotations") or {}).get(APPLIED_HASH)
    rebased = _with_pod_hash(live, fresh)
    if same_but_for_secrets is not None and _applied_hash(same_but_for_secrets) == applied:
        return _with_annotation(rebased, APPLIED_HASH, _applied_hash(desired))
    return rebased


def _restamped(document: Document, pod_hash: str) -> Document:
    changed = _with_pod_hash(document, pod_hash)
    metadata = changed["metadata"]
    annotations = {name: value for name, value in metadata["annotations"].items() if name != APPLIED_HASH}
    bare = {name: value for name, value in metadata.items() if name != "annotations"}
    # A document without other annotations had none when it was stamped.
    return stamped({**changed, "metadata": {**bare, **({"annotations": annotations} if annotations else {})}})


def _pod_hash(document: Mapping[str, Any]) -> str | None:
    found: Mapping[str, str] = document["spec"]["template"]["metadata"].get("annotations") or {}
    return found.get(CONFIG_HASH)


def _applied_hash(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["annotations"][APPLIED_HASH])


def _with_pod_hash(document: Document, value: str) -> Document:
    spec, template = document["spec"], document["spec"]["template"]
    return {**document, "spec": {**spec, "template": _with_annotation(template, CONFIG_HASH, value)}}


def _with_annotation(part: Document, name: str, value: str) -> Document:
    metadata = part["metadata"]
    return {**part, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), name: value}}}
