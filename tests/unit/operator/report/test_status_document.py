"""Tests of what is written as the status, and when it is worth a write."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.scenes import NOW_MS, UID, document, seen

from delaytopic_operator.decide.plan import AddFinalizer, Plan, RemoveFinalizer
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.conditions import TRUE, Condition, instant
from delaytopic_operator.report.status import status_document, worth_writing

INTERVAL_MS = 30_000
LIVE: dict[str, Any] = {
    "observedGeneration": 3,
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "5 are pending",
            "observedGeneration": 3,
            "lastTransitionTime": instant(NOW_MS - 60_000),
        }
    ],
    "relay": {"replicas": 1, "summary": "1/1"},
    "backlog": {"pending": 5, "asOf": instant(NOW_MS - 10_000)},
    "scaling": {"decidedAtMs": 1, "nextLookMs": 2, "signals": {"ageMs": 7, "pending": 5}},
}


def changed(**parts: Any) -> dict[str, Any]:
    return {"status": LIVE | parts}


def with_condition(**fields: Any) -> dict[str, Any]:
    return changed(conditions=[LIVE["conditions"][0] | fields])


LATER = {"asOf": instant(NOW_MS)}
CASES: list[tuple[str, dict[str, Any], int, bool]] = [
    ("the same", changed(), NOW_MS + INTERVAL_MS, False),
    ("only looked at again", changed(backlog=LIVE["backlog"] | LATER), NOW_MS + INTERVAL_MS, False),
    (
        "scaling looked again",
        changed(scaling={"decidedAtMs": 9, "signals": {"ageMs": 1, "pending": 5}}),
        NOW_MS + INTERVAL_MS,
        False,
    ),
    ("nothing where there was nothing", changed(plan=None), NOW_MS + INTERVAL_MS, False),
    ("numbers, soon", changed(backlog={"pending": 4, **LATER}), NOW_MS, False),
    ("numbers, after a while", changed(backlog={"pending": 4, **LATER}), NOW_MS + INTERVAL_MS, True),
    ("a sentence, soon", with_condition(message="4 are pending"), NOW_MS, False),
    ("a sentence, after a while", with_condition(message="4 are pending"), NOW_MS + INTERVAL_MS, True),
    ("a reason", with_condition(reason="Other"), NOW_MS, True),
    ("a status", with_condition(status="False"), NOW_MS, True),
    ("a generation", with_condition(observedGeneration=4), NOW_MS, True),
    ("replicas", changed(relay={"replicas": 2, "summary": "1/2"}), NOW_MS, True),
    ("another number that scaling would like", changed(relay=LIVE["relay"] | {"desiredReplicas": 3}), NOW_MS, False),
    ("another audit", changed(slo={"verdict": "Met", "auditedAt": "now"}), NOW_MS, True),
    ("an answer to a request", changed(lastHandledReconcileAt="now"), NOW_MS, True),
    (
        "a condition more",
        changed(conditions=[*LIVE["conditions"], {"type": "Stalled", "status": "True"}]),
        NOW_MS,
        True,
    ),
]


@pytest.mark.parametrize(("what", "wanted", "now_ms", "is_news"), CASES, ids=[case[0] for case in CASES])
def test_a_status_is_written_for_news_and_numbers_now_and_then(
    what: str, wanted: dict[str, Any], now_ms: int, is_news: bool
) -> None:
    assert worth_writing(wanted, LIVE, now_ms, INTERVAL_MS) is is_news


def test_a_first_status_is_news() -> None:
    assert worth_writing(changed(), {}, NOW_MS, INTERVAL_MS)


def test_the_document_names_the_object_by_its_uid_and_answers_a_request() -> None:
    asked = document(deleted_ms=None, annotations={"delaytopic.dev/reconcile-requested-at": "noon"})
    looked = seen(asked)

    written = status_document(looked, plan(looked))

    assert written["metadata"] == {"name": "reminders", "namespace": "shop", "uid": UID}
    assert written["status"]["lastHandledReconcileAt"] == "noon"
    assert written["status"]["observedGeneration"] == 1


def test_a_pause_leaves_everything_else_as_it_was() -> None:
    before = {**LIVE, "conditions": [*LIVE["conditions"], {"type": "Reconciling", "status": "True", "reason": "x"}]}
    paused = document(deleted_ms=None, annotations={"delaytopic.dev/pause-reconciliation": "true"}) | {"status": before}
    looked = seen(paused)

    status = status_document(looked, plan(looked))["status"]

    assert {name: status[name] for name in ("relay", "backlog", "scaling")} == {
        name: LIVE[name] for name in ("relay", "backlog", "scaling")
    }
    assert [each["type"] for each in status["conditions"]] == ["Ready", "Paused"]


def test_a_dry_run_tells_what_would_be_done() -> None:
    planned = Plan(actions=[AddFinalizer(), RemoveFinalizer()], conditions=[Condition("Ready", TRUE, "x")])  # type: ignore[arg-type]

    status = status_document(seen(document(deleted_ms=None)), planned, dry_run=True)["status"]

    assert [each["action"] for each in status["plan"]] == ["AddFinalizer", "RemoveFinalizer"]
