"""Whatever is wanted and there, whenever a pass is killed: topics end the same, and what is not ours stays as it is."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.operator.topic_scenes import DEAD_LETTER, SOURCE, TARGET, BucketTopic, Wanted, World, facts, wanted

from delaytopic_api.documents import Ownership
from delaytopic_operator.model.kafka_view import TopicFacts
from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic

NAMES = (SOURCE, TARGET, DEAD_LETTER)
BUCKETS = (BucketTopic("delaytopic.shop.reminders.delay.0", {"retention.ms": "700000000"}),)

managements = st.sampled_from(["Create", "Adopt", "Observe"])
configs = st.fixed_dictionaries(
    {},
    optional={
        "retention.ms": st.sampled_from(["3196800000", "4000000000"]),
        "segment.ms": st.just("5"),
        "max.message.bytes": st.just("2000000"),
    },
)


def topic_specs() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"management": managements}, optional={"partitions": st.integers(1, 4), "config": configs}
    )


routes = st.builds(
    lambda source, target, dead_letter: wanted(source=source, target=target, deadLetter=dead_letter),
    topic_specs(),
    topic_specs(),
    topic_specs(),
)


def topics_there(name: str) -> st.SearchStrategy[TopicFacts]:
    return st.builds(
        lambda partitions, kept, kind, policy: facts(
            name,
            "stranger",
            partitions,
            retention_ms=kept,
            message_timestamp_type=kind,
            cleanup_policy=policy,
        ),
        st.integers(1, 4),
        st.sampled_from(["-1", "1000", "4000000000"]),
        st.sampled_from(["CreateTime", "LogAppendTime"]),
        st.sampled_from(["delete", "compact", "compact,delete"]),
    )


worlds = st.sets(st.sampled_from(NAMES)).flatmap(
    lambda names: st.builds(World.of, *(topics_there(name) for name in sorted(names)))
)


def run(world: World, route: Wanted) -> World:
    world.settle(route, buckets=BUCKETS)
    return world


@given(routes, worlds, st.lists(st.integers(0, 4), max_size=4))
def test_passes_that_are_killed_at_any_step_end_as_one_that_is_not(
    route: Wanted, world: World, crashes: list[int]
) -> None:
    undisturbed = run(copy.deepcopy(world), route)

    for steps in crashes:
        world.carry_out(world.plan(route, buckets=BUCKETS), steps)
    disturbed = run(world, route)

    assert {name: topic.config for name, topic in disturbed.topics.items()} == {
        name: topic.config for name, topic in undisturbed.topics.items()
    }
    assert {name: topic.partitions for name, topic in disturbed.topics.items()} == {
        name: topic.partitions for name, topic in undisturbed.topics.items()
    }
    assert _ownership(disturbed) == _ownership(undisturbed)


@given(routes, worlds)
def test_a_topic_that_is_not_to_be_taken_over_is_left_exactly_as_it_was(route: Wanted, world: World) -> None:
    before = dict(world.topics)
    settings = (route.settings.source, route.settings.target, route.settings.dead_letter)
    not_ours = [topic.topic for topic in settings if topic.management != "Adopt" and topic.topic in before]

    run(world, route)

    assert {name: world.topics[name] for name in not_ours} == {name: before[name] for name in not_ours}


@given(routes, worlds)
def test_nothing_is_made_that_was_not_written_down_before_and_nothing_is_ever_deleted(
    route: Wanted, world: World
) -> None:
    plan = world.plan(route, buckets=BUCKETS)

    record = plan.record
    named = [record.source, record.target, record.dead_letter, *record.buckets.values()]
    intents = {one.name for one in named if one and one.ownership is Ownership.CREATED and one.topic_id is None}
    assert {action.name for action in plan.actions if isinstance(action, CreateTopic)} <= intents
    assert not [action for action in plan.actions if isinstance(action, DeleteTopic)]


@given(routes, routes, worlds)
def test_after_a_change_of_the_document_partitions_have_never_become_fewer(
    first: Wanted, second: Wanted, world: World
) -> None:
    run(world, first)
    before = {name: (topic.topic_id, topic.partitions) for name, topic in world.topics.items()}

    run(world, second)

    assert all(world.topics[name].topic_id == topic_id for name, (topic_id, _) in before.items())
    assert all(world.topics[name].partitions >= partitions for name, (_, partitions) in before.items())


def _ownership(world: World) -> dict[str, tuple[str, bool]]:
    assert world.record is not None
    named = (world.record.source, world.record.target, world.record.dead_letter, *world.record.buckets.values())
    return {one.name: (one.ownership, one.topic_id is None) for one in named if one is not None}
