"""One topic at a time: what it is to be, what is there, what may be done, and what follows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from delaytopic_api import Settings
from delaytopic_api.documents import Ownership, TopicStatus
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts
from delaytopic_operator.model.record import Role, RouteRecord, TopicRecord
from delaytopic_operator.topics.actions import BROKERS_OWN, CreateTopic, SetConfig, TopicAction
from delaytopic_operator.topics.desired import DesiredTopic
from delaytopic_operator.topics.ownership import Owned, Stance, Trouble, own
from delaytopic_operator.topics.rules import (
    Corrected,
    advice,
    care_troubles,
    corrections,
    growth,
    pair_troubles,
    troubles,
)

_OURS = (Ownership.CREATED, Ownership.ADOPTED)


class TopicState(NamedTuple):
    """One topic, with everything that decides about it."""

    wish: DesiredTopic
    facts: TopicFacts | None
    owned: Owned

    @property
    def is_made(self) -> bool:
        """Return whether it is made now."""
        return self.owned.stance is Stance.CREATE

    @property
    def is_cared_for(self) -> bool:
        """Return whether it is there, and under the operator's care."""
        return self.owned.stance is Stance.MANAGE


def judge(wish: DesiredTopic, view: KafkaView, record: RouteRecord, accepted: Collection[str]) -> TopicState:
    """Return what may be done about one topic."""
    facts = view.find(wish.name)
    owned = own(wish, facts, recorded_of(wish, record), accepted, forbidden=wish.name in view.forbidden)
    if owned.stance is Stance.CREATE and wish.waits_for_source:
        owned = Owned(Stance.SKIP, recorded_of(wish, record))
    return TopicState(wish, facts, owned)


def held(topic: TopicState, record: RouteRecord) -> TopicState:
    """The same while something is wrong with another topic: nothing is made, and nothing newly taken over."""
    recorded = recorded_of(topic.wish, record)
    takes_over = topic.is_cared_for and (recorded is None or recorded.ownership not in _OURS)
    if not topic.is_made and not takes_over:
        return topic
    return topic._replace(owned=Owned(Stance.SKIP, recorded))


def recorded_of(wish: DesiredTopic, record: RouteRecord) -> TopicRecord | None:
    """Return what is written down about the topic."""
    return record.of_role(wish.role) if wish.role is not None else record.buckets.get(wish.name)


def corrected(topic: TopicState) -> Corrected | None:
    """The topic as it will be after its changes; None unless it is there and may be used."""
    facts = topic.facts
    if facts is None or topic.owned.stance not in (Stance.MANAGE, Stance.OBSERVE):
        return None
    changed, grown = correction(topic), growth(topic.wish, facts) if topic.is_cared_for else None
    config = {**facts.config, **(changed.config if changed else {})} if facts.config is not None else None
    return Corrected(topic.wish, grown.partitions if grown else facts.partitions, facts.replication_factor, config)


def changes(topic: TopicState) -> Iterator[TopicAction]:
    """Return what to do to it, in order."""
    wish, facts = topic.wish, topic.facts
    if topic.is_made:
        partitions, copies = wish.partitions or BROKERS_OWN, wish.replication_factor or BROKERS_OWN
        yield CreateTopic(wish.name, partitions, copies, wish.new_config)
    elif topic.is_cared_for and facts is not None:
        yield from filter(None, (correction(topic), growth(wish, facts)))


def correction(topic: TopicState) -> SetConfig | None:
    """The settings to set again."""
    if not topic.is_cared_for or topic.facts is None:
        return None
    recorded = topic.owned.record
    created = recorded is not None and recorded.ownership is Ownership.CREATED
    return corrections(topic.wish, topic.facts, created=created)


def topic_troubles(settings: Settings, topic: TopicState) -> Iterator[Trouble]:
    """Everything that is wrong with one topic."""
    if topic.owned.trouble is not None:
        yield topic.owned.trouble
    if topic.is_cared_for and topic.facts is not None:
        yield from care_troubles(topic.wish, topic.facts)
    after = corrected(topic)
    if after is not None:
        yield from troubles(settings, after)


def shared_troubles(settings: Settings, judged: Iterable[TopicState]) -> Iterator[Trouble]:
    """Return what is wrong between topics."""
    after = {topic.wish.role: corrected(topic) for topic in judged}
    source, target = after[Role.SOURCE], after[Role.TARGET]
    if source is not None and target is not None:
        yield from pair_troubles(settings, source, target)


def topic_advice(topic: TopicState) -> Iterator[str]:
    """Return what could be better about a topic that works; nothing about those that are the operator's own
    business.
    """
    after = corrected(topic)
    if after is not None and topic.wish.role is not None and not _is_told_already(topic):
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
    """Settings that may not be read are a trouble of a topic under care, and no more than advice for others."""
    return topic.is_cared_for and topic.facts is not None and topic.facts.config is None
