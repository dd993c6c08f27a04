"""What kubectl shows of a DelayTopic: fields explained, a line that tells how it stands, events that say why."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.app_team import AppTeam
from tests.support.platform import Platform
from tests.support.relay_process import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def test_every_field_of_the_spec_is_explained(running: Platform) -> None:
    tree = running.plane.kubectl("explain", "delaytopic.spec", "--recursive")
    lines = [line for line in tree.partition("FIELDS:")[2].splitlines() if line.strip()]
    top = [line.split()[0] for line in lines if line[:2] == "  " and line[2:3] != " "]

    explained = running.plane.kubectl("explain", "delaytopic.spec.autoscaling.scaleToZero")

    assert {"source", "target", "schedule", "precision", "backend", "autoscaling", "suspend"} <= set(top)
    assert len(lines) > 60
    meaning = "WhenNothingPending: no relay runs while nothing is pending and nothing arrives."
    assert meaning in " ".join(explained.split())


def test_a_line_of_kubectl_get_tells_how_it_stands(running: Platform, tmp_path: Path) -> None:
    running.apply_topic("told")
    running.await_condition("told", "Ready", seconds=60)
    AppTeam.of(running, "told", tmp_path).send_due_in([3_600_000, 7_200_000])

    def shown() -> list[str]:
        lines = running.plane.kubectl("get", "dtopic", "told", "-n", running.team).splitlines()
        return lines[1].split() if len(lines[1].split()) > 7 and lines[1].split()[3] == "2" else []

    columns = running.plane.kubectl("get", "dtopic", "told", "-n", running.team).splitlines()[0].split()
    line = wait_for(shown, running.operator.why)
    wide = running.plane.kubectl("get", "dtopic", "told", "-n", running.team, "-o", "wide").splitlines()[1]

    assert columns == ["NAME", "READY", "REASON", "PENDING", "OVERDUE", "NEXT-DUE", "RELAYS", "P99", "AGE"]
    assert line[:5] == ["told", "True", "Ready", "2", "0"]
    assert line[6] == "1/1"
    assert "records are taken in and delivered at their own time" in wide


def test_events_tell_what_was_made_and_no_more(running: Platform) -> None:
    running.apply_topic("eventful")
    running.await_condition("eventful", "Ready", seconds=60)

    def events() -> list[str]:
        path = f"/apis/events.k8s.io/v1/namespaces/{running.team}/events"
        found = running.client.get(path)["items"]
        own = [each for each in found if each["regarding"]["name"] == "eventful"]
        return sorted(f"{each['type']} {each['reason']}" for each in own)

    wait_for(lambda: "Normal Ready" in events(), running.operator.why)

    assert events() == ["Normal Ready", *["Normal TopicCreated"] * 3]
