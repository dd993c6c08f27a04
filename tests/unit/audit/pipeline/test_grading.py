"""The minutes that a run grades, and its memory of the rules of runs before."""

from __future__ import annotations

import pytest
from tests.unit.audit.sample_report import state_of

from delaytopic_api.relay import Ending
from delaytopic_audit.model.manifest import GradedUntil, Plan, State
from delaytopic_audit.pipeline.grading import graded_formerly
from delaytopic_audit.pipeline.members import LEARNING_MS, Judged, telling_of

DAY_MINUTES = 24 * 60


def plan_of(lateness_ms: int, *, days_later: int = 0) -> Plan:
    """The plan of a run so long after the sample's."""
    plan = state_of().plan
    rules = plan.rules.model_copy(update={"lateness_ms": lateness_ms})
    later_ms = plan.planned_at_ms + days_later * DAY_MINUTES * 60_000
    return plan.model_copy(update={"rules": rules, "planned_at_ms": later_ms})


@pytest.fixture
def last() -> State:
    """A run by a lateness of 1 s, before which there were two of 5 s."""
    state = state_of()
    known = [GradedUntil(lateness_ms=5_000, minute=state.closed_minute - DAY_MINUTES)]
    return state.model_copy(update={"formerly": known})


def test_a_first_run_knows_no_lateness_of_before() -> None:
    assert graded_formerly(Judged(plan_of(1_000), None)) == []


def test_the_same_lateness_adds_nothing(last: State) -> None:
    assert graded_formerly(Judged(plan_of(1_000), last)) == last.formerly


def test_another_lateness_keeps_the_one_of_the_run_before(last: State) -> None:
    added = GradedUntil(lateness_ms=1_000, minute=last.closed_minute)

    assert graded_formerly(Judged(plan_of(200), last)) == [*last.formerly, added]


def test_latenesses_of_forgotten_minutes_are_forgotten(last: State) -> None:
    assert graded_formerly(Judged(plan_of(1_000, days_later=31), last)) == []
    assert graded_formerly(Judged(plan_of(200, days_later=32), last)) == []


def plan_that_tells(*told: Ending) -> Plan:
    """The plan of a run that reads a topic of outcomes."""
    return plan_of(1_000).model_copy(update={"outcomes": "o", "told": list(told)})


def test_an_audit_that_begins_misses_outcomes_from_an_hour_after_the_first_that_is_there() -> None:
    plan = plan_that_tells(Ending.CANCELLED)

    assert telling_of(Judged(plan, None), 5) == {Ending.CANCELLED: 5 + LEARNING_MS}
    assert telling_of(Judged(plan, None), None) == {Ending.CANCELLED: plan.planned_at_ms + LEARNING_MS}


def test_an_ending_that_is_added_is_missed_from_an_hour_after_that_and_one_that_is_taken_away_never(
    last: State,
) -> None:
    known = last.model_copy(update={"telling": {Ending.CANCELLED: 7, Ending.REPLACED: 7}})
    plan = plan_that_tells(Ending.CANCELLED, Ending.DELIVERED)

    assert telling_of(Judged(plan, known), 5) == {
        Ending.CANCELLED: 7,
        Ending.DELIVERED: plan.planned_at_ms + LEARNING_MS,
    }
