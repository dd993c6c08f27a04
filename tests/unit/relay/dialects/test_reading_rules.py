"""Tests that whoever declares rules sees every change that a relay reads by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import Duration
from delaytopic_api.documents import CesiumSpec, PlainDialect, RedeliverySpec
from delaytopic_api.policy import rules_mark
from delaytopic_api.relay import RelaySchedule, RelayScheduler, RelayTarget
from delaytopic_api.values import (
    CesiumNumbers,
    Compression,
    Ids,
    OnBeyondMaxDelay,
    OnMalformed,
    Partitioning,
    Provenance,
)
from delaytopic_relay.core.rules import Rules
from delaytopic_relay.dialects import rules_of

durations = st.integers(1, 10**9).map(Duration.of_ms)
topics = st.sampled_from(["shop.a", "shop.b", "shop.c"])
PLAIN = [name for name, field in RelaySchedule.model_fields.items() if PlainDialect in get_args(field.annotation)]
SCHEDULE: dict[str, st.SearchStrategy[Any]] = {
    "default_delay": st.none() | durations,
    "fixed_delay": st.none() | durations,
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
    | st.builds(RelayScheduler, grace_interval=st.none() | durations, since_days=st.none() | st.integers(0, 3650)),
    "redelivery": st.none() | st.builds(RedeliverySpec, max_redeliveries=st.integers(1, 100)),
    **{name: st.none() | st.just(PlainDialect()) for name in PLAIN},
    "declared_ms": st.none() | st.integers(0, 10**12),
}
TARGET: dict[str, st.SearchStrategy[Any]] = {
    "topic": topics,
    "allowed_topics": st.lists(topics, max_size=3),
    "partitioning": st.sampled_from(Partitioning),
    "compression": st.sampled_from(Compression),
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
