"""A DelayTopic of three lines on a real cluster: it is made, it delivers, and its status tells how it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cluster.awaiting import await_object
from tests.cluster.kube_client import Object
from tests.support.app_team import AppTeam
from tests.support.platform import Platform

from delaytopic_operator.conditions import instant_ms

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

TRUE_WHILE_IT_DELIVERS = {
    "Ready": "Ready",
    "PolicyAccepted": "Accepted",
    "TopicsReady": "AsSpecified",
    "RelayAvailable": "RelaysReady",
    "DeliveringOnTime": "OnTime",
}


def test_records_arrive_at_their_own_time_exactly_once(platform: Platform, tmp_path: Path) -> None:
    platform.start()
    platform.apply_topic("reminders")
    platform.await_condition("reminders", "Ready", seconds=60)
    team = AppTeam.of(platform, "reminders", tmp_path)

    team.send_due_in([4_000, 2_000, 3_000, 0, 6_000, 15_000])
    verdict = team.audited()

    assert (verdict.faults, verdict.delivered, verdict.pending) == ({}, 6, 0)
    assert max(late.late_ms for late in verdict.lateness) < 3_000


def test_the_status_tells_topics_settings_backlog_and_relays(platform: Platform, tmp_path: Path) -> None:
    platform.start()
    platform.apply_topic("reminders")
    platform.await_condition("reminders", "Ready", seconds=60)
    team = AppTeam.of(platform, "reminders", tmp_path)

    due_ms = team.send_due_in([3_600_000, 7_200_000, 120_000])
    topic = _await_pending(platform, "reminders", 3)

    status = topic["status"]
    reasons = {each["type"]: each["reason"] for each in status["conditions"] if each["status"] == "True"}
    assert TRUE_WHILE_IT_DELIVERS.items() <= reasons.items()
    assert {each["observedGeneration"] for each in status["conditions"]} == {topic["metadata"]["generation"]}
    assert status["effective"] == {
        "precision": "1s",
        "maxDelay": "720h",
        "delayClass": platform.class_name,
        "delayClassGeneration": 1,
    }
    assert status["backend"] == {"type": "RedisZset", "id": f"delaytopic.{platform.team}.reminders"}
    parts = {role: (status[role]["ownership"], status[role]["partitions"]) for role in ("source", "target")}
    assert parts == {"source": ("Created", 4), "target": ("Created", 4)}
    assert (status["backlog"]["pending"], status["backlog"]["overdue"]) == (3, 0)
    # Beyond the horizon, a relay knows of due times by the slices that they are in.
    assert due_ms[2] - 120_000 < instant_ms(status["backlog"]["nextDue"]) <= due_ms[2]
    relay = {name: status["relay"][name] for name in ("replicas", "readyReplicas", "desiredReplicas", "summary")}
    assert relay == {"replicas": 1, "readyReplicas": 1, "desiredReplicas": 1, "summary": "1/1"}
    assert status["scaling"]["sentence"]


def _await_pending(platform: Platform, name: str, count: int) -> Object:
    def holds(found: Object | None) -> bool:
        backlog = (found or {}).get("status", {}).get("backlog", {})
        # What a relay is about to put on the shelf is pending, and nobody knows yet when it is due.
        return bool(backlog.get("pending") == count and backlog.get("nextDue"))

    return await_object(platform.client, platform.path(name), holds, seconds=40) or {}
