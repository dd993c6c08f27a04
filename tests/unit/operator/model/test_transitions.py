"""Tests of which changes of conditions become events."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_operator.model.transitions import Event, reason_events, transition_events

Condition = dict[str, Any]


def condition(type_: str, status: str, reason: str = "", message: str = "words") -> Condition:
    return {"type": type_, "status": status, "reason": reason or type_, "message": message}


READY = condition("Ready", "True", "Ready")
NOT_READY = condition("Ready", "False", "TopicMissing")
LEAVING = condition("Draining", "True", "Draining")
STALLED = condition("Stalled", "True", "TopicExists")
ON_TIME = condition("DeliveringOnTime", "True", "OnTime")
LATE = condition("DeliveringOnTime", "False", "Overdue")
ENOUGH = condition("CapacitySufficient", "True", "Fits")
TOO_SMALL = condition("CapacitySufficient", "False", "PartitionCeiling")
PAUSED = condition("Paused", "True", "Annotation")
BACKEND = condition("BackendReady", "True", "Ready")
MET, MISSED = condition("SLOMet", "True", "Met"), condition("SLOMet", "False", "Missed")
STALE = condition("AutoscalingActive", "Unknown", "SignalStale")
SCALING = condition("AutoscalingActive", "True", "Enough")

BEGINNING = condition("RulesInForce", "Unknown", "RollingOut")
ROLLING, WAITING = condition("RulesInForce", "False", "RollingOut"), condition("RulesInForce", "False", "EditWaits")
IN_FORCE, KEPT = condition("RulesInForce", "True", "InForce"), condition("RulesInForce", "True", "FormerRulesWait")

CASES: list[tuple[str, list[Condition], list[Condition], list[tuple[str, str]]]] = [
    ("nothing", [], [], []),
    ("the first rules", [BEGINNING], [IN_FORCE], []),
    ("rules are edited", [IN_FORCE], [ROLLING], []),
    ("what waits keeps the former rules", [ROLLING], [KEPT], [("Normal", "FormerRulesWait")]),
    ("nothing keeps former rules any more", [KEPT], [IN_FORCE], [("Normal", "InForce")]),
    ("an edit waits", [ROLLING], [WAITING], [("Warning", "EditWaits")]),
    ("an edit waits on", [WAITING], [WAITING], []),
    ("ready for the first time", [], [READY], [("Normal", "Ready")]),
    ("still ready", [READY], [READY], []),
    ("not ready yet", [], [NOT_READY], []),
    ("not ready any more", [READY], [NOT_READY], [("Warning", "NotReady")]),
    ("not ready for another reason", [NOT_READY], [condition("Ready", "False", "Other")], []),
    ("ready again", [NOT_READY], [READY], [("Normal", "Ready")]),
    ("unknown", [READY], [condition("Ready", "Unknown", "KafkaUnreachable")], [("Warning", "NotReady")]),
    (
        "deleted",
        [READY],
        [condition("Ready", "False", "Draining"), LEAVING],
        [("Normal", "DrainStarted")],
    ),
    ("drains on", [LEAVING], [LEAVING], []),
    ("near the deadline", [LEAVING], [condition("Draining", "True", "DrainTimeoutNear")], []),
    (
        "at its deadline from the first",
        [],
        [condition("Draining", "True", "DrainTimeoutNear")],
        [("Normal", "DrainStarted")],
    ),
    ("waits for a confirmation", [], [condition("Draining", "True", "ConfirmationMissing")], []),
    ("removes", [], [condition("Draining", "True", "Stopping")], []),
    ("stalled", [], [STALLED], [("Warning", "TopicExists")]),
    ("still stalled", [STALLED], [STALLED], []),
    (
        "stalled for another reason",
        [STALLED],
        [condition("Stalled", "True", "InvalidSpec")],
        [("Warning", "InvalidSpec")],
    ),
    ("not stalled any more", [STALLED], [], []),
    ("late", [ON_TIME], [LATE], [("Warning", "Overdue")]),
    ("on time again", [LATE], [ON_TIME], [("Normal", "DeliveringOnTime")]),
    ("on time from the first", [], [ON_TIME], []),
    ("too small", [ENOUGH], [TOO_SMALL], [("Warning", "CapacityInsufficient")]),
    ("large enough again", [TOO_SMALL], [ENOUGH], [("Normal", "CapacitySufficient")]),
    ("missed", [MET], [MISSED], [("Warning", "SLOMissed")]),
    ("met again", [MISSED], [MET], [("Normal", "SLOMet")]),
    (
        "Redis not safe",
        [BACKEND],
        [condition("BackendReady", "False", "PersistenceOff")],
        [("Warning", "PersistenceOff")],
    ),
    ("Redis not safe from the first", [], [condition("BackendReady", "False", "PersistenceOff")], []),
    ("paused", [READY], [READY, PAUSED], [("Normal", "Paused")]),
    ("resumed", [READY, PAUSED], [READY], [("Normal", "Resumed")]),
    ("holds its scale", [SCALING], [STALE], [("Warning", "ScaleHeld")]),
    ("holds on", [STALE], [STALE], []),
    ("scales again", [STALE], [SCALING], []),
]


@pytest.mark.parametrize(("what", "before", "after", "events"), CASES, ids=[case[0] for case in CASES])
def test_a_transition_is_told_once(
    what: str, before: list[Condition], after: list[Condition], events: list[tuple[str, str]]
) -> None:
    assert [(event.type, event.reason) for event in transition_events(before, after)] == events


def test_an_event_has_the_words_of_the_condition() -> None:
    assert transition_events([], [STALLED]) == [Event("Warning", "TopicExists", "words")]


WRITTEN = condition("Ready", "True", "Written")
SUSPENDED = condition("Ready", "False", "Suspended")
WRITING = condition("Ready", "Unknown", "Writing")
AWAY = condition("Ready", "Unknown", "KafkaUnreachable")


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        ([], [WRITTEN], [Event("Normal", "Written", "words")]),
        ([], [NOT_READY], [Event("Warning", "TopicMissing", "words")]),
        ([WRITTEN], [SUSPENDED], [Event("Normal", "Suspended", "words")]),
        ([SUSPENDED], [NOT_READY], [Event("Warning", "TopicMissing", "words")]),
        ([WRITTEN], [AWAY], [Event("Warning", "KafkaUnreachable", "words")]),
        ([WRITTEN], [WRITING], []),
        ([WRITTEN], [WRITTEN], []),
        ([STALLED, AWAY], [STALLED, AWAY], []),
    ],
    ids=lambda given: "-".join(each["reason"] for each in given if isinstance(each, dict)) or "nothing",
)
def test_another_reason_of_ready_is_told_once_unless_it_passes_in_a_moment(
    before: list[Condition], after: list[Condition], events: list[Event]
) -> None:
    assert reason_events(before, after) == events
