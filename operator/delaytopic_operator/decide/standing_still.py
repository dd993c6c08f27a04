"""Source partitions that relays do not go on with, as their source is not what it was: what to do about it. Pure."""

from __future__ import annotations

from typing import Final

from delaytopic_api.documents import ConditionType
from delaytopic_api.relay import ShardState
from delaytopic_operator.model.conditions import FALSE, TRUE, Condition
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.topics.ownership import ACCEPT_RECREATION, accepted_ids

_ACCEPTABLE: Final = ("TopicChanged", "ClusterChanged", "LogTruncated")
"""Reasons of partitions that begin anew once somebody has accepted the topic as it is."""
_OTHERS: Final = ("OffsetsLost", "BatchUnreadable")
_UNKNOWN: Final = "SourceChanged"
"""The reason in the place of a word that relays of another version say."""
_PASSED: Final = "RetentionPassed"
_UNAVAILABLE: Final = "TargetUnavailable"


def standing_still(seen: Observation) -> Condition | None:
    """Return TopicsReady for partitions that stand still until a person has looked; None if none does."""
    still = [shard for _, shard in sorted(seen.fleet.shards.items()) if shard.state is ShardState.FAILED]
    named = [shard for shard in still if shard.reason is not None]
    if not named:
        return None
    first = named[0]
    reason = first.reason if first.reason in (*_ACCEPTABLE, *_OTHERS) else _UNKNOWN
    said = f"{len(named)} source partitions (the first: {first.partition}) stand still: {first.message or reason}"
    way_on = _way_on(seen) if reason in _ACCEPTABLE else None
    message = f"{said}. {way_on}" if way_on is not None else said
    return Condition(ConditionType.TOPICS_READY, FALSE, str(reason), message)


def target_unavailable(seen: Observation) -> Condition | None:
    """Return TopicsReady for partitions that wait for a topic that does not answer; None if none does."""
    waiting = [shard for _, shard in sorted(seen.fleet.shards.items()) if shard.reason == _UNAVAILABLE]
    if not waiting:
        return None
    first = waiting[0]
    message = f"{len(waiting)} source partitions (the first: {first.partition}): {first.message or _UNAVAILABLE}"
    return Condition(ConditionType.TOPICS_READY, FALSE, _UNAVAILABLE, message)


def _way_on(seen: Observation) -> str | None:
    """Return how to go on with the topic as it is; None where somebody has said so already."""
    source = seen.route.record.source if seen.route.record is not None else None
    topic_id = source.topic_id if source is not None else None
    if topic_id is None or topic_id in accepted_ids(seen.route.annotations.get(ACCEPT_RECREATION)):
        return None
    return (
        f"If it is the right topic, set the annotation {ACCEPT_RECREATION}: {topic_id}: relays begin at its first "
        "record, and what waited of the former one is lost; remove the annotation when they have"
    )


def retention_passed(seen: Observation) -> Condition | None:
    """Return BackendReady where relays found records deleted that they were still to read; None: none were."""
    lost = [shard for _, shard in sorted(seen.fleet.shards.items()) if shard.reason == _PASSED]
    if not lost:
        return None
    message = f"{len(lost)} source partitions (the first: {lost[0].partition}): {lost[0].message or _PASSED}"
    return Condition(ConditionType.BACKEND_READY, TRUE, _PASSED, message)
