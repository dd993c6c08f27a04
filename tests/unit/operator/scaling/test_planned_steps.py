from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.operator.scenes import NOW_MS
from tests.unit.operator.scaling.steps import REMEMBERED, WITHHELD, growing

from delaytopic_operator.decide.plan import Apply, WriteRecord
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.scaling.state import Step, Watch


def test_a_step_is_written_down_after_the_deployment_was() -> None:
    decided = plan(growing())

    applied, written = decided.actions
    assert isinstance(applied, Apply)
    assert isinstance(written, WriteRecord)
    assert written.memory is not None
    assert (applied.document["kind"], applied.document["spec"]["replicas"]) == ("Deployment", 2)
    assert applied.step == decided.step == decided.scaling
    assert (written.memory.replicas, written.memory.step) == (2, Step(NOW_MS, 1, 2))


def test_measurements_worth_saving_are_written_down_with_the_step_and_not_before() -> None:
    decided = plan(growing(saved_memory=replace(REMEMBERED, partitions=3)))

    assert [type(action) for action in decided.actions] == [Apply, WriteRecord]


@pytest.mark.parametrize("why", WITHHELD)
def test_a_withheld_deployment_takes_no_step_and_none_is_told_or_written_down(why: str) -> None:
    decided = plan(growing(**WITHHELD[why]))

    assert decided.scaling is not None
    assert (decided.scaling.changed, decided.step, decided.events) == (True, None, [])
    assert [each.memory for each in decided.actions if isinstance(each, WriteRecord)] == []
    assert (decided.scaling.held.replicas, decided.scaling.held.step) == (1, None)


def test_the_status_tells_the_last_step_that_was_executed() -> None:
    before = replace(REMEMBERED, step=Step(NOW_MS - 60_000, 2, 1))

    decided = plan(growing(memory=before))

    assert decided.scaling is not None
    assert decided.scaling.held.step == before.step
    assert decided.parts["relay"]["lastScaleTime"] == instant(NOW_MS - 60_000)


def test_a_number_that_somebody_changed_is_a_warning() -> None:
    decided = plan(growing(memory=replace(REMEMBERED, replicas=3)))

    assert [(each.type, each.reason) for each in decided.events] == [("Warning", "ScaledByHand")]
    assert decided.events[0].message.startswith("Somebody changed the relays' Deployment from 3 to 1: ")


def test_a_deployment_that_was_made_anew_was_scaled_by_nobody() -> None:
    seen = growing(memory=replace(REMEMBERED, replicas=3))
    assert seen.fleet.deployment is not None
    metadata = {**seen.fleet.deployment["metadata"], "creationTimestamp": instant(NOW_MS)}
    fleet = replace(seen.fleet, deployment={**seen.fleet.deployment, "metadata": metadata})

    assert plan(replace(seen, fleet=fleet)).events == []


def test_the_newest_memory_counts_as_another_operator_may_have_led_meanwhile() -> None:
    stale = replace(REMEMBERED, replicas=3, watch=Watch(asked_ms=NOW_MS - 60_000))
    newer = replace(REMEMBERED, replicas=1, watch=Watch(asked_ms=NOW_MS - 1_000))

    assert plan(growing(memory=stale, saved_memory=newer)).events == []
