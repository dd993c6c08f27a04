"""Tests that whoever declares rules sees every change that a relay reads by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import Duration
from delaytopic_api.documents import CesiumSpec, RedeliverySpec, SchedulerSpec
from delaytopic_api.policy import may_wait_together, rules_mark
from delaytopic_api.relay import RelaySchedule, RelayTarget
from delaytopic_api.values import (
    CesiumNumbers,
    Dialect,
    Ids,
    OnBeyondMaxDelay,
    OnMalformed,
    Partitioning,
    Provenance,
)
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.rules import Declared, Generation, Rules, succeed, target_mark
from delaytopic_relay.dialects import rules_of

durations = st.integers(1, 10**9).map(Duration.of_ms)
topics = st.sampled_from(["shop.a", "shop.b", "shop.c"])
SCHEDULE: dict[str, st.SearchStrategy[Any]] = {
    "dialect": st.sampled_from(Dialect),
    "default_delay": st.none() | durations,
    "delay": st.none() | durations,
    "max_delay": durations,
    "ids": st.sampled_from(Ids),
    "cesium": st.none()
    | st.builds(
        CesiumSpec,
        on_malformed=st.sampled_from(OnMalformed),
        on_beyond_max_delay=st.sampled_from(OnBeyondMaxDelay),
        numbers=st.sampled_from(CesiumNumbers),
        provenance=st.sampled_from(Provenance),
    ),
    "scheduler": st.none()
    | st.builds(SchedulerSpec, grace_interval=st.none() | durations, since_days=st.none() | st.integers(0, 3650)),
    "redelivery": st.none() | st.builds(RedeliverySpec, max_redeliveries=st.integers(1, 100)),
    "declared_ms": st.none() | st.integers(0, 10**12),
}
TARGET: dict[str, st.SearchStrategy[Any]] = {
    "topic": topics,
    "allowed": st.lists(topics, max_size=3),
    "partitioning": st.sampled_from(Partitioning),
}
schedules = st.fixed_dictionaries(SCHEDULE)
targets = st.fixed_dictionaries(TARGET)


def read_by(schedule: RelaySchedule, target: RelayTarget) -> Rules:
    """Return a relay's rules, which see nothing else of its configuration."""
    return rules_of(SimpleNamespace(schedule=schedule, target=target))  # type: ignore[arg-type]


def test_every_field_is_varied() -> None:
    assert {*SCHEDULE} == {*RelaySchedule.model_fields}
    assert {*TARGET} == {*RelayTarget.model_fields}


@given(schedules, targets, st.data())
def test_a_field_whose_change_changes_what_a_relay_reads_by_changes_the_mark(
    schedule: dict[str, Any], target: dict[str, Any], data: st.DataObject
) -> None:
    field = data.draw(st.sampled_from([*SCHEDULE, *TARGET]))
    changed = {field: data.draw({**SCHEDULE, **TARGET}[field])}
    before = RelaySchedule.model_construct(**schedule), RelayTarget.model_construct(**target)
    after = (
        before[0].model_copy(update=changed if field in SCHEDULE else {}),
        before[1].model_copy(update=changed if field in TARGET else {}),
    )

    if read_by(*before) != read_by(*after):
        assert rules_mark(*before) != rules_mark(*after)


@given(schedules, targets, st.none() | st.integers(0, 10**12))
def test_the_time_at_which_rules_were_declared_is_no_part_of_their_mark(
    schedule: dict[str, Any], target: dict[str, Any], declared_ms: int | None
) -> None:
    given_schedule, given_target = RelaySchedule.model_construct(**schedule), RelayTarget.model_construct(**target)

    declared = given_schedule.model_copy(update={"declared_ms": declared_ms})

    assert rules_mark(declared, given_target) == rules_mark(given_schedule, given_target)


@given(*[st.sampled_from(Dialect), st.sampled_from(Ids)] * 2)
def test_the_operator_knows_which_edits_wait_until_nothing_waits_any_more(
    former_dialect: Dialect, former_ids: Ids, dialect: Dialect, ids: Ids
) -> None:
    former = Rules(former_dialect, 1_000, target_mark("a"), ids=former_ids)
    rules = Rules(dialect, 2_000, target_mark("a"), ids=ids)
    kept = Generation(0, 1, DueKey(500, 3), former)

    edit = succeed([kept], 0, Declared(rules, 2), position=4, cursor=NOTHING_DELIVERED, end=9)

    assert (edit.waits is None) == may_wait_together(former_dialect, former_ids, dialect, ids)
