"""Tests of how Ready sums up what was found, and how conditions follow on those of the reconciliation before."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_operator.model.conditions import (
    FALSE,
    LONGEST_MESSAGE,
    TRUE,
    UNKNOWN,
    Condition,
    Progress,
    instant,
    instant_ms,
    merged,
    ready_counts,
    summed_up,
)

NOW_MS = 1_795_269_686_000
POLICY, TOPICS = ConditionType.POLICY_ACCEPTED, ConditionType.TOPICS_READY
BACKEND, RELAY = ConditionType.BACKEND_READY, ConditionType.RELAY_AVAILABLE
WELL = [Condition(each, TRUE, "Fine", "is fine") for each in (POLICY, TOPICS, BACKEND, RELAY)]
LATE = Condition(ConditionType.DELIVERING_ON_TIME, FALSE, "Overdue", "late")
LEAVING = Condition(ConditionType.DRAINING, TRUE, "Draining", "3 are left")
CALM = Progress()


def but(*others: Condition) -> list[Condition]:
    """All well but these."""
    types = {other.type for other in others}
    return [*(each for each in WELL if each.type not in types), *others]


def without(*types: ConditionType) -> list[Condition]:
    return [each for each in WELL if each.type not in types]


READY_CASES: list[tuple[str, list[Condition], str | None, tuple[ConditionStatus, str]]] = [
    ("all well", WELL, None, (TRUE, "Ready")),
    ("late", [*WELL, LATE], None, (TRUE, "Ready")),
    ("nothing found", [], None, (UNKNOWN, "Reconciling")),
    ("no relays yet", without(RELAY), None, (UNKNOWN, "Reconciling")),
    ("no topics", but(Condition(TOPICS, FALSE, "TopicMissing", "no")), None, (FALSE, "TopicMissing")),
    (
        "the first that is not well counts",
        but(Condition(BACKEND, FALSE, "PersistenceOff", "no"), Condition(RELAY, FALSE, "CrashLoop", "no")),
        None,
        (FALSE, "PersistenceOff"),
    ),
    (
        "what is found counts before what is not known yet",
        [*without(TOPICS, BACKEND), Condition(BACKEND, FALSE, "RetainedBacklogForeign", "no")],
        None,
        (FALSE, "RetainedBacklogForeign"),
    ),
    ("unknown", but(Condition(TOPICS, UNKNOWN, "KafkaUnreachable", "?")), None, (UNKNOWN, "KafkaUnreachable")),
    ("suspended", WELL, "spec.suspend is All", (FALSE, "Suspended")),
    ("refused and suspended", but(Condition(POLICY, FALSE, "LimitExceeded")), "all", (FALSE, "LimitExceeded")),
    ("being deleted", [LEAVING, *WELL], None, (FALSE, "Draining")),
    ("being deleted, little known", [LEAVING], None, (FALSE, "Draining")),
]


@pytest.mark.parametrize(("what", "conditions", "suspended", "ready"), READY_CASES, ids=[c[0] for c in READY_CASES])
def test_ready_sums_up(
    what: str, conditions: list[Condition], suspended: str | None, ready: tuple[ConditionStatus, str]
) -> None:
    summary = summed_up(conditions, CALM, suspended=suspended)

    assert summary[0].type is ConditionType.READY
    assert (summary[0].status, summary[0].reason) == ready
    assert summary[1:] == conditions


PROGRESS_CASES = [
    ("calm", Progress(), []),
    ("changing", Progress(reconciling="two"), [("Reconciling", "Reconciling", "two")]),
    ("stalled", Progress(stalled="no", stalled_reason="TopicExists"), [("Stalled", "TopicExists", "no")]),
    (
        "both",
        Progress("a", "b", "PartitionDecrease"),
        [("Reconciling", "Reconciling", "a"), ("Stalled", "PartitionDecrease", "b")],
    ),
]


@pytest.mark.parametrize(("what", "progress", "told"), PROGRESS_CASES, ids=[case[0] for case in PROGRESS_CASES])
def test_reconciling_and_stalled_are_there_only_while_they_are_so(
    what: str, progress: Progress, told: list[tuple[str, str, str]]
) -> None:
    found = summed_up([], progress)[1:]

    assert [(str(each.type), each.reason, each.message) for each in found] == told
    assert {each.status for each in found} <= {TRUE}


def test_a_condition_keeps_its_time_while_its_status_is_the_same() -> None:
    before: list[dict[str, Any]] = [
        {"type": "TopicsReady", "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z", "reason": "Other"},
        {"type": "BackendReady", "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z", "reason": "Fine"},
        {"type": "Stalled", "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z", "reason": "Gone"},
    ]
    conditions = [Condition(TOPICS, TRUE, "Fine", "m"), Condition(BACKEND, FALSE, "PersistenceOff", "n")]

    now = merged(before, conditions, 4, NOW_MS)

    assert now == [
        {
            "type": "TopicsReady",
            "status": "True",
            "observedGeneration": 4,
            "lastTransitionTime": "2026-11-01T00:00:00Z",
            "reason": "Fine",
            "message": "m",
        },
        {
            "type": "BackendReady",
            "status": "False",
            "observedGeneration": 4,
            "lastTransitionTime": instant(NOW_MS),
            "reason": "PersistenceOff",
            "message": "n",
        },
    ]


def test_without_a_generation_none_is_observed() -> None:
    assert "observedGeneration" not in merged([], [LATE], None, NOW_MS)[0]


def test_a_message_that_is_too_long_is_cut() -> None:
    (told,) = merged([], [LATE._replace(message="x" * (LONGEST_MESSAGE + 1))], 1, NOW_MS)

    assert (len(told["message"]), told["message"][-2:]) == (LONGEST_MESSAGE, "x…")


def test_a_time_is_read_as_it_was_written() -> None:
    assert (instant(NOW_MS + 999), instant_ms(instant(NOW_MS))) == ("2026-11-21T14:01:26Z", NOW_MS)


def test_objects_are_counted_by_what_their_ready_says() -> None:
    written = {"conditions": [{"type": "Ready", "status": "True", "reason": "Written"}]}
    invalid = {
        "conditions": [
            {"type": "Stalled", "status": "True", "reason": "InvalidSpec"},
            {"type": "Ready", "status": "False", "reason": "InvalidSpec"},
        ]
    }
    statuses = [("shop", written), ("shop", written), ("shop", invalid), ("bank", written), ("bank", None)]
    documents = [{"metadata": {"namespace": namespace}, "status": status} for namespace, status in statuses]

    assert ready_counts(documents) == {
        ("shop", "True", "Written"): 2,
        ("shop", "False", "InvalidSpec"): 1,
        ("bank", "True", "Written"): 1,
        ("bank", "Unknown", ""): 1,
    }
