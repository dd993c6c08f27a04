"""Edge: topics that are created so that they are really there afterwards, as often as one likes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from delaytopic_gateway.errors import KafkaUnreachableError, TopicError
from delaytopic_process.errors import InputError
from delaytopic_process.waiting import wait_until

_TIMEOUT_SECONDS = 30.0
QUIET = logging.getLogger("delaytopic_local.servers.kafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic as it should be. `config` names only the settings that matter; others are left alone."""

    name: str
    partitions: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    replication_factor: int = 1


def create_topics(
    bootstrap_servers: str, plans: Sequence[TopicPlan], settings: Mapping[str, str] | None = None
) -> None:
    """Make every topic exist with at least its partitions and with its settings, and wait until all brokers say so.

    Idempotent: existing topics keep their records, get missing partitions and the settings of the plan. Raises
    KafkaUnreachableError when no broker answers and TopicError when Kafka refuses. `settings` are those of the client
    for a secured Kafka.
    """
    admin = admin_client(bootstrap_servers, settings)
    existing = partitions_by_topic(admin, bootstrap_servers, _TIMEOUT_SECONDS)
    _create(admin, [plan for plan in plans if plan.name not in existing])
    for plan in plans:
        if plan.name in existing:
            _grow(admin, plan, existing[plan.name])
            _configure(admin, plan)
    _wait_until_visible(admin, plans, bootstrap_servers)


def delete_topics(bootstrap_servers: str, names: Iterable[str]) -> None:
    """Delete topics with their records, and wait until brokers say so; topics that do not exist are fine.

    Raises KafkaUnreachableError when no broker answers and TopicError when Kafka refuses.
    """
    admin = admin_client(bootstrap_servers)
    futures = admin.delete_topics(list(names), operation_timeout=_TIMEOUT_SECONDS)
    for name, future in futures.items():
        _result(future, f"delete topic {name}", fine=KafkaError.UNKNOWN_TOPIC_OR_PART)

    def gone() -> bool:
        # A broker shows a topic for a moment after the controller has deleted it, and it would not be made anew.
        return not futures.keys() & partitions_by_topic(admin, bootstrap_servers).keys()

    if not wait_until(gone, timeout_seconds=_TIMEOUT_SECONDS):
        raise TopicError(
            f"Kafka deleted the topics but shows some of them after {_TIMEOUT_SECONDS:.0f} s: {[*futures]}"
        )


def partitions_by_topic(
    admin: AdminClient, bootstrap_servers: str, timeout_seconds: float = _TIMEOUT_SECONDS
) -> dict[str, int]:
    """Return the number of partitions of each topic; raises KafkaUnreachableError when no broker answers."""
    try:
        topics = admin.list_topics(timeout=timeout_seconds).topics
    except KafkaException as error:
        raise KafkaUnreachableError(
            f"no Kafka broker answers at {bootstrap_servers} ({error.args[0].str()}); check the address and the network"
        ) from error
    return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}


def _create(admin: AdminClient, plans: Sequence[TopicPlan]) -> None:
    """Create topics in one request; none is fine."""
    topics = [
        NewTopic(plan.name, plan.partitions, replication_factor=plan.replication_factor, config=dict(plan.config))
        for plan in plans
    ]
    futures = admin.create_topics(topics, operation_timeout=_TIMEOUT_SECONDS) if topics else {}
    for name, future in futures.items():
        _result(future, f"create topic {name}", fine=KafkaError.TOPIC_ALREADY_EXISTS)


def _grow(admin: AdminClient, plan: TopicPlan, partitions: int) -> None:
    if partitions < plan.partitions:
        request = [NewPartitions(plan.name, plan.partitions)]
        future = admin.create_partitions(request, operation_timeout=_TIMEOUT_SECONDS)[plan.name]
        _result(future, f"grow topic {plan.name} from {partitions} to {plan.partitions} partitions")


def _configure(admin: AdminClient, plan: TopicPlan) -> None:
    if not plan.config:
        return
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in plan.config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, plan.name, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        _result(future, f"configure topic {plan.name}")


def _wait_until_visible(admin: AdminClient, plans: Sequence[TopicPlan], bootstrap_servers: str) -> None:
    """Wait for the broker that answers metadata: it learns of a new topic a moment after the controller."""

    def visible() -> bool:
        known = partitions_by_topic(admin, bootstrap_servers)
        return all(known.get(plan.name, 0) >= plan.partitions for plan in plans)

    if not wait_until(visible, timeout_seconds=_TIMEOUT_SECONDS):
        names = ", ".join(plan.name for plan in plans)
        raise TopicError(
            f"Kafka created the topics but does not show all of them after {_TIMEOUT_SECONDS:.0f} s: {names}"
        )


def _result(future: Future[Any], action: str, *, fine: int | None = None) -> None:
    """Wait for an admin future; an error with the code `fine` means that there was nothing to do."""
    try:
        future.result(timeout=_TIMEOUT_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != fine:
            raise TopicError(f"Kafka refused to {action}: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise TopicError(f"Kafka did not {action} within {_TIMEOUT_SECONDS:.0f} s") from error


def admin_client(bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> AdminClient:
    """Return an AdminClient that retries quickly and does not write connection errors on standard error.

    Raises InputError for settings that the client does not take.
    """
    quick: dict[str, str | int | float] = {
        "bootstrap.servers": bootstrap_servers,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
    }
    try:
        return AdminClient({**quick, **(settings or {})}, logger=QUIET)
    except KafkaException as error:
        raise InputError(f"-X: the Kafka client refuses its settings: {error.args[0].str()}") from error


def broker_answers(bootstrap_servers: str, *, timeout_seconds: float = 2.0) -> bool:
    """Tell whether a broker describes its cluster within the timeout."""
    try:
        return bool(admin_client(bootstrap_servers).list_topics(timeout=timeout_seconds).brokers)
    except KafkaException:
        return False


def all_partitions_lead(bootstrap_servers: str, *, timeout_seconds: float = 2.0) -> bool:
    """Tell whether a broker answers and every partition of the cluster has a leader."""
    try:
        metadata = admin_client(bootstrap_servers).list_topics(timeout=timeout_seconds)
    except KafkaException:
        return False
    leaders = [partition.leader for topic in metadata.topics.values() for partition in topic.partitions.values()]
    return bool(metadata.brokers) and all(leader >= 0 for leader in leaders)
