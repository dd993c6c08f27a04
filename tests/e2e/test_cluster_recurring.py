"""RecurringRecords on a real cluster: changed, suspended, deleted by either policy, and without their DelayTopic."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from playground.kube.awaiting import await_condition, await_gone, await_object
from playground.kube.kube_client import Object
from playground.platform.installed_platform import API
from tests.e2e.support.team import MakeTeam, Team

pytestmark = pytest.mark.e2e


class Records:
    """The RecurringRecords of a team's DelayTopic, which fall due half a day from now: none leaves meanwhile."""

    def __init__(self, team: Team, delay_topic: str) -> None:
        self._team = team
        self._usual = {"delayTopic": delay_topic, "cron": f"0 {(datetime.now(UTC).hour + 12) % 24} * * *"}

    def path(self, name: str) -> str:
        return f"{API}/namespaces/{self._team.namespace}/recurringrecords/{name}"

    def apply(self, name: str, **spec: Any) -> None:
        document = {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "RecurringRecord",
            "metadata": {"name": name, "namespace": self._team.namespace},
            "spec": {**self._usual, **spec},
        }
        self._team.platform.kubectl.apply([document])

    def await_ready(self, name: str, status: str = "True", reason: str = "Written") -> Object:
        return await_condition(self._team.client, self.path(name), "Ready", status, reason=reason, seconds=60)

    def await_replaced(self, name: str, before: Object) -> Object:
        """Wait until another record than that of the status before is written."""
        known = before["status"]["written"]["digest"]

        def holds(found: Object | None) -> bool:
            digest = ((found or {}).get("status") or {}).get("written", {}).get("digest")
            return digest not in (None, known)

        return await_object(self._team.client, self.path(name), holds, seconds=60) or {}

    def delete(self, name: str) -> None:
        self._team.client.delete(self.path(name))
        await_gone(self._team.client, self.path(name), seconds=60)

    def told(self, name: str) -> set[str]:
        """Return the reasons of the Events about one of them."""
        listed = self._team.client.get(f"/apis/events.k8s.io/v1/namespaces/{self._team.namespace}/events")["items"]
        return {each["reason"] for each in listed if _is_about(each["regarding"], name)}


def _is_about(regarding: Object, name: str) -> bool:
    return (regarding["kind"], regarding["name"]) == ("RecurringRecord", name)


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    """One whose DelayTopic takes ids, and goes soon once it is deleted."""
    team = make_team("recurring")
    team.apply("reminders", schedule={"ids": "ByHeader"}, drainTimeout="5s")
    team.await_ready("reminders")
    return team


def test_what_recurs_follows_its_object_and_hangs_on_no_delay_topic_that_is_gone(team: Team) -> None:
    records = Records(team, "reminders")
    records.apply("kept", value="one")
    records.apply("cancelled", value="one", deletionPolicy="Cancel")
    first = records.await_ready("kept")
    records.await_ready("cancelled")

    records.apply("kept", value="other")
    second = records.await_replaced("kept", first)
    records.apply("kept", value="other", suspend=True)
    records.await_ready("kept", "False", "Suspended")
    team.await_pending("reminders", 1)

    records.apply("kept", value="other")
    records.await_ready("kept")
    records.delete("kept")
    records.delete("cancelled")
    # More are there than ever waited before, so that the number of an earlier status is none of these.
    for name in ("third", "fourth"):
        records.apply(name, value="one", deletionPolicy="Cancel")
        records.await_ready(name)
    team.await_pending("reminders", 3)

    team.delete("reminders")
    records.await_ready("third", "False", "DelayTopicMissing")
    records.delete("third")
    team.await_gone("reminders")
    records.delete("fourth")

    assert second["status"]["written"]["partition"] == first["status"]["written"]["partition"]
    assert records.told("kept") == {"Written", "Suspended"}
    assert records.told("third") == {"Written", "DelayTopicMissing"}


def test_the_status_of_what_recurs_tells_the_last_delivery(team: Team) -> None:
    team.apply("often", schedule={"ids": "ByHeader"}, drainTimeout="5s")
    team.await_ready("often")
    records = Records(team, "often")
    records.apply("minutely", cron="* * * * *", value="tick", deletionPolicy="Cancel")

    def is_told(found: Object | None) -> bool:
        return "last" in ((found or {}).get("status") or {})

    found = await_object(team.client, records.path("minutely"), is_told, seconds=150) or {}
    records.delete("minutely")

    status = found["status"]
    # The first look that is answered may be one after the second delivery.
    assert (status["delivered"] >= 1, status["missed"]) == (True, 0)
    assert status["written"]["at"] < status["last"]
