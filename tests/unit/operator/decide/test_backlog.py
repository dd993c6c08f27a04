"""Tests of how long, and in which words, a status tells of a backlog from before a deletion."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.scenes import NOW_MS, document, fleet, record, seen

from delaytopic_operator.decide.backlog import NEWS_MS
from delaytopic_operator.decide.plan import WriteRecord
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.record import RecordState, RouteRecord
from delaytopic_operator.observe.observation import Observation


def retained(pending: int | None) -> RouteRecord:
    return record().in_state(RecordState.RETAINED, pending=pending)


def active(pending: int | None) -> RouteRecord:
    return record().model_copy(update={"pending": pending})


def living(known: RouteRecord, *, now: int | None = None, told_for_ms: int | None = None) -> Observation:
    """One that is applied again; relays say that so much is pending now."""
    found = document(deleted_ms=None)
    if told_for_ms is not None:
        since = instant(NOW_MS - told_for_ms)
        condition = {"type": "BackendReady", "status": "True", "reason": "ResumedBacklog", "lastTransitionTime": since}
        found |= {"status": {"conditions": [condition]}}
    return seen(found, record=known, fleet=fleet(now))


CASES: list[tuple[str, Observation, str, int | None, list[str]]] = [
    ("a backlog goes on", living(retained(4)), "ResumedBacklog", 4, ["BacklogResumed"]),
    ("nobody knows how much", living(retained(None)), "ResumedBacklog", None, ["BacklogResumed"]),
    ("nothing was left", living(retained(0)), "Ready", None, []),
    ("told already", living(active(4), now=3), "ResumedBacklog", 4, []),
    ("relays say nothing yet", living(active(4)), "ResumedBacklog", 4, []),
    ("delivered", living(active(4), now=0), "Ready", None, []),
    ("new records keep arriving", living(active(4), now=9, told_for_ms=NEWS_MS), "Ready", None, []),
    ("an hour is not over", living(active(4), now=9, told_for_ms=NEWS_MS - 1_000), "ResumedBacklog", 4, []),
    ("never deleted", living(active(None), now=9), "Ready", None, []),
]


@pytest.mark.parametrize(("what", "observation", "reason", "kept", "events"), CASES, ids=[case[0] for case in CASES])
def test_a_backlog_from_before_is_told_until_it_is_delivered(
    what: str, observation: Observation, reason: str, kept: int | None, events: list[str]
) -> None:
    decided = plan(observation)

    backend = next(condition for condition in decided.conditions if condition.type == "BackendReady")
    assert backend.reason == reason
    assert [event.reason for event in decided.events] == events
    assert record_after(observation, decided.actions).pending == kept


def record_after(observation: Observation, actions: Any) -> RouteRecord:
    """As the pass leaves it."""
    written = [action.record for action in actions if isinstance(action, WriteRecord)]
    assert observation.route.record is not None
    return written[-1] if written else observation.route.record
