"""What a RecurringRecord waits for is told by the metrics page of a real operator, and by an Event."""

from __future__ import annotations

import pytest
from playground.kube.awaiting import await_condition, await_gone
from tests.support.operator.platform import API, Platform
from tests.support.relay.process import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def counted(platform: Platform) -> dict[str, float]:
    """The numbers of RecurringRecords of the team, by the labels that follow its namespace."""
    prefix = f'delaytopic_operator_recurring_records{{delaytopic_namespace="{platform.team}",'
    lines = (line for line in platform.operator.get("/metrics").splitlines() if line.startswith(prefix))
    return {labels: float(value) for labels, value in (line.removeprefix(prefix).rsplit(" ", 1) for line in lines)}


def warnings(platform: Platform, name: str) -> list[tuple[str, str]]:
    """Reason and note of each Warning about one of them."""
    listed = platform.client.get(f"/apis/events.k8s.io/v1/namespaces/{platform.team}/events")["items"]
    about = ("RecurringRecord", name)
    found = [each for each in listed if (each["regarding"]["kind"], each["regarding"]["name"]) == about]
    return [(each["reason"], each["note"]) for each in found if each["type"] == "Warning"]


def test_a_record_without_its_delay_topic_is_counted_and_told_until_it_goes(platform: Platform) -> None:
    platform.start()
    path = f"{API}/namespaces/{platform.team}/recurringrecords/alone"
    spec = {"delayTopic": "nowhere", "cron": "0 9 * * *"}
    platform.apply("RecurringRecord", "alone", spec, namespace=platform.team)
    await_condition(platform.client, path, "Ready", "False", reason="DelayTopicMissing", seconds=40)

    # The test may see the status a moment before the operator has the answer to its own write.
    missing = {'reason="DelayTopicMissing",status="False"}': 1.0}
    wait_for(lambda: counted(platform) == missing, lambda: f"{counted(platform)}\n{platform.operator.why()}")
    told = wait_for(lambda: warnings(platform, "alone"), platform.operator.why)
    platform.client.delete(path)
    await_gone(platform.client, path)
    wait_for(lambda: not counted(platform), platform.operator.why)

    note = f"there is no DelayTopic {platform.team}/nowhere: apply it, or name another one"
    assert told == [("DelayTopicMissing", note)]
