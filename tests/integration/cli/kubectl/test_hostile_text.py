"""A tenant whose objects carry commands for the terminal of whoever looks at them."""

from __future__ import annotations

import json

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object
from tests.unit.process.test_command_line import HARMLESS, HOSTILE

from delaytopic_cli.kubectl.__main__ import run

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

SINCE = "2026-11-21T14:00:40Z"


def delay_topic(namespace: str) -> Object:
    return {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": "reminders", "namespace": namespace},
        "spec": {"source": {"topic": "shop.delayed"}, "target": {"topic": "shop.reminders"}},
    }


def event(namespace: str, uid: str) -> Object:
    about = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "name": "reminders", "uid": uid}
    return {
        "metadata": {"name": "hostile", "namespace": namespace},
        "involvedObject": {**about, "namespace": namespace},
        "type": "Normal",
        "reason": "Hostile",
        "message": f"note {HOSTILE}",
        "lastTimestamp": SINCE,
    }


@pytest.fixture
def hostile(control_plane: ControlPlane, namespace: str) -> str:
    """The namespace of a DelayTopic whose status and Event are commands for a terminal."""
    client, path = control_plane.client, f"/apis/delaytopic.dev/v1beta1/namespaces/{namespace}/delaytopics"
    uid = client.create(path, delay_topic(namespace))["metadata"]["uid"]
    stalled = {"type": "Stalled", "status": "True", "reason": "Hostile", "message": HOSTILE, "observedGeneration": 1}
    client.merge(f"{path}/reminders/status", {"status": {"conditions": [{**stalled, "lastTransitionTime": SINCE}]}})
    client.create(f"/api/v1/namespaces/{namespace}/events", event(namespace, uid))
    return namespace


@pytest.mark.usefixtures("users_kubectl")
def test_a_page_shows_commands_for_a_terminal_and_sends_it_none(
    hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", "reminders", "-n", hostile]) == 0

    lines = capsys.readouterr().out.split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    (note,) = (line for line in lines if "note" in line)
    assert (f"  {HARMLESS}" in lines, HARMLESS in note) == (True, True)


@pytest.mark.usefixtures("users_kubectl")
def test_json_has_the_text_as_it_is_and_sends_a_terminal_no_command(
    hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", "reminders", "-n", hostile, "-o", "json"]) == 0

    text = capsys.readouterr().out
    assert json.loads(text)["sentence"] == HOSTILE
    assert [line for line in text.split("\n") if not line.isprintable()] == []


@pytest.mark.usefixtures("users_kubectl")
def test_an_error_that_quotes_the_cluster_is_escaped(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", HOSTILE, "-n", hostile]) == 1

    assert capsys.readouterr().err.rstrip("\n").isprintable()
