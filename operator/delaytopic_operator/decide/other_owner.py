"""Owners of a route in another Kubernetes cluster, with relays in its group: they are told of, and left alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from delaytopic_api.documents import ConditionType
from delaytopic_operator.decide.plan import (
    Action,
    AddFinalizer,
    Apply,
    Delete,
    RemoveFinalizer,
    RemoveMembers,
    StopRelays,
    WriteRecord,
)
from delaytopic_operator.model.conditions import TRUE, Condition
from delaytopic_operator.model.kinds import KAFKA_TOPIC
from delaytopic_operator.observe.observation import Observation

REASON: Final = "OtherOwner"
_OF_THIS_CLUSTER: Final = (AddFinalizer, Apply, Delete, RemoveFinalizer, RemoveMembers, StopRelays, WriteRecord)
"""Actions on what is in this cluster alone. Names of members are those of its pods."""


def other_owner(seen: Observation) -> list[Condition]:
    """Return OtherOwner while relays of another Kubernetes cluster are in the group; nothing otherwise."""
    others = sorted(seen.topics.other_clusters) if seen.topics is not None else []
    if not others or seen.route.record is None:
        return []
    there = ", ".join(f"k-{each}" for each in others)
    message = (
        f"relays of another Kubernetes cluster ({there}; this one is k-{seen.route.kube_cluster}) are in the group "
        f"{seen.route.record.group_id}: the same DelayTopic is declared there, on the same Kafka. Each record is "
        "delivered once, by the relays of either. Until they have gone, this operator changes no topics and no "
        "offsets, and deletes nothing. Decide which cluster shall have it; in the other one, set deletionPolicy to "
        "Retain and delete it, or give it another name and other topics"
    )
    return [Condition(ConditionType.OTHER_OWNER, TRUE, REASON, message)]


def harmless(seen: Observation, actions: Iterable[Action]) -> list[Action]:
    """Return the actions that concern nobody else; all of them while nobody else is in the group."""
    if not other_owner(seen):
        return list(actions)
    kept = [each for each in actions if isinstance(each, _OF_THIS_CLUSTER)]
    # KafkaTopics are the topics of both.
    return [each for each in kept if not isinstance(each, Apply | Delete) or each.document["kind"] != KAFKA_TOPIC.name]
