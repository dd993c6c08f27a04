"""Tests of what topics keep for records that wait by the rules of before an edit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.topic_scenes import NAMESPACE_UID, SOURCE, Wanted, World, facts, wanted

from delaytopic_operator.model.declared_rules import declared, taken_over
from delaytopic_operator.model.record import begin_record
from delaytopic_operator.topics.actions import SetConfig
from delaytopic_operator.topics.desired import needed_buckets
from delaytopic_operator.topics.plan import TopicPlan

HOUR_MS = 3_600_000
NOW_MS = 1_795_269_686_000
LONG_MS = (24 + 168) * HOUR_MS
"""The retention that a maxDelay of 24h asks for."""
DAY_LONG, HOUR_LONG = {"maxDelay": "24h"}, {"maxDelay": "1h"}


def before(route: Wanted) -> World:
    """Return the cluster of a DelayTopic that works, its rules taken over."""
    world = World()
    rules = taken_over(declared(None, route.settings, NOW_MS), NOW_MS)
    world.record = begin_record(route.settings, NAMESPACE_UID).model_copy(update={"rules": rules})
    world.settle(route)
    return world


def edited(world: World, route: Wanted, now_ms: int, *, known: bool = True) -> TopicPlan:
    """Return the plan after an edit; `known`: relays that know it have all partitions."""
    assert world.record is not None
    rules = declared(world.record.rules, route.settings, now_ms)
    rules = taken_over(rules, now_ms) if known else rules
    world.record = world.record.model_copy(update={"rules": rules})
    plan = world.plan(route)
    world.carry_out(plan)
    return plan


def retention_ms(world: World) -> str:
    config = world.topics[SOURCE].config
    assert config is not None
    return config["retention.ms"]


def test_a_written_retention_is_lowered_once_the_former_one_has_passed_since_the_edit() -> None:
    world = before(wanted(schedule=DAY_LONG, source={"retention": "500h"}))
    short = wanted(schedule=HOUR_LONG, source={"retention": "2h"})

    held = edited(world, short, NOW_MS)
    kept_ms = retention_ms(world)
    later = edited(world, short, NOW_MS + LONG_MS - 1)
    still_kept_ms = retention_ms(world)
    last = edited(world, short, NOW_MS + LONG_MS)

    assert held.actions == (SetConfig(SOURCE, {"retention.ms": str(LONG_MS)}, {"retention.ms": str(500 * HOUR_MS)}),)
    assert (kept_ms, later.actions, still_kept_ms) == (str(LONG_MS), (), str(LONG_MS))
    assert held.topics.message == (
        "source, target and dead-letter topic are there; the source topic shop.reminders.delayed has "
        f"retention.ms={LONG_MS} and not {2 * HOUR_MS} until 2026-11-29T14:01:26Z, as records wait that were produced "
        "by the rules of before the edit"
    )
    assert last.actions == (SetConfig(SOURCE, {"retention.ms": str(2 * HOUR_MS)}, {"retention.ms": str(LONG_MS)}),)


def test_it_is_not_lowered_while_relays_may_read_by_the_former_rules() -> None:
    world = before(wanted(schedule=DAY_LONG, source={"retention": "500h"}))
    short = wanted(schedule=HOUR_LONG, source={"retention": "2h"})

    plan = edited(world, short, NOW_MS, known=False)
    edited(world, short, NOW_MS + 10 * LONG_MS, known=False)

    assert retention_ms(world) == str(LONG_MS)
    assert "for a while, as records wait" in plan.topics.message


@pytest.mark.parametrize("written", [{"retention": "2h"}, {"config": {"retention.ms": str(2 * HOUR_MS)}}])
def test_what_was_shorter_already_stays_as_it_was_written(written: dict[str, Any]) -> None:
    world = before(wanted(schedule=DAY_LONG, source={"retention": "30h"}))

    edited(world, wanted(schedule=HOUR_LONG, source=written), NOW_MS)

    assert retention_ms(world) == str(30 * HOUR_MS)


def test_a_default_that_somebody_lowers_by_hand_is_restored_to_what_waits() -> None:
    world = before(wanted(schedule=DAY_LONG))
    edited(world, wanted(schedule=HOUR_LONG), NOW_MS)
    world.topics[SOURCE] = facts(SOURCE, world.topics[SOURCE].topic_id, retention_ms=str(170 * HOUR_MS))

    edited(world, wanted(schedule=HOUR_LONG), NOW_MS + 1)

    assert retention_ms(world) == str(LONG_MS)


def test_a_source_that_is_made_anew_has_nothing_to_keep() -> None:
    world = before(wanted(schedule=DAY_LONG, source={"retention": "500h"}))
    assert world.record is not None
    lost = world.topics.pop(SOURCE).topic_id
    short = wanted(schedule=HOUR_LONG, source={"retention": "2h"})
    world.record = world.record.model_copy(update={"rules": declared(world.record.rules, short.settings, NOW_MS)})

    world.settle(short, {"delaytopic.dev/accept-topic-recreation": lost})

    assert retention_ms(world) == str(2 * HOUR_MS)


def test_a_source_is_compacted_once_nothing_waits_by_its_offset() -> None:
    world = before(wanted(schedule=DAY_LONG | {"ids": "Disabled"}))
    by_key = wanted(schedule=DAY_LONG | {"scheduler": {}})

    first = edited(world, by_key, NOW_MS)
    held = edited(world, by_key, NOW_MS + 1)
    after = edited(world, by_key, NOW_MS + LONG_MS)

    changed = [action.config for action in (*first.actions, *held.actions) if isinstance(action, SetConfig)]
    assert changed == [{"retention.ms": "-1"}]
    assert "is not compacted until" in held.topics.message
    assert [action.config for action in after.actions if isinstance(action, SetConfig)] == [
        {"cleanup.policy": "compact"}
    ]


def test_a_fixed_delay_has_bucket_topics_for_what_other_rules_read() -> None:
    of_headers = needed_buckets(wanted(schedule=DAY_LONG).settings)

    assert needed_buckets(wanted(schedule={"fixedDelay": "24h"}).settings) == of_headers
    assert needed_buckets(wanted(schedule={"fixedDelay": "24h"}, backend={"type": "RedisZset"}).settings) == []
