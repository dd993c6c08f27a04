"""The topics of a DelayTopic: from what is wanted, there and written down, to what is done and said. Pure.

    plan = plan_topics(settings, spec, view, record, annotations, buckets)
    1. write plan.record, if it is another than before: what is about to be owned is known before it is there
    2. perform plan.actions in order, and tell the event of each that did something; or apply plan.documents
    3. tell plan.events; say plan.topics and plan.backend in the status
A reconciliation that is killed anywhere in between is done again from the start, and ends the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delaytopic_api import Settings
from delaytopic_api.documents import DelayTopicSpec, Ownership, TopicStatus
from delaytopic_api.values import TopicProvisioning
from delaytopic_operator.model.conditions import Finding
from delaytopic_operator.model.kafka_view import KafkaView
from delaytopic_operator.model.record import Role, RouteRecord
from delaytopic_operator.topics.actions import DeleteTopic, TopicAction, TopicEvent
from delaytopic_operator.topics.desired import Bucket, wishes
from delaytopic_operator.topics.findings import Progress, backend_findings, topics_finding
from delaytopic_operator.topics.judging import (
    TopicState,
    changes,
    corrected,
    correction,
    held,
    judge,
    shared_troubles,
    status_of,
    topic_advice,
    topic_troubles,
)
from delaytopic_operator.topics.ownership import ACCEPT_RECREATION, Stance, Trouble, accepted_ids
from delaytopic_operator.topics.rules import Corrected
from delaytopic_operator.topics.strimzi import (
    StrimziTopic,
    StrimziTopics,
    strimzi_document,
    strimzi_object_name,
    strimzi_troubles,
)


@dataclass(frozen=True)
class TopicPlan:
    """The record, the actions and the findings about the topics of one DelayTopic."""

    record: RouteRecord
    """To be written before anything is done."""
    actions: tuple[TopicAction, ...]
    """In this order; empty with topicProvisioning StrimziKafkaTopic."""
    documents: tuple[dict[str, Any], ...]
    """KafkaTopics to apply with topicProvisioning StrimziKafkaTopic; else empty."""
    obsolete: tuple[str, ...]
    """Names of KafkaTopics to delete, likewise."""
    topics: Finding
    """The condition TopicsReady."""
    backend: tuple[Finding, ...]
    """Findings of topics about BackendReady, the worst first; none: nothing is the matter."""
    stalled: str | None
    """The reason for which only a person can mend it; its word is that of `topics`."""
    reconciling: str | None
    """The steps under way; look again soon."""
    events: tuple[TopicEvent, ...]
    """Events without an action."""
    source: TopicStatus
    target: TopicStatus
    dead_letter: TopicStatus


def topic_names(settings: Settings, record: RouteRecord | None, buckets: Sequence[Bucket] = ()) -> list[str]:
    """The topics that `plan_topics` has to know about."""
    routed = [settings.source.topic, settings.target.topic, settings.dead_letter.topic]
    former = list(record.buckets) if record is not None else []
    return list(dict.fromkeys([*routed, *(bucket.name for bucket in buckets), *former]))


def plan_topics(
    settings: Settings,
    spec: DelayTopicSpec,
    view: KafkaView,
    record: RouteRecord,
    annotations: Mapping[str, str] | None = None,
    buckets: Sequence[Bucket] = (),
    released: Collection[str] = (),
    strimzi: StrimziTopics | None = None,
) -> TopicPlan:
    """Return what to do about the topics.

    `view` knows every topic of `topic_names`. `record` is what was written down, or `begin_record`. `buckets` are the
    topics that the backend needs, none unless it is KafkaBuckets. `released` are topics of a former backend that hold
    nothing any more (`kafka_view.hold_nothing`). `strimzi` is needed with topicProvisioning StrimziKafkaTopic.
    """
    accepted = accepted_ids((annotations or {}).get(ACCEPT_RECREATION))
    source_facts = view.find(settings.source.topic)
    judged = [judge(wish, view, record, accepted) for wish in wishes(settings, spec, source_facts, buckets)]
    found = [*_troubles(settings, judged), *_strimzi_troubles(settings, judged, strimzi, record)]
    if any(trouble.stalled for trouble in found):
        judged = [held(topic, record) for topic in judged]
    removals = _removals(record, view, buckets, released)
    progress = _progress(judged)
    of_role = {topic.wish.role: topic for topic in judged}
    by_strimzi = settings.topic_provisioning is TopicProvisioning.STRIMZI_KAFKA_TOPIC
    return TopicPlan(
        record=_recorded(record, judged, view),
        actions=() if by_strimzi else _actions(judged, removals),
        documents=tuple(_documents(judged, strimzi, record)),
        obsolete=_obsolete(removals) if by_strimzi else (),
        topics=topics_finding(found, [line for topic in reversed(judged) for line in topic_advice(topic)], progress),
        backend=_backend(settings, judged, corrected(of_role[Role.SOURCE])),
        stalled="; ".join(trouble.sentence for trouble in found if trouble.stalled) or None,
        reconciling=progress.sentence,
        events=_events(judged),
        source=status_of(of_role[Role.SOURCE]),
        target=status_of(of_role[Role.TARGET]),
        dead_letter=status_of(of_role[Role.DEAD_LETTER]),
    )


def _actions(judged: Sequence[TopicState], removals: Sequence[DeleteTopic]) -> tuple[TopicAction, ...]:
    return (*(action for topic in judged for action in changes(topic)), *removals)


def _backend(settings: Settings, judged: Sequence[TopicState], source: Corrected | None) -> tuple[Finding, ...]:
    config = source.config if source else None
    return tuple(backend_findings(settings, config, _bucket_troubles(settings, judged), _absent(judged)))


def _obsolete(removals: Sequence[DeleteTopic]) -> tuple[str, ...]:
    return tuple(strimzi_object_name(removal.name) for removal in removals)


def _events(judged: Sequence[TopicState]) -> tuple[TopicEvent, ...]:
    return tuple(topic.owned.event for topic in judged if topic.owned.event is not None)


def _troubles(settings: Settings, judged: Sequence[TopicState]) -> list[Trouble]:
    """Of the three topics, the source's first."""
    routed = [topic for topic in reversed(judged) if topic.wish.role is not None]
    found = [trouble for topic in routed for trouble in topic_troubles(settings, topic)]
    return [*found, *shared_troubles(settings, routed)]


def _bucket_troubles(settings: Settings, judged: Sequence[TopicState]) -> list[Trouble]:
    buckets = [topic for topic in judged if topic.wish.role is None]
    return [trouble for topic in buckets for trouble in topic_troubles(settings, topic)]


def _strimzi_troubles(
    settings: Settings, judged: Sequence[TopicState], strimzi: StrimziTopics | None, record: RouteRecord
) -> list[Trouble]:
    if settings.topic_provisioning is not TopicProvisioning.STRIMZI_KAFKA_TOPIC:
        return []
    if strimzi is None:
        sentence = (
            "topicProvisioning is StrimziKafkaTopic, but bootstrapServers is not the address of a Kafka object: use "
            "<cluster>-kafka-bootstrap.<namespace>.svc:<port>, or topicProvisioning Direct"
        )
        return [Trouble("NotSupported", sentence)]
    ours = [topic.wish.name for topic in judged if topic.is_made or topic.is_cared_for]
    return list(strimzi_troubles(strimzi, ours, record.key))


def _progress(judged: Sequence[TopicState]) -> Progress:
    made = [topic for topic in judged if topic.is_made]
    return Progress(
        made=tuple(topic.wish.name for topic in made if topic.wish.role is not None),
        buckets=tuple(topic.wish.name for topic in made if topic.wish.role is None),
        changed=tuple(topic.wish.name for topic in judged if not topic.is_made and any(True for _ in changes(topic))),
    )


def _absent(judged: Sequence[TopicState]) -> list[str]:
    """Bucket topics that are not there yet."""
    return [topic.wish.name for topic in judged if topic.wish.role is None and topic.facts is None]


def _removals(
    record: RouteRecord, view: KafkaView, buckets: Sequence[Bucket], released: Collection[str]
) -> list[DeleteTopic]:
    """Topics of a former backend: only those of the operator's own, still the same, that hold nothing."""
    needed = {bucket.name for bucket in buckets}
    removals = []
    for name, recorded in record.buckets.items():
        facts = view.find(name)
        own = recorded.ownership is not Ownership.OBSERVED and facts is not None and facts.topic_id == recorded.topic_id
        if own and name in released and name not in needed:
            removals.append(DeleteTopic(name, recorded.topic_id))
    return removals


def _recorded(record: RouteRecord, judged: Sequence[TopicState], view: KafkaView) -> RouteRecord:
    buckets = {name: topic for name, topic in record.buckets.items() if name not in view.missing}
    for topic in judged:
        if topic.wish.role is not None:
            record = record.with_role(topic.wish.role, topic.owned.record)
        elif topic.owned.record is not None:
            buckets[topic.wish.name] = topic.owned.record
    return record.with_buckets(buckets) if buckets != record.buckets else record


def _documents(
    judged: Sequence[TopicState], strimzi: StrimziTopics | None, record: RouteRecord
) -> list[dict[str, Any]]:
    if strimzi is None:
        return []
    topics = [_strimzi_topic(topic) for topic in judged if topic.owned.stance in (Stance.CREATE, Stance.MANAGE)]
    return [strimzi_document(topic, strimzi.place, record.key) for topic in topics if topic is not None]


def _strimzi_topic(topic: TopicState) -> StrimziTopic | None:
    """The topic as the Topic Operator is told; it takes away what is set on the topic and not named, so all is."""
    wish, facts, after = topic.wish, topic.facts, corrected(topic)
    if facts is None or after is None:
        return StrimziTopic(wish.name, wish.partitions, wish.replication_factor, wish.new_config)
    if after.config is None:
        return None
    changed = correction(topic)
    named = {*facts.own_config, *wish.exact_config, *(changed.config if changed else {})}
    config = {name: value for name, value in after.config.items() if name in named}
    return StrimziTopic(wish.name, after.partitions, facts.replication_factor, config)
