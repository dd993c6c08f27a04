"""A RecurringRecord on a real cluster: written, replaced, suspended, and deleted by either policy."""

from __future__ import annotations

from typing import Any

import pytest
from playground.kube.awaiting import await_condition, await_gone, await_object
from playground.kube.kube_client import Object
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import API, Platform

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

DAILY: dict[str, Any] = {"cron": "0 9 * * *", "value": "report"}


class OneRecord:
    """A RecurringRecord of the platform's team, and the source that it is written to."""

    def __init__(self, platform: Platform, team: AppTeam, name: str, **spec: Any) -> None:
        self.platform, self.team, self.name = platform, team, name
        self.path = f"{API}/namespaces/{platform.team}/recurringrecords/{name}"
        self.apply(**spec)

    def apply(self, **spec: Any) -> None:
        whole = {**DAILY, "delayTopic": "recurring", **spec}
        self.platform.apply("RecurringRecord", self.name, whole, namespace=self.platform.team)

    def await_ready(self, status: str = "True", reason: str = "Written") -> Object:
        return await_condition(self.platform.client, self.path, "Ready", status, reason=reason, seconds=40)

    def await_digest_other_than(self, before: Object) -> Object:
        known = before["status"]["written"].get("digest")

        def is_written(found: Object | None) -> bool:
            digest = ((found or {}).get("status") or {}).get("written", {}).get("digest")
            return digest is not None and digest != known

        return await_object(self.platform.client, self.path, is_written, seconds=40) or {}

    def written(self, uid: str) -> list[tuple[bytes | None, bytes | None]]:
        """Action and value of each record that the operator wrote for the object, in order."""
        found = []
        for record in self.team.read(self.team.source):
            headers = dict(record.headers)
            # Relays write occurrences under the same id.
            if headers.get("deliver-id") == uid.encode() and "delay-restated" not in headers:
                found.append((headers.get("deliver-action"), record.value))
        return found


@pytest.fixture(scope="module")
def team(running: Platform, tmp_path_factory: pytest.TempPathFactory) -> AppTeam:
    """A team with a DelayTopic that takes ids."""
    running.apply_topic("recurring", schedule={"ids": "ByHeader"})
    running.await_condition("recurring", "Ready", seconds=60)
    return AppTeam.of(running, "recurring", tmp_path_factory.mktemp("recurring"))


def test_a_record_is_written_replaced_suspended_and_resumed_by_its_object(running: Platform, team: AppTeam) -> None:
    record = OneRecord(running, team, "edited")
    first = record.await_ready()
    record.apply(value="other")
    second = record.await_digest_other_than(first)
    record.apply(value="other", suspend=True)
    record.await_ready("False", "Suspended")
    record.apply(value="other")
    record.await_ready()

    assert record.written(first["metadata"]["uid"]) == [
        (None, b"report"),
        (None, b"other"),
        (b"cancel", None),
        (None, b"other"),
    ]
    assert second["status"]["written"]["partition"] == first["status"]["written"]["partition"]


@pytest.mark.parametrize(("policy", "last"), [("Keep", (None, b"report")), ("Cancel", (b"cancel", None))])
def test_what_waits_when_an_object_is_deleted_is_left_by(
    running: Platform, team: AppTeam, policy: str, last: tuple[bytes | None, bytes | None]
) -> None:
    record = OneRecord(running, team, f"deleted-{policy.lower()}", deletionPolicy=policy)
    uid = record.await_ready()["metadata"]["uid"]

    running.client.delete(record.path)
    await_gone(running.client, record.path, seconds=40)

    assert record.written(uid)[-1] == last


def test_an_object_without_its_delay_topic_says_so_and_hangs_on_nothing(running: Platform, team: AppTeam) -> None:
    record = OneRecord(running, team, "alone", delayTopic="nowhere", deletionPolicy="Cancel")
    record.await_ready("False", "DelayTopicMissing")

    running.client.delete(record.path)

    await_gone(running.client, record.path, seconds=40)
