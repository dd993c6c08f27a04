"""Edge: what is changed in a Kafka cluster, each a request of its own with a deadline, which may be repeated.

Each function raises `KafkaUnavailable` (it may have happened nevertheless), `KafkaNotAuthenticated`,
`KafkaNotAuthorized`, and `TopicRejected` with Kafka's own reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from delaytopic_operator.errors import KafkaUnavailable
from delaytopic_operator.kafka.client import KafkaClient
from delaytopic_operator.kafka.errors import UNKNOWN_TOPIC, translate
from delaytopic_operator.model.kafka_view import Committed
from delaytopic_operator.topics.actions import CreateTopic, GrowTopic, SetConfig

NOTHING_IS_FINE: frozenset[int] = frozenset()


def create_topic(client: KafkaClient, action: CreateTopic) -> bool:
    """Create a topic; return whether it was not there."""
    topic = NewTopic(
        action.name,
        num_partitions=action.partitions,
        replication_factor=action.replication_factor,
        config=dict(action.config),
    )

    def request(timeout_s: float) -> Mapping[Any, Future[Any]]:
        return client.admin.create_topics([topic], operation_timeout=timeout_s, request_timeout=timeout_s)

    fine = frozenset({KafkaError.TOPIC_ALREADY_EXISTS})
    return _done(client, f"create the topic {action.name}", action.name, request, fine)


def add_partitions(client: KafkaClient, action: GrowTopic) -> bool:
    """Add partitions up to a number; return whether there were fewer.

    Kafka's controller says whether there were: what brokers describe may be older for a moment.
    """
    partitions = [NewPartitions(action.name, action.partitions)]

    def request(timeout_s: float) -> Mapping[Any, Future[Any]]:
        return client.admin.create_partitions(partitions, operation_timeout=timeout_s, request_timeout=timeout_s)

    fine = frozenset({KafkaError.INVALID_PARTITIONS})
    return _done(client, f"add partitions to the topic {action.name}", action.name, request, fine)


def set_config(client: KafkaClient, action: SetConfig) -> bool:
    """Always true: what is set already is set again."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in action.config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, action.name, incremental_configs=entries)

    def request(timeout_s: float) -> Mapping[Any, Future[Any]]:
        return client.admin.incremental_alter_configs([resource], request_timeout=timeout_s)

    return _done(client, f"set {', '.join(action.config)} of the topic {action.name}", resource, request)


def delete_topic(client: KafkaClient, name: str) -> bool:
    """Delete a topic; return whether it was there."""

    def request(timeout_s: float) -> Mapping[Any, Future[Any]]:
        return client.admin.delete_topics([name], operation_timeout=timeout_s, request_timeout=timeout_s)

    return _done(client, f"delete the topic {name}", name, request, UNKNOWN_TOPIC)


def delete_group(client: KafkaClient, group_id: str) -> bool:
    """Delete a group; return whether it was there. Raises `KafkaUnavailable` while it has members."""
    what = f"delete the consumer group {group_id}"
    answer = client.ask_coordinator(
        what, lambda admin, timeout_s: admin.delete_consumer_groups([group_id], request_timeout=timeout_s)
    )[group_id]
    return _was_done(answer, what, frozenset({KafkaError.GROUP_ID_NOT_FOUND}))


def commit_offsets(client: KafkaClient, group_id: str, topic: str, offsets: Mapping[int, Committed]) -> None:
    """Commit in the place of the group's members; raises `KafkaUnavailable` while there are any."""
    partitions = [TopicPartition(topic, number, one.offset, one.metadata) for number, one in offsets.items()]
    what = f"set the offsets of the group {group_id}"
    answer = client.ask_coordinator(
        what,
        lambda admin, timeout_s: admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group_id, partitions)], request_timeout=timeout_s
        ),
    )[group_id]
    errors = [answer] if isinstance(answer, KafkaError) else [one.error for one in answer.topic_partitions if one.error]
    for error in errors:
        raise _translated(error, what)


def _done(
    client: KafkaClient,
    what: str,
    name: Any,
    request: Callable[[float], Mapping[Any, Future[Any]]],
    fine: frozenset[int] = NOTHING_IS_FINE,
) -> bool:
    return _was_done(client.ask(what, request)[name], what, fine)


def _was_done(answer: Any, what: str, fine: frozenset[int]) -> bool:
    """Return whether it was done; an error among `fine` means that there was nothing to do."""
    if not isinstance(answer, KafkaError):
        return True
    if answer.code() not in fine:
        raise _translated(answer, what)
    return False


def _translated(error: KafkaError, what: str) -> Exception:
    if error.code() in (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID):
        return KafkaUnavailable(f"Kafka did not {what}: it still has members; it is done when the relays are gone")
    return translate(error, what)
