"""The parts of a backlog that is given up, in the order in which they go. Pure; `purge` removes them.

What only the operator knows comes first, the source last: it is the truth about everything pending, so that a purge
that ends in between is done again, or can still be taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from delaytopic_api.documents import Ownership
from delaytopic_api.values import BackendType
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RouteRecord, TopicRecord
from delaytopic_operator.topics.actions import DeleteTopic
from delaytopic_operator.topics.strimzi import StrimziTopics, own_document


@dataclass(frozen=True, slots=True)
class DeleteKeys:
    """Everything in Redis under a backend id."""

    backend_id: str


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """The consumer group of the relays, with their offsets."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SkipToEnd:
    """Commit the ends of a source topic that stays: without offsets, all of it would be delivered again one day."""

    group_id: str
    topic: str


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """The KafkaTopic of a topic that goes: while it is there, the Topic Operator makes the topic again."""

    document: Mapping[str, Any]


BacklogStep = DeleteTopic | DeleteKeys | DeleteGroup | SkipToEnd
PurgeStep = BacklogStep | DeleteObject


def purge_steps(record: RouteRecord, *, topics: bool, strimzi: StrimziTopics | None = None) -> list[PurgeStep]:
    """The steps, each of which may be repeated; `topics`: also the topics that were made or adopted.

    Never the target or the history: what was delivered belongs to those who read it. `strimzi` has the KafkaTopics
    that are there.
    """
    return [each for step in _steps(record, topics=topics) for each in (*_objects(step, strimzi, record.key), step)]


def _objects(step: BacklogStep, strimzi: StrimziTopics | None, key: Key) -> Iterator[DeleteObject]:
    if isinstance(step, DeleteTopic) and strimzi is not None:
        document = own_document(strimzi, step.name, key)
        if document is not None:
            yield DeleteObject(document)


def _steps(record: RouteRecord, *, topics: bool) -> list[BacklogStep]:
    own_buckets = filter(_own, record.buckets.values())
    steps: list[BacklogStep] = [DeleteTopic(topic.name, topic.topic_id) for topic in own_buckets]
    if record.backend_type is BackendType.REDIS_ZSET:
        steps.append(DeleteKeys(record.backend_id))
    going = list(_topics(record)) if topics else []
    source = record.source
    if source is not None and all(topic.name != source.name for topic in going):
        return [*steps, SkipToEnd(record.group_id, source.name), *going]
    return [*steps, DeleteGroup(record.group_id), *going]


def _topics(record: RouteRecord) -> Iterator[DeleteTopic]:
    kept = record.target.name if record.target is not None else None
    for topic in (record.dead_letter, record.source):
        if topic is not None and _own(topic) and topic.name != kept:
            yield DeleteTopic(topic.name, topic.topic_id)


def _own(topic: TopicRecord) -> bool:
    return topic.ownership in (Ownership.CREATED, Ownership.ADOPTED)
