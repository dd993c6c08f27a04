"""What is taken to be true of topics in Kafka, which a plan does not ask. Pure.

A topic is as the status of its DelayTopic says, with the settings that the DelayTopic in the cluster asks for. One that
no status speaks of is not there yet, unless it is `management: Observe`: then it is, and as it should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delaytopic_api import Settings
from delaytopic_api.documents import DelayTopicSpec, Ownership
from delaytopic_api.values import Management
from delaytopic_operator.decide.record import Role, RouteRecord, TopicRecord, begin_record
from delaytopic_operator.kafka.model import KafkaView, TopicFacts
from delaytopic_operator.topics.actions import CreateTopic
from delaytopic_operator.topics.desired import Wish, wishes
from delaytopic_operator.topics.needed_buckets import needed_buckets

UNKNOWN_ID = "known-after-apply"
ONE_AT_LEAST = 1
"""Partitions and copies where the broker's configuration decides."""


@dataclass(frozen=True)
class Lived:
    """A DelayTopic as the cluster has it."""

    settings: Settings
    spec: DelayTopicSpec
    status: Mapping[str, Any]


def assumed_view(
    settings: Settings, spec: DelayTopicSpec, record: RouteRecord | None, lived: Lived | None
) -> KafkaView:
    """Every topic that the planner asks about."""
    before = {wish.role: wish for wish in wishes(lived.settings, lived.spec, None, ())} if lived else {}
    found: dict[str, TopicFacts] = {}
    missing: set[str] = set()
    for wish in wishes(settings, spec, None, needed_buckets(settings)):
        if wish.role is None:
            facts = _bucket_facts(wish, record, lived)
        else:
            recorded = record.of_role(wish.role) if record else None
            status = (lived.status.get(wish.role.value) or {}) if lived else {}
            facts = _facts(wish, before.get(wish.role), recorded, status)
        if facts is not None:
            found[wish.name] = facts
        else:
            missing.add(wish.name)
    for name, recorded in (record.buckets if record else {}).items():
        found.setdefault(name, TopicFacts(name, recorded.topic_id or UNKNOWN_ID, ONE_AT_LEAST, ONE_AT_LEAST, None))
    return KafkaView(found, frozenset(missing))


def made_topic(action: CreateTopic) -> TopicFacts:
    """A topic once it was made."""
    partitions, copies = max(ONE_AT_LEAST, action.partitions), max(ONE_AT_LEAST, action.replication_factor)
    return TopicFacts(action.name, UNKNOWN_ID, partitions, copies, dict(action.config), frozenset(action.config))


def record_of_status(settings: Settings, namespace_uid: str, status: Mapping[str, Any]) -> RouteRecord:
    """What must be written down, by what the status says: for those who may not read the record itself."""
    record = begin_record(settings, namespace_uid)
    names = {
        Role.SOURCE: settings.source.topic,
        Role.TARGET: settings.target.topic,
        Role.DEAD_LETTER: settings.dead_letter.topic,
    }
    for role, name in names.items():
        said = status.get(role.value) or {}
        if said.get("ownership"):
            topic = TopicRecord(name=name, ownership=Ownership(said["ownership"]), topic_id=said.get("topicId"))
            record = record.with_role(role, topic)
    made = {
        bucket.name: TopicRecord(name=bucket.name, ownership=Ownership.CREATED, topic_id=UNKNOWN_ID)
        for bucket in (needed_buckets(settings) if status.get("relay") else ())
    }
    return record.with_buckets(made)


def _bucket_facts(wish: Wish, record: RouteRecord | None, lived: Lived | None) -> TopicFacts | None:
    """One that is written down is there, as the operator keeps it: with as many partitions as the source has now."""
    recorded = record.buckets.get(wish.name) if record else None
    if recorded is None or recorded.topic_id is None:
        return None
    source = (lived.status.get(Role.SOURCE.value) or {}) if lived else {}
    partitions = source.get("partitions") or wish.partitions or ONE_AT_LEAST
    config = wish.new_config
    copies = wish.replication_factor or ONE_AT_LEAST
    return TopicFacts(wish.name, recorded.topic_id, partitions, copies, config, frozenset(config))


def _facts(
    wish: Wish, before: Wish | None, recorded: TopicRecord | None, status: Mapping[str, Any]
) -> TopicFacts | None:
    same = before is not None and before.name == wish.name
    recorded = recorded if recorded is not None and recorded.name == wish.name else None
    topic_id = (recorded.topic_id if recorded else None) or (status.get("topicId") if same else None)
    if topic_id is not None:
        config = before.new_config if before is not None and same else wish.new_config
        copies = (before.replication_factor if before is not None and same else None) or wish.replication_factor
        partitions = (status.get("partitions") if same else None) or wish.partitions or ONE_AT_LEAST
        known = config if wish.management is not Management.OBSERVE else None
        return TopicFacts(wish.name, topic_id, partitions, copies or ONE_AT_LEAST, known, frozenset(config))
    if wish.management is Management.OBSERVE:
        copies = wish.replication_factor or ONE_AT_LEAST
        return TopicFacts(wish.name, UNKNOWN_ID, wish.partitions or ONE_AT_LEAST, copies, None)
    return None
