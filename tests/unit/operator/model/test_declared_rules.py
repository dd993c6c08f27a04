"""Tests of the time at which rules are declared, and of what former rules ask of the source topic meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operator.topic_scenes import wanted

from delaytopic_api import Settings
from delaytopic_operator.model.declared_rules import DeclaredRules, FormerNeed, declared, taken_over

HOUR_MS = 3_600_000
WEEK_MS = 168 * HOUR_MS
DAY_LONG = {"maxDelay": "24h"}
HOUR_LONG = {"maxDelay": "1h"}
NEED = FormerNeed(retention_ms=24 * HOUR_MS + WEEK_MS)


def settings(schedule: dict[str, Any] | None = None, **spec: Any) -> Settings:
    return wanted(schedule=schedule or DAY_LONG, **spec).settings


def edited(*steps: tuple[dict[str, Any], int, bool]) -> DeclaredRules:
    """Return what is remembered after these edits: each a schedule, its time, and whether relays took it over then."""
    rules: DeclaredRules | None = None
    for schedule, at_ms, known in steps:
        rules = declared(rules, settings(schedule), at_ms)
        rules = taken_over(rules, at_ms) if known else rules
    assert rules is not None
    return rules


@pytest.mark.parametrize(
    "spec",
    [
        {"schedule": HOUR_LONG},
        {"schedule": DAY_LONG | {"defaultDelay": "5s"}},
        {"schedule": DAY_LONG | {"ids": "Disabled"}},
        {"schedule": DAY_LONG | {"cesium": {}}},
        {"schedule": DAY_LONG | {"cesium": {"onMalformed": "Deliver"}}},
        {"schedule": {"fixedDelay": "24h"}},
        {"target": {"allowedTopics": ["shop.*"]}},
        {"target": {"topic": "shop.elsewhere"}},
    ],
)
def test_an_edit_of_the_rules_is_declared_when_it_is_first_seen(spec: dict[str, Any]) -> None:
    before = declared(None, settings(), 1_000)

    after = declared(before, settings(**spec), 2_000)

    assert (before.declared_ms, after.declared_ms, after.mark == before.mark) == (1_000, 2_000, False)
    assert declared(after, settings(**spec), 3_000) == after


@pytest.mark.parametrize(
    "spec",
    [{"precision": "200ms"}, {"suspend": "All"}, {"guarantee": "AtLeastOnce"}, {"source": {"partitions": 9}}],
)
def test_an_edit_of_anything_else_is_not_declared(spec: dict[str, Any]) -> None:
    before = declared(None, settings(), 1_000)

    assert declared(before, settings(**spec), 2_000) == before


@given(st.lists(st.tuples(st.sampled_from(["1h", "2h", "3h"]), st.integers(0, 10**13)), min_size=2))
def test_later_rules_are_declared_later_however_the_clock_goes(edits: list[tuple[str, int]]) -> None:
    rules: DeclaredRules | None = None
    for longest, now_ms in edits:
        before, rules = rules, declared(rules, settings({"maxDelay": longest}), now_ms)
        if before is not None:
            assert (rules.declared_ms > before.declared_ms) == (rules.mark != before.mark)


def test_former_rules_ask_for_their_retention_until_it_has_passed_since_relays_took_the_edit_over() -> None:
    lowered = edited((DAY_LONG, 0, True), (HOUR_LONG, 1_000, False))
    known = taken_over(lowered, 5_000)
    end_ms = 5_000 + NEED.retention_ms

    assert lowered.former == (NEED,)
    assert known.former == (NEED.model_copy(update={"ended_ms": 5_000}),)
    assert known.former[0].until_ms == end_ms
    assert declared(known, settings(HOUR_LONG), end_ms - 1).former == known.former
    assert declared(known, settings(HOUR_LONG), end_ms).former == ()


def test_an_edit_that_no_relay_has_taken_over_leaves_the_rules_before_it_in_force() -> None:
    twice = edited((DAY_LONG, 0, True), (HOUR_LONG, 1_000, False), ({"maxDelay": "2h"}, 2_000, False))

    assert declared(twice, settings({"maxDelay": "2h"}), 2_000 + 10 * NEED.retention_ms).former[0] == NEED


def test_a_longer_delay_leaves_nothing_of_shorter_ones_to_ask_for() -> None:
    raised = edited((HOUR_LONG, 0, True), (DAY_LONG, 1_000, False))
    lowered_again = edited((DAY_LONG, 0, True), (HOUR_LONG, 1, True), (DAY_LONG, 2, True), (HOUR_LONG, 3, True))

    assert raised.former == ()
    assert lowered_again.former == (NEED.model_copy(update={"ended_ms": 3}),)


def test_a_written_retention_is_all_that_its_rules_ask_for() -> None:
    short = settings(source={"retention": "30h"})

    assert declared(None, short, 0).retention_ms == 30 * HOUR_MS


def test_what_waits_by_offset_asks_that_its_source_is_not_compacted() -> None:
    by_offset = declared(None, settings(DAY_LONG | {"ids": "Disabled"}), 0)

    by_key = declared(by_offset, settings(DAY_LONG | {"scheduler": {}}), 1_000)

    assert (by_offset.by_offset, by_key.by_offset, by_key.former) == (True, False, (NEED,))
