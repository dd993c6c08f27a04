"""Tests of what a DelayTopic says about something that could not be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.operator.scenes import CONFIG, NO_FLEET, NOW_MS, document
from tests.unit.operator.decide.test_planner import living, look

from delaytopic_api.documents import ConditionType
from delaytopic_operator.decide.plan import Apply, Plan
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.errors import ApiServerUnavailable, ObjectRejected
from delaytopic_operator.execute.executor import Outcome
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model.conditions import FALSE, TRUE, Condition, instant, summed_up
from delaytopic_operator.model.transitions import NORMAL, Event
from delaytopic_operator.observe.audit_verdict import NO_AUDIT, last_verdict
from delaytopic_operator.observe.observation import Problem
from delaytopic_operator.report.events import EventRecorder
from delaytopic_operator.report.status import StatusWriter, status_document, with_failure

TYPES = (ConditionType.POLICY_ACCEPTED, ConditionType.TOPICS_READY, ConditionType.BACKEND_READY)
WELL = Plan(conditions=[Condition(each, TRUE, "Fine") for each in (*TYPES, ConditionType.RELAY_AVAILABLE)])
REJECTED = ObjectRejected("the field is wrong")


class AwayKube(KubeApi):
    """An API server that does not answer."""

    def __init__(self) -> None: ...

    def apply_status(self, document: dict[str, Any], manager: str, force: bool = True) -> dict[str, Any]:
        raise ApiServerUnavailable("away")


class CountingKube(KubeApi):
    """An API server that keeps each status that is written."""

    def __init__(self) -> None:
        self.pending: list[int] = []

    def apply_status(self, document: dict[str, Any], manager: str, force: bool = True) -> dict[str, Any]:
        self.pending.append(document["status"]["backlog"]["pending"])
        return document


class WritingKube(KubeApi):
    """An API server that has the status that was written last."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}
        self.writes = 0

    def apply_status(self, document: dict[str, Any], manager: str, force: bool = True) -> dict[str, Any]:
        self.status, self.writes = document["status"], self.writes + 1
        return document


class Told(EventRecorder):
    """Keeps what is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, document: Mapping[str, Any], events: Iterable[Event]) -> None:
        self.events += events


def failing_at(kind: str) -> Plan:
    return with_failure(WELL, Outcome(failure=REJECTED, failed=Apply({"kind": kind, "metadata": {"name": "one"}})))


def conditions(found: Plan) -> dict[str, tuple[str, str]]:
    return {str(each.type): (str(each.status), each.reason) for each in summed_up(found.conditions, found.progress)}


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "NetworkPolicy"])
def test_relays_that_cannot_be_made_stall_it(kind: str) -> None:
    found = conditions(failing_at(kind))

    assert (found["Ready"][0], found["Stalled"], found["RelayAvailable"]) == (
        str(FALSE),
        (str(TRUE), REJECTED.reason),
        (str(FALSE), REJECTED.reason),
    )


def test_what_was_done_is_told_though_the_status_cannot_be_written() -> None:
    kube, told = AwayKube(), Told()
    done = Event(NORMAL, "RelayGone", "relay-2 is gone")
    found = look()

    with pytest.raises(ApiServerUnavailable):
        StatusWriter(kube, told, CONFIG).report(found, plan(found), Outcome([done]), dry_run=False)

    assert told.events == [done]


def pending_written(found: dict[str, Any]) -> list[int]:
    """Return the counts that are written when five are left, and the status has counted nine a moment ago."""
    kube = CountingKube()
    first = look(found, pending=9)
    found["status"] = {**status_document(first, plan(first))["status"]}
    found["status"]["backlog"]["asOf"] = instant(NOW_MS - 15_000)
    now = look(found, pending=5)
    StatusWriter(kube, Told(), CONFIG).report(now, plan(now), Outcome(), dry_run=False)
    return kube.pending


def test_counters_are_written_rarely_and_of_what_drains_at_each_look() -> None:
    assert (pending_written(living()), pending_written(document())) == ([], [5])


def test_it_is_no_verdict_that_a_later_pass_would_keep() -> None:
    status: dict[str, Any] = {"conditions": [{"type": "SLOMet", "status": "Unknown", "reason": NO_AUDIT}]}

    assert last_verdict(status, 0, None) is None


def test_numbers_that_have_no_time_are_written_as_rarely() -> None:
    """With Kafka or relays away there may be no backlog to tell when it was counted, and the status has no time."""
    kube, looks = WritingKube(), 40
    writer, found = StatusWriter(kube, Told(), CONFIG), living()
    for number in range(looks):
        found["status"] = kube.status
        now = replace(look(found, topics=None, fleet=NO_FLEET), now_ms=NOW_MS + number * 15_000)
        problem = Problem("KafkaUnreachable", f"Kafka did not answer {number} questions", passing=True)
        now = replace(now, topics_problem=problem)
        writer.report(now, plan(now), Outcome(), dry_run=False)

    assert kube.writes == 2, f"{looks} looks, 15 s apart: at once, and after five minutes"
