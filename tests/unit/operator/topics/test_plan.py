"""Tests of what is done about the topics of a DelayTopic, and what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.operator.topic_scenes import (
    DEAD_LETTER,
    SOURCE,
    TARGET,
    BucketTopic,
    World,
    facts,
    wanted,
)

from delaytopic_api.documents import ConditionStatus, ConditionType, Ownership, TopicStatus
from delaytopic_operator.model.conditions import Condition
from delaytopic_operator.model.kafka_view import TopicFacts
from delaytopic_operator.model.record import TopicRecord
from delaytopic_operator.topics.actions import CreateTopic, GrowTopic, SetConfig, TopicEvent
from delaytopic_operator.topics.ownership import ACCEPT_RECREATION

MONTH_AND_WEEK_MS = str((720 + 168) * 3_600_000)
ALL_THERE = "source, target and dead-letter topic are there"
BUCKETS = (
    BucketTopic("delaytopic.shop.reminders.delay.0", {"retention.ms": "700000000"}),
    BucketTopic("delaytopic.shop.reminders.delay.1", {"retention.ms": "800000000"}),
)


def ready(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(ConditionType.TOPICS_READY, status, reason, message)


def test_three_topics_are_made_the_source_last_with_what_each_needs() -> None:
    route = wanted(source={"partitions": 12})

    plan = World().plan(route)

    assert plan.actions == (
        CreateTopic(DEAD_LETTER, config={"max.message.bytes": "1114124"}),
        CreateTopic(TARGET, config={"message.timestamp.type": "LogAppendTime"}),
        CreateTopic(
            SOURCE,
            12,
            config={
                "cleanup.policy": "delete",
                "message.timestamp.type": "LogAppendTime",
                "retention.bytes": "-1",
                "retention.ms": MONTH_AND_WEEK_MS,
            },
        ),
    )
    assert plan.topics == ready(ConditionStatus.FALSE, "TopicMissing", f"creating {DEAD_LETTER}, {TARGET}, {SOURCE}")
    assert (plan.stalled, plan.reconciling) == (None, f"creating {DEAD_LETTER}, {TARGET}, {SOURCE}")


def test_a_dialect_with_tombstones_and_history_gets_a_compacted_source_and_a_history_topic() -> None:
    route = wanted(schedule={"scheduler": {}})

    plan = World().plan(route)

    made = {action.name: dict(action.config) for action in plan.actions if isinstance(action, CreateTopic)}
    assert [*made] == [DEAD_LETTER, f"{SOURCE}.history", TARGET, SOURCE]
    assert made[f"{SOURCE}.history"] == {}
    assert made[SOURCE] == {
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
        "retention.bytes": "-1",
        "retention.ms": "-1",
    }
    assert plan.record.history == TopicRecord(name=f"{SOURCE}.history", ownership=Ownership.CREATED)


def test_a_topic_of_outcomes_has_as_many_partitions_as_the_source_and_is_made_before_it() -> None:
    plan = World().plan(wanted(source={"partitions": 6}, outcomes={"topic": "told"}))

    made = {action.name: action for action in plan.actions if isinstance(action, CreateTopic)}
    assert [*made] == [DEAD_LETTER, "told", TARGET, SOURCE]
    assert (made["told"].partitions, made["told"].config) == (
        6,
        {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"},
    )
    assert plan.record.outcomes == TopicRecord(name="told", ownership=Ownership.CREATED)


def test_the_history_of_before_is_left_alone_when_the_dialect_comes_back_with_another() -> None:
    world = World()
    world.settle(wanted(schedule={"scheduler": {"history": {"topic": "past"}}}))
    past = world.topics["past"]

    without = world.settle(wanted(schedule={"blackBox": {}}, source={"config": {"cleanup.policy": "delete"}}))
    again = world.settle(wanted(schedule={"scheduler": {"history": {"topic": "later"}}}))

    assert (without.record.history, without.history) == (TopicRecord.model_validate(_created(past)), None)
    assert again.record.history == TopicRecord.model_validate(_created(world.topics["later"]))
    assert world.topics["past"] == past


def _created(topic: TopicFacts) -> dict[str, str]:
    return {"name": topic.name, "ownership": "Created", "topicId": topic.topic_id}


def test_a_compacted_source_is_refused_only_where_records_have_no_names() -> None:
    compacted = facts(SOURCE, cleanup_policy="compact")
    adopted = {"management": "Adopt"}

    by_offset = World.of(compacted).plan(wanted(source=adopted))
    by_key = World.of(compacted).plan(wanted(source=adopted, schedule={"schedulerJson": {}}))

    assert by_offset.topics.reason == "CompactedSource"
    assert by_key.stalled is None


def test_a_source_of_markers_keeps_what_waits_for_longer_than_the_longest_delay() -> None:
    plan = World().plan(wanted(schedule={"redelivery": {}, "maxDelay": "12h"}))

    made = {action.name: dict(action.config) for action in plan.actions if isinstance(action, CreateTopic)}
    assert [*made] == [DEAD_LETTER, TARGET, SOURCE]
    assert made[SOURCE] == {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        "retention.bytes": "-1",
        "retention.ms": str((12 + 168) * 3_600_000),
    }


def test_what_is_about_to_be_made_is_written_down_before() -> None:
    plan = World().plan(wanted())

    intent = TopicRecord(name=SOURCE, ownership=Ownership.CREATED, topic_id=None)
    assert plan.record.source == intent


def test_a_made_topic_is_taken_as_created_and_there_is_nothing_left_to_do() -> None:
    world, route = World(), wanted()

    plan = world.settle(route)

    assert plan.topics == ready(ConditionStatus.TRUE, "AsSpecified", ALL_THERE)
    assert plan.actions == ()
    assert plan.source == TopicStatus(topic_id=world.topics[SOURCE].topic_id, partitions=2, ownership=Ownership.CREATED)
    assert plan.backend == ()


def test_a_topic_that_is_there_already_is_refused_and_nothing_is_made() -> None:
    world, route = World.of(facts(SOURCE)), wanted()

    plan = world.plan(route)

    assert plan.actions == ()
    assert (plan.record.source, plan.record.target) == (None, None)
    assert plan.topics == ready(
        ConditionStatus.FALSE,
        "TopicExists",
        f"the source topic {SOURCE} exists, and was not made by this operator; to take it over set "
        "spec.source.management: Adopt, to use it as it is Observe",
    )
    assert plan.stalled == plan.topics.message


def test_an_adopted_topic_is_told_and_gets_what_is_written_but_keeps_what_is_not() -> None:
    source = facts(SOURCE, retention_ms=MONTH_AND_WEEK_MS, segment_ms="1000", min_insync_replicas="1")
    route = wanted(source={"management": "Adopt", "config": {"segment.ms": "2000"}})

    plan = World.of(source).plan(route)

    assert plan.events == (TopicEvent("TopicAdopted", f"adopted the source topic {SOURCE}, which was there already"),)
    assert plan.actions[-1] == SetConfig(SOURCE, {"segment.ms": "2000"}, {"segment.ms": "1000"})
    assert plan.record.source == TopicRecord(name=SOURCE, ownership=Ownership.ADOPTED, topic_id="id-1")


def test_a_source_that_keeps_records_for_longer_by_itself_goes_on_doing_so() -> None:
    for_ever = facts(SOURCE, retention_ms="-1")

    plan = World.of(for_ever).plan(wanted(source={"management": "Adopt"}))

    assert [action for action in plan.actions if action.name == SOURCE] == []


def test_a_written_retention_is_exact() -> None:
    for_ever = facts(SOURCE, retention_ms="-1")
    route = wanted(source={"management": "Adopt", "retention": "800h"})

    plan = World.of(for_ever).plan(route)

    assert plan.actions[-1] == SetConfig(SOURCE, {"retention.ms": "2880000000"}, {"retention.ms": "-1"})


def test_an_observed_topic_is_never_changed() -> None:
    route = wanted(**{role: {"management": "Observe", "partitions": 9} for role in ("source", "target", "deadLetter")})
    world = World.of(facts(SOURCE, retention_ms=MONTH_AND_WEEK_MS), facts(TARGET), facts(DEAD_LETTER))

    plan = world.plan(route)

    assert plan.actions == ()
    assert plan.stalled is None
    assert plan.target == TopicStatus(topic_id="id-1", partitions=2, ownership=Ownership.OBSERVED)


def test_an_observed_topic_that_is_missing_is_waited_for() -> None:
    plan = World().plan(wanted(target={"management": "Observe"}))

    assert plan.topics == ready(
        ConditionStatus.FALSE,
        "TopicMissing",
        f"the target topic {TARGET} does not exist; create it, or correct spec.target.topic",
    )
    assert plan.stalled is None


def test_without_provisioning_every_topic_must_be_there() -> None:
    plan = World().plan(wanted(of_class={"topicProvisioning": "None"}), buckets=BUCKETS)

    assert plan.actions == ()
    assert plan.topics.reason == "TopicMissing"
    assert [condition.reason for condition in plan.backend] == ["BucketTopicsMissing"]
    assert BUCKETS[0].name in plan.backend[0].message


def test_more_partitions_are_added() -> None:
    world, route = World(), wanted(source={"partitions": 3})
    world.settle(route)

    plan = world.plan(wanted(source={"partitions": 5}))

    assert plan.actions == (GrowTopic(SOURCE, 5, 3),)
    assert plan.actions[0].event() == TopicEvent(
        "PartitionsIncreased", f"the topic {SOURCE} has 5 partitions now, 3 before"
    )
    assert plan.topics.status is ConditionStatus.TRUE


def test_fewer_partitions_are_refused() -> None:
    world = World()
    world.settle(wanted(source={"partitions": 3}))

    plan = world.plan(wanted(source={"partitions": 2}))

    assert plan.actions == ()
    assert plan.topics == ready(
        ConditionStatus.FALSE,
        "PartitionDecrease",
        f"the source topic {SOURCE} has 3 partitions, and Kafka cannot take any away: set spec.source.partitions to 3 "
        "or more",
    )


def test_another_default_of_the_class_changes_no_topic_that_is_there() -> None:
    world = World()
    world.settle(wanted(of_class={"defaults": {"partitions": 6, "replicationFactor": 1, "maxDelay": "720h"}}))

    plan = world.plan(wanted(of_class={"defaults": {"partitions": 3, "replicationFactor": 3, "maxDelay": "1h"}}))

    assert (plan.actions, plan.stalled) == ((), None)


def test_another_replication_factor_is_told_and_not_done() -> None:
    world = World()
    world.settle(wanted())

    plan = world.plan(wanted(source={"replicationFactor": 3}))

    assert plan.actions == ()
    assert plan.topics.reason == "ReplicationFactorChange"
    assert plan.stalled is not None


def test_drift_is_corrected_on_listed_settings_and_on_those_that_the_operator_set() -> None:
    world, route = World(), wanted(source={"config": {"segment.ms": "2000"}})
    world.settle(route)
    source = world.topics[SOURCE]
    drifted = {"segment.ms": "1", "retention.ms": "1000", "message.timestamp.type": "CreateTime", "flush.ms": "5"}
    world.topics[SOURCE] = replace(source, config={**(source.config or {}), **drifted})

    plan = world.plan(route)

    assert plan.actions == (
        SetConfig(
            SOURCE,
            {
                "message.timestamp.type": "LogAppendTime",
                "segment.ms": "2000",
                "retention.ms": MONTH_AND_WEEK_MS,
            },
            {"message.timestamp.type": "CreateTime", "segment.ms": "1", "retention.ms": "1000"},
        ),
    )


def test_the_dead_letter_topic_keeps_room_for_what_the_source_takes() -> None:
    world, route = World(), wanted()
    world.settle(route)

    plan = world.plan(wanted(source={"config": {"max.message.bytes": "2000000"}}))

    assert plan.actions[0] == SetConfig(DEAD_LETTER, {"max.message.bytes": "2065536"}, {"max.message.bytes": "1114124"})


def test_the_dead_letter_topic_takes_no_more_than_kafka_does() -> None:
    actions = World().plan(wanted(source={"config": {"max.message.bytes": "2147483647"}})).actions

    assert CreateTopic(DEAD_LETTER, config={"max.message.bytes": "2147483647"}) in actions


def test_a_topic_that_was_made_anew_is_left_alone_and_told_once() -> None:
    world, route = World(), wanted(target={"config": {"segment.ms": "5"}})
    world.settle(route)
    before = world.topics[TARGET].topic_id
    world.topics[TARGET] = facts(TARGET, "stranger")

    first = world.plan(route)
    world.carry_out(first)
    second = world.plan(route)

    said = f"the target topic {TARGET} was made anew by somebody else: its id is stranger, it was {before}"
    assert first.actions == ()
    assert first.topics == ready(
        ConditionStatus.FALSE,
        "TopicRecreated",
        f"{said}; if it is the right one, set the annotation {ACCEPT_RECREATION}: stranger",
    )
    assert (first.events, second.events) == ((TopicEvent("TopicRecreated", said, warning=True),), ())
    assert second.stalled == first.stalled


def test_a_topic_that_was_made_anew_is_taken_once_somebody_names_its_id() -> None:
    world, route = World(), wanted()
    world.settle(route)
    world.topics[TARGET] = facts(TARGET, "stranger", message_timestamp_type="LogAppendTime")

    plan = world.settle(route, {ACCEPT_RECREATION: "another, stranger"})

    assert plan.topics == ready(ConditionStatus.TRUE, "AsSpecified", ALL_THERE)
    assert plan.record.target == TopicRecord(name=TARGET, ownership=Ownership.CREATED, topic_id="stranger")


def test_a_source_that_was_deleted_is_not_made_again_without_a_word() -> None:
    world, route = World(), wanted()
    world.settle(route)
    lost = world.topics.pop(SOURCE).topic_id

    plan = world.plan(route)
    agreed = world.plan(route, {ACCEPT_RECREATION: lost})

    assert plan.actions == ()
    assert plan.topics == ready(
        ConditionStatus.FALSE,
        "TopicMissing",
        f"the source topic {SOURCE} was deleted, and whatever was pending in it is lost; to go on with a new and empty "
        f"one, set the annotation {ACCEPT_RECREATION}: {lost}",
    )
    assert [action.name for action in agreed.actions] == [SOURCE]


def test_a_target_that_was_deleted_is_made_again() -> None:
    world, route = World(), wanted()
    world.settle(route)
    del world.topics[TARGET]

    plan = world.plan(route)

    assert [type(action) for action in plan.actions] == [CreateTopic]


def test_a_topic_that_may_not_be_seen_is_named_with_the_right_that_is_missing() -> None:
    world = World(forbidden=frozenset({TARGET}))

    plan = world.plan(wanted())

    assert plan.topics == ready(
        ConditionStatus.FALSE,
        "AuthorizationFailed",
        f"the operator's Kafka user may not see the target topic {TARGET}: grant it Describe and DescribeConfigs on it",
    )
    assert plan.stalled is None


def test_settings_that_may_not_be_read_are_told_of_an_observed_topic_and_hinder_nothing() -> None:
    world = World.of(replace(facts(TARGET), config=None))

    plan = world.settle(wanted(target={"management": "Observe"}))

    assert plan.topics == ready(
        ConditionStatus.TRUE,
        "AsSpecified",
        f"{ALL_THERE}; the operator's Kafka user may not read the settings of the target topic {TARGET}: grant it "
        "DescribeConfigs",
    )


def test_a_compacted_source_is_refused() -> None:
    world = World.of(facts(SOURCE, cleanup_policy="compact"))

    plan = world.plan(wanted(source={"management": "Observe"}))

    assert (plan.topics.reason, plan.actions) == ("CompactedSource", ())
    assert plan.stalled is not None


def test_a_fixed_delay_needs_the_brokers_time_on_the_source() -> None:
    route = wanted(source={"management": "Observe"}, schedule={"fixedDelay": "30s"})

    plan = World.of(facts(SOURCE)).plan(route)

    assert plan.topics.reason == "TimestampType"
    assert "spec.schedule.fixedDelay needs LogAppendTime" in plan.topics.message


def test_the_audit_wants_the_brokers_time_but_the_route_works_without() -> None:
    source = facts(SOURCE, retention_ms="-1")

    plan = World.of(source).settle(wanted(source={"management": "Observe"}))

    assert plan.topics == ready(
        ConditionStatus.TRUE,
        "AsSpecified",
        f"{ALL_THERE}; the source topic {SOURCE} has message.timestamp.type=CreateTime: the audit needs LogAppendTime "
        "to measure lateness by the broker's clock",
    )


@pytest.mark.parametrize(
    ("copies", "in_sync", "reason", "stalled"),
    [(1, "2", "TooFewCopies", True), (3, "1", "AsSpecified", False), (3, "2", "AsSpecified", False)],
)
def test_copies_and_their_acknowledgement_go_together(copies: int, in_sync: str, reason: str, stalled: bool) -> None:
    target = facts(TARGET, copies=copies, min_insync_replicas=in_sync, message_timestamp_type="LogAppendTime")

    world, route = World.of(target), wanted(target={"management": "Observe"})

    world.carry_out(world.plan(route))
    plan = world.plan(route)

    assert (plan.topics.reason, plan.stalled is not None) == (reason, stalled)
    assert ("acknowledged that only one broker has" in plan.topics.message) is ((copies, in_sync) == (3, "1"))


@pytest.mark.parametrize(
    ("retention_ms", "status"),
    [("1000", ConditionStatus.FALSE), ("2592000000", ConditionStatus.TRUE), (MONTH_AND_WEEK_MS, None), ("-1", None)],
)
def test_an_observed_source_that_forgets_too_soon_is_told(retention_ms: str, status: ConditionStatus | None) -> None:
    source = facts(SOURCE, retention_ms=retention_ms, message_timestamp_type="LogAppendTime")

    plan = World.of(source).plan(wanted(source={"management": "Observe"}))

    expected = [] if status is None else [(status, "RetentionTooShort")]
    assert [(condition.status, condition.reason) for condition in plan.backend] == expected


def test_a_target_grows_with_the_source_where_partitions_correspond() -> None:
    world = World()
    world.settle(wanted(source={"partitions": 3}, target={"partitioning": "SamePartition"}))

    plan = world.plan(wanted(source={"partitions": 5}, target={"partitioning": "SamePartition"}))

    assert plan.actions == (GrowTopic(TARGET, 5, 3), GrowTopic(SOURCE, 5, 3))


def test_an_observed_target_with_too_few_partitions_is_refused_where_partitions_correspond() -> None:
    observed = {"management": "Observe"}
    route = wanted(source=observed, target={"partitioning": "SamePartition", **observed})
    world = World.of(facts(TARGET), facts(SOURCE, partitions=3))

    plan = world.plan(route)

    assert plan.topics.reason == "TooFewPartitions"


@pytest.mark.parametrize(("partitions", "reason"), [(10_000, "AsSpecified"), (10_001, "TooManyPartitions")])
def test_an_observed_source_has_no_more_partitions_than_an_operator_can_hear_of(partitions: int, reason: str) -> None:
    observed = {"management": "Observe"}
    world = World.of(facts(TARGET), facts(SOURCE, partitions=partitions), facts(DEAD_LETTER))

    plan = world.plan(wanted(source=observed, target=observed, deadLetter=observed))

    assert plan.topics.reason == reason
