"""Edge: takes members out of a consumer group whose processes are gone, before their sessions end.

Relays are static members of their group (KIP-345), by the names of their pods. Who joins under such a name takes the
member's place without a rebalance, and may then leave the group, which gives its partitions to others at once. A member
that was taken out by mistake, because it still runs, is fenced and joins anew: it loses time and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import MemberDescription  # type: ignore[attr-defined]  # implicit re-export

from delaytopic_operator.errors import KafkaUnavailable, OperatorError
from delaytopic_operator.kafka.client import KafkaClient
from delaytopic_operator.kafka.errors import translate

DEADLINE_S: Final = 5.0
"""The time for one member; its session ends in about that time anyway."""
POLL_S: Final = 0.02
SETTINGS: Final[dict[str, Any]] = {
    # As relays join: a group refuses who cannot agree with its members.
    "group.protocol": "classic",
    "partition.assignment.strategy": "cooperative-sticky",
    # Should the operator end in between, the member goes with the least session that brokers allow by default.
    "session.timeout.ms": 6_000,
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
}


def remove_members(client: KafkaClient, group_id: str, topic: str, names: Collection[str]) -> list[str]:
    """Take the members of these names out of a group that reads a topic; return those that were in it.

    Raises `KafkaUnavailable`, `KafkaNotAuthenticated`, and `KafkaNotAuthorized`.
    """
    members = _members(client, [group_id])[group_id]
    if isinstance(members, OperatorError):
        raise members
    found = sorted(name for name in names if any(member.group_instance_id == name for member in members))
    for name in found:
        settings = {**SETTINGS, "group.instance.id": name}
        with client.consumer(f"take {name} out of the group {group_id}", group_id, settings) as consumer:
            _take_out(consumer, topic, name)
    return found


def member_names(client: KafkaClient, groups: Collection[str]) -> dict[str, list[str] | OperatorError]:
    """Return by group the own names of its members, of those that have one, or why they are not known.

    Raises `KafkaUnavailable` and `KafkaNotAuthenticated`.
    """
    return {
        group_id: members
        if isinstance(members, OperatorError)
        else sorted(member.group_instance_id for member in members if member.group_instance_id)
        for group_id, members in _members(client, groups).items()
    }


def _members(client: KafkaClient, groups: Collection[str]) -> dict[str, list[MemberDescription] | OperatorError]:
    answers = client.ask_coordinator(
        "describe consumer groups",
        lambda admin, timeout_s: admin.describe_consumer_groups([*groups], request_timeout=timeout_s),
    )
    return {
        group_id: translate(answer, f"describe the consumer group {group_id}")
        if isinstance(answer, KafkaError)
        else list(answer.members)
        for group_id, answer in answers.items()
    }


def _take_out(consumer: Consumer, topic: str, name: str) -> None:
    """Take the place of a member and leave it. Raises `KafkaUnavailable` and `KafkaException`."""
    until_s = time.monotonic() + DEADLINE_S
    consumer.subscribe([topic])
    while not consumer.memberid():
        _poll(consumer, name, until_s)
    # A static member that is merely closed stays in the group until its session ends.
    consumer.unsubscribe()
    while consumer.memberid():
        _poll(consumer, name, until_s)


def _poll(consumer: Consumer, name: str, until_s: float) -> None:
    message = consumer.poll(POLL_S)
    error = message.error() if message is not None else None
    if error is not None and not error.retriable() and error.code() != KafkaError._AUTO_OFFSET_RESET:
        raise KafkaException(error)
    if time.monotonic() > until_s:
        raise KafkaUnavailable(f"Kafka did not let {name} be taken out of its group in {DEADLINE_S:.0f} s")
