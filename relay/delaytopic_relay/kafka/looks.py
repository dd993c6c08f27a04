"""Edge: a look at topics, whether they can be written to, which neither keeps anybody waiting nor writes.

Brokers say who leads each partition and who has a copy that is up to date. A leader that died a moment ago is still
named: it is asked for the end of the partition, and does not answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AclOperation,
    AdminClient,
    ConfigResource,
    OffsetSpec,
    PartitionMetadata,
    ResourceType,
    TopicMetadata,
)

from delaytopic_relay.delivery.reachability import ANY, Destination, Sight
from delaytopic_relay.ports import Look

log = structlog.get_logger()

LOOK_S: Final = 1.0
"""An answer that takes longer is none."""
MANY: Final = 16
"""The number of topics from which on all of the cluster are listed, in one request."""
WRONG: Final[Mapping[int, str]] = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: "it does not exist",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "this relay's user may not describe it",
}


def look_at(admin: AdminClient, topics: Collection[str]) -> Look:
    """Begin a look at topics, in a thread of its own: some calls of the client wait."""
    found: list[Sight] = []

    def look() -> None:
        sight: Sight = {}
        try:
            sight = _seen(admin, topics)
        except KafkaException:
            log.debug("topics could not be looked at", exc_info=True)
        finally:
            # Whoever waits for the answer does so for ever without one.
            found.append(sight)

    Thread(target=look, name="look-at-topics", daemon=True).start()
    return lambda: found[0] if found else None


def _seen(admin: AdminClient, topics: Collection[str]) -> Sight:
    """Ask any broker first: by its answer the client knows which of them live, for the other requests."""
    known = _listed(admin, topics)
    there = {name: topic for name, topic in known.items() if topic.error is None}
    gone = {
        Destination(name, ANY): WRONG[topic.error.code()]
        for name, topic in known.items()
        if topic.error is not None and topic.error.code() in WRONG
    }
    if not there:
        return gone
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in there}
    asked_settings = admin.describe_configs([*resources.values()], request_timeout=LOOK_S)
    asked_rights = admin.describe_topics(
        TopicCollection([*there]), include_authorized_operations=True, request_timeout=LOOK_S
    )
    silent = _ask_leaders(admin, there)
    found: dict[Destination, str | None] = {**gone}
    for name, topic in there.items():
        operations = getattr(_answer(asked_rights[name]), "authorized_operations", None)
        if operations and AclOperation.WRITE not in operations:
            found[Destination(name, ANY)] = "this relay's user may not write to it"
            continue
        least = _least_in_sync(_answer(asked_settings[resources[name]]))
        for partition in topic.partitions.values():
            destination = Destination(name, partition.id)
            found[destination] = _wrong_with(partition, least) or silent.get(destination)
    return found


def _listed(admin: AdminClient, topics: Collection[str]) -> dict[str, TopicMetadata]:
    if len(topics) < MANY:
        return {name: admin.list_topics(name, timeout=LOOK_S).topics[name] for name in topics}
    found = admin.list_topics(timeout=LOOK_S).topics
    return {name: found[name] for name in topics if name in found}


def _ask_leaders(admin: AdminClient, topics: Mapping[str, TopicMetadata]) -> dict[Destination, str]:
    """Return the partitions whose leaders do not answer; each leader is asked apart, so that none waits for another."""
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for name, topic in topics.items():
        for partition in topic.partitions.values():
            if partition.leader >= 0:
                by_leader[partition.leader].append(TopicPartition(name, partition.id))
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = [
        (leader, admin.list_offsets(dict.fromkeys(places, latest), request_timeout=LOOK_S))
        for leader, places in by_leader.items()
    ]
    return {
        Destination(place.topic, place.partition): f"its leader, broker {leader}, does not answer"
        for leader, answers in asked
        for place, answer in answers.items()
        if _has_no_end(_answer(answer))
    }


def _has_no_end(answer: Any) -> bool:
    """A request that has timed out has no error, and an offset that means none."""
    return answer is None or answer.offset < 0


def _answer(asked: Future[Any]) -> Any:
    try:
        return asked.result(2 * LOOK_S)
    except (KafkaException, TimeoutError):
        return None


def _wrong_with(partition: PartitionMetadata, least: int) -> str | None:
    if partition.leader < 0:
        return "it has no leader"
    # Brokers ask for no more copies in sync than there are to be.
    copies, in_sync = len(partition.replicas), len(partition.isrs)
    if in_sync < min(least, copies):
        return f"{in_sync} of its {copies} copies are in sync, and min.insync.replicas is {least}"
    return None


def _least_in_sync(settings: Mapping[str, Any] | None) -> int:
    """Return `min.insync.replicas`; 0 where the relay may not read it."""
    entry = (settings or {}).get("min.insync.replicas")
    return int(entry.value) if entry is not None and entry.value is not None else 0
