"""Tests of what the topics of the KafkaBuckets backend need."""

from __future__ import annotations

from tests.support.operator.topic_scenes import (
    DEAD_LETTER,
    SOURCE,
    TARGET,
    BucketTopic,
    World,
    facts,
    wanted,
)

from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic

BUCKETS = (
    BucketTopic("delaytopic.shop.reminders.delay.0", {"retention.ms": "700000000"}),
    BucketTopic("delaytopic.shop.reminders.delay.1", {"retention.ms": "800000000"}),
)


def test_bucket_topics_have_the_partitions_and_copies_of_the_source_and_come_before_it() -> None:
    route = wanted(source={"partitions": 7, "replicationFactor": 2})

    plan = World().plan(route, buckets=BUCKETS)

    assert plan.actions[:2] == tuple(CreateTopic(bucket.name, 7, 2, bucket.config) for bucket in BUCKETS)
    assert [condition.reason for condition in plan.backend] == ["BucketTopicsMissing"]


def test_bucket_topics_wait_until_it_is_known_how_many_partitions_the_source_got() -> None:
    world, route = World(), wanted()

    first = world.plan(route, buckets=BUCKETS)
    world.carry_out(first)
    second = world.plan(route, buckets=BUCKETS)

    assert [action.name for action in first.actions] == [DEAD_LETTER, TARGET, SOURCE]
    assert second.actions == tuple(CreateTopic(bucket.name, 2, 1, bucket.config) for bucket in BUCKETS)


def test_bucket_topics_grow_before_the_source() -> None:
    world = World()
    world.settle(wanted(source={"partitions": 3}), buckets=BUCKETS)

    plan = world.plan(wanted(source={"partitions": 4}), buckets=BUCKETS)

    assert [action.name for action in plan.actions] == [*(bucket.name for bucket in BUCKETS), SOURCE]


def test_topics_of_a_former_backend_stay_until_they_hold_nothing() -> None:
    world, route = World(), wanted()
    world.settle(route, buckets=BUCKETS)

    held = world.plan(route)
    emptied = world.plan(route, released=frozenset({BUCKETS[0].name}))

    assert held.actions == ()
    assert held.record.buckets.keys() == {bucket.name for bucket in BUCKETS}
    assert emptied.actions == (DeleteTopic(BUCKETS[0].name, world.topics[BUCKETS[0].name].topic_id),)


def test_a_bucket_topic_in_use_is_not_deleted_even_when_it_holds_nothing() -> None:
    world, route = World(), wanted()
    world.settle(route, buckets=BUCKETS)

    plan = world.plan(route, buckets=BUCKETS, released=frozenset(bucket.name for bucket in BUCKETS))

    assert plan.actions == ()


def test_a_bucket_topic_that_was_made_anew_is_used_and_told() -> None:
    world, route = World(), wanted()
    world.settle(route, buckets=BUCKETS)
    world.topics[BUCKETS[0].name] = facts(BUCKETS[0].name, "stranger", retention_ms="700000000")

    plan = world.plan(route, buckets=BUCKETS)

    assert (plan.stalled, [event.reason for event in plan.events]) == (None, ["TopicRecreated"])
    assert plan.record.buckets[BUCKETS[0].name].topic_id == "stranger"
