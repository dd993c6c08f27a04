"""The topics of a DelayTopic: from what is wanted, there and written down, to what is done and said. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from delaytopic_api import Settings
from delaytopic_api.documents import DelayTopicSpec, Ownership, TopicStatus
from delaytopic_api.values import TopicProvisioning
from delaytopic_operator.model.conditions import Condition
from delaytopic_operator.model.declared_rules import needs_of_former
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts
from delaytopic_operator.model.record import Role, RouteRecord, TopicRecord
from delaytopic_operator.topics.actions import BROKERS_OWN, CreateTopic, DeleteTopic, SetConfig, TopicAction, TopicEvent
from delaytopic_operator.topics.desired import Bucket, DesiredTopic, desired_topics
from delaytopic_operator.topics.ownership import ACCEPT_RECREATION, Owned, Stance, TopicProblem, accepted_ids, own
from delaytopic_operator.topics.rules import (
    Corrected,
    Progress,
    advice,
    backend_conditions,
    corrections,
    growth,
    managed_problems,
    pair_problems,
    problems,
    topics_condition,
)
from delaytopic_operator.topics.strimzi import (
    StrimziTopic,
    StrimziTopics,
    strimzi_document,
    strimzi_object_name,
    strimzi_problems,
)

_OURS = (Ownership.CREATED, Ownership.ADOPTED)


class TopicState(NamedTuple):
    """One topic, with everything that decides about it."""

    desired: DesiredTopic
    facts: TopicFacts | None
    owned: Owned

    @property
    def is_made(self) -> bool:
        """Return whether it is made now."""
        return self.owned.stance is Stance.CREATE

    @property
    def is_managed(self) -> bool:
        """Return whether it is there, and managed by the operator."""
        return self.owned.stance is Stance.MANAGE


def topic_state(desired: DesiredTopic, view: KafkaView, record: RouteRecord, accepted: Collection[str]) -> TopicState:
    """Return what may be done about one topic."""
    facts = view.find(desired.name)
    owned = own(desired, facts, recorded_of(desired, record), accepted, forbidden=desired.name in view.forbidden)
    if owned.stance is Stance.CREATE and desired.waits_for_source:
        owned = Owned(Stance.SKIP, recorded_of(desired, record))
    return TopicState(desired, facts, owned)


def held(topic: TopicState, record: RouteRecord) -> TopicState:
    """Return the state of a topic while something is wrong with another one: nothing is made, and nothing newly taken
    over.
    """
    recorded = recorded_of(topic.desired, record)
    takes_over = topic.is_managed and (recorded is None or recorded.ownership not in _OURS)
    if not topic.is_made and not takes_over:
        return topic
    return topic._replace(owned=Owned(Stance.SKIP, recorded))


def recorded_of(desired: DesiredTopic, record: RouteRecord) -> TopicRecord | None:
    """Return what is written down about the topic."""
    return record.of_role(desired.role) if desired.role is not None else record.buckets.get(desired.name)


def corrected(topic: TopicState) -> Corrected | None:
    """The topic as it will be after its changes; None unless it is there and may be used."""
    facts = topic.facts
    if facts is None or topic.owned.stance not in (Stance.MANAGE, Stance.OBSERVE):
        return None
    changed, grown = correction(topic), growth(topic.desired, facts) if topic.is_managed else None
    config = {**facts.config, **(changed.config if changed else {})} if facts.config is not None else None
    return Corrected(topic.desired, grown.partitions if grown else facts.partitions, facts.replication_factor, config)


def changes(topic: TopicState) -> Iterator[TopicAction]:
    """Return what to do to it, in order."""
    desired, facts = topic.desired, topic.facts
    if topic.is_made:
        partitions, copies = desired.partitions or BROKERS_OWN, desired.replication_factor or BROKERS_OWN
        yield CreateTopic(desired.name, partitions, copies, desired.new_config)
    elif topic.is_managed and facts is not None:
        yield from filter(None, (correction(topic), growth(desired, facts)))


def correction(topic: TopicState) -> SetConfig | None:
    """The settings to set again."""
    if not topic.is_managed or topic.facts is None:
        return None
    recorded = topic.owned.record
    created = recorded is not None and recorded.ownership is Ownership.CREATED
    return corrections(topic.desired, topic.facts, created=created)


def topic_problems(settings: Settings, topic: TopicState) -> Iterator[TopicProblem]:
    """Everything that is wrong with one topic."""
    if topic.owned.problem is not None:
        yield topic.owned.problem
    if topic.is_managed and topic.facts is not None:
        yield from managed_problems(topic.desired, topic.facts)
    after = corrected(topic)
    if after is not None:
        yield from problems(settings, after)


def shared_problems(settings: Settings, states: Iterable[TopicState]) -> Iterator[TopicProblem]:
    """Return what is wrong between topics."""
    after = {topic.desired.role: corrected(topic) for topic in states}
    source, target = after[Role.SOURCE], after[Role.TARGET]
    if source is not None and target is not None:
        yield from pair_problems(settings, source, target)


def topic_advice(topic: TopicState) -> Iterator[str]:
    """Return what could be better about a topic that works; nothing about those that are the operator's own
    business.
    """
    after = corrected(topic)
    if after is not None and topic.desired.role is not None and not _is_told_already(topic):
        yield from advice(after)


def status_of(topic: TopicState) -> TopicStatus:
    """The topic for the status of the DelayTopic."""
    facts, recorded = topic.facts, topic.owned.record
    return TopicStatus(
        topic_id=facts.topic_id if facts else None,
        partitions=facts.partitions if facts else None,
        ownership=recorded.ownership if facts and recorded and recorded.topic_id else None,
    )


def _is_told_already(topic: TopicState) -> bool:
    """Settings that may not be read are a problem of a managed topic, and no more than advice for others."""
    return topic.is_managed and topic.facts is not None and topic.facts.config is None


@dataclass(frozen=True)
class TopicPlan:
    """The record, the actions and the conditions about the topics of one DelayTopic."""

    record: RouteRecord
    """The record to be written before anything is done."""
    actions: tuple[TopicAction, ...]
    """The actions, in this order; empty with topicProvisioning StrimziKafkaTopic."""
    documents: tuple[dict[str, Any], ...]
    """KafkaTopics to apply with topicProvisioning StrimziKafkaTopic; else empty."""
    obsolete: tuple[str, ...]
    """Names of KafkaTopics to delete, likewise."""
    topics: Condition
    """The condition TopicsReady."""
    backend: tuple[Condition, ...]
    """Conditions of topics about BackendReady, the worst first; none: nothing is the matter."""
    stalled: str | None
    """The reason for which only a person can mend it; its word is that of `topics`."""
    reconciling: str | None
    """The steps under way; look again soon."""
    events: tuple[TopicEvent, ...]
    """Events without an action."""
    source: TopicStatus
    target: TopicStatus
    dead_letter: TopicStatus
    history: TopicStatus | None
    outcomes: TopicStatus | None


def topic_names(settings: Settings, record: RouteRecord | None, buckets: Sequence[Bucket] = ()) -> list[str]:
    """The topics that `plan_topics` has to know about."""
    routed = [settings.source.topic, settings.target.topic, settings.dead_letter.topic]
    routed += [each.topic for each in (settings.history, settings.outcomes) if each is not None]
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
    states = [
        topic_state(desired, view, record, accepted)
        for desired in desired_topics(settings, spec, source_facts, buckets, needs_of_former(record.rules))
    ]
    found = [*_problems(settings, states), *_strimzi_problems(settings, states, strimzi, record)]
    if any(problem.stalled for problem in found):
        states = [held(topic, record) for topic in states]
    removals = _removals(record, view, buckets, released)
    progress = _progress(states)
    of_role = {topic.desired.role: topic for topic in states}
    by_strimzi = settings.topic_provisioning is TopicProvisioning.STRIMZI_KAFKA_TOPIC
    return TopicPlan(
        record=_recorded(record, states, view),
        actions=() if by_strimzi else _actions(states, removals),
        documents=tuple(_documents(states, strimzi, record)),
        obsolete=_obsolete(removals) if by_strimzi else (),
        topics=topics_condition(found, [line for topic in reversed(states) for line in topic_advice(topic)], progress),
        backend=_backend(settings, states, corrected(of_role[Role.SOURCE])),
        stalled="; ".join(problem.sentence for problem in found if problem.stalled) or None,
        reconciling=progress.sentence,
        events=_events(states),
        source=status_of(of_role[Role.SOURCE]),
        target=status_of(of_role[Role.TARGET]),
        dead_letter=status_of(of_role[Role.DEAD_LETTER]),
        history=status_of(of_role[Role.HISTORY]) if Role.HISTORY in of_role else None,
        outcomes=status_of(of_role[Role.OUTCOMES]) if Role.OUTCOMES in of_role else None,
    )


def _actions(states: Sequence[TopicState], removals: Sequence[DeleteTopic]) -> tuple[TopicAction, ...]:
    return (*(action for topic in states for action in changes(topic)), *removals)


def _backend(settings: Settings, states: Sequence[TopicState], source: Corrected | None) -> tuple[Condition, ...]:
    config = source.config if source else None
    return tuple(backend_conditions(settings, config, _bucket_problems(settings, states), _absent(states)))


def _obsolete(removals: Sequence[DeleteTopic]) -> tuple[str, ...]:
    return tuple(strimzi_object_name(removal.name) for removal in removals)


def _events(states: Sequence[TopicState]) -> tuple[TopicEvent, ...]:
    return tuple(topic.owned.event for topic in states if topic.owned.event is not None)


def _problems(settings: Settings, states: Sequence[TopicState]) -> list[TopicProblem]:
    """Return the problems of the three topics, the source's first."""
    routed = [topic for topic in reversed(states) if topic.desired.role is not None]
    found = [problem for topic in routed for problem in topic_problems(settings, topic)]
    return [*found, *shared_problems(settings, routed)]


def _bucket_problems(settings: Settings, states: Sequence[TopicState]) -> list[TopicProblem]:
    buckets = [topic for topic in states if topic.desired.role is None]
    return [problem for topic in buckets for problem in topic_problems(settings, topic)]


def _strimzi_problems(
    settings: Settings, states: Sequence[TopicState], strimzi: StrimziTopics | None, record: RouteRecord
) -> list[TopicProblem]:
    if settings.topic_provisioning is not TopicProvisioning.STRIMZI_KAFKA_TOPIC:
        return []
    if strimzi is None:
        sentence = (
            "topicProvisioning is StrimziKafkaTopic, but bootstrapServers is not the address of a Kafka object: use "
            "<cluster>-kafka-bootstrap.<namespace>.svc:<port>, or topicProvisioning Direct"
        )
        return [TopicProblem("NotSupported", sentence)]
    ours = [topic.desired.name for topic in states if topic.is_made or topic.is_managed]
    return list(strimzi_problems(strimzi, ours, record.key))


def _progress(states: Sequence[TopicState]) -> Progress:
    made = [topic for topic in states if topic.is_made]
    return Progress(
        made=tuple(topic.desired.name for topic in made if topic.desired.role is not None),
        buckets=tuple(topic.desired.name for topic in made if topic.desired.role is None),
        changed=tuple(
            topic.desired.name for topic in states if not topic.is_made and any(True for _ in changes(topic))
        ),
    )


def _absent(states: Sequence[TopicState]) -> list[str]:
    """Bucket topics that are not there yet."""
    return [topic.desired.name for topic in states if topic.desired.role is None and topic.facts is None]


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


def _recorded(record: RouteRecord, states: Sequence[TopicState], view: KafkaView) -> RouteRecord:
    buckets = {name: topic for name, topic in record.buckets.items() if name not in view.missing}
    for topic in states:
        if topic.desired.role is not None:
            record = record.with_role(topic.desired.role, topic.owned.record)
        elif topic.owned.record is not None:
            buckets[topic.desired.name] = topic.owned.record
    return record.with_buckets(buckets) if buckets != record.buckets else record


def _documents(
    states: Sequence[TopicState], strimzi: StrimziTopics | None, record: RouteRecord
) -> list[dict[str, Any]]:
    if strimzi is None:
        return []
    topics = [_strimzi_topic(topic) for topic in states if topic.owned.stance in (Stance.CREATE, Stance.MANAGE)]
    return [strimzi_document(topic, strimzi.place, record.key) for topic in topics if topic is not None]


def _strimzi_topic(topic: TopicState) -> StrimziTopic | None:
    """The topic as the Topic Operator is told; it takes away what is set on the topic and not named, so all is."""
    desired, facts, after = topic.desired, topic.facts, corrected(topic)
    if facts is None or after is None:
        return StrimziTopic(desired.name, desired.partitions, desired.replication_factor, desired.new_config)
    if after.config is None:
        return None
    changed = correction(topic)
    named = {*facts.own_config, *desired.exact_config, *(changed.config if changed else {})}
    config = {name: value for name, value in after.config.items() if name in named}
    return StrimziTopic(desired.name, after.partitions, facts.replication_factor, config)
