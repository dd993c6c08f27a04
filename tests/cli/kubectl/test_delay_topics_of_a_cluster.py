"""`kubectl delaytopic` with a living DelayTopic of a real cluster."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.app_team import AppTeam
from tests.support.platform import Platform

from delaytopic_cli.kubectl.__main__ import run
from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.options import delay_topic
from delaytopic_cli.kubectl.relay_pods import ask_pods, running_pods

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.usefixtures("users_kubectl")]


@pytest.fixture(scope="module")
def reminders(running: Platform) -> str:
    """A DelayTopic that works."""
    running.apply_topic("reminders", precision="200ms")
    running.await_condition("reminders", "Ready", seconds=60)
    return "reminders"


def said(platform: Platform, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    code = run([*arguments, "-n", platform.team])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_a_page_begins_with_the_verdict_and_names_the_topics(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, page = said(running, capsys, "status", reminders)

    assert code == 0
    assert page.startswith(f"{running.team}/reminders: ")
    assert f"{running.team}.reminders.delayed.dlq" in page
    assert "1 of 1 relay ready" in page
    assert "TopicCreated" in page


def test_the_table_and_the_json_tell_of_all(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, table = said(running, capsys, "status")
    _, text = said(running, capsys, "status", "-o", "json")

    assert code == 0
    assert table.splitlines()[0].split()[:2] == ["NAME", "VERDICT"]
    assert reminders in [each["name"] for each in json.loads(text)]


def test_why_scale_reads_out_the_operators_decision(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(running, capsys, "why-scale", reminders)

    assert code == 0
    assert "AutoscalingActive: " in text
    assert "Sizes for 4 partitions: 1, 2, 4." in text


def test_a_paused_delay_topic_says_so_until_it_is_resumed(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paused = said(running, capsys, "pause", reminders)
    running.await_condition(reminders, "Paused")
    page = said(running, capsys, "status", reminders)
    again = said(running, capsys, "pause", reminders)
    resumed = said(running, capsys, "resume", reminders)
    looked = said(running, capsys, "reconcile", reminders, "--wait")

    name = f"{running.team}/{reminders}"
    assert paused == (0, f"{name} is paused: the operator changes nothing; relays run on, and deliver\n")
    assert page[1].startswith(f"{name}: Paused\n")
    assert again == (0, f"{name} is paused already\n")
    assert resumed == (0, f"{name} goes on: the operator looks after it again\n")
    assert looked[0] == 0
    assert "Paused" not in looked[1]


def test_a_drain_delivers_what_is_pending_before_the_object_goes(
    running: Platform, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a DelayTopic that would retain its backlog, and records that wait
    running.apply_topic("drained", precision="200ms", deletionPolicy="Retain")
    running.await_condition("drained", "Ready", seconds=60)
    team = AppTeam.of(running, "drained", tmp_path)
    team.send_due_in([3_000, 5_000, 7_000])

    # When it is drained
    code, text = said(running, capsys, "drain", "drained", "--wait")

    # Then all of them arrive, and the object is gone
    assert code == 0
    assert text.startswith(f"{running.team}/drained drains: ")
    assert text.endswith(f"{running.team}/drained is gone\n")
    assert len(team.delivered()) == 3


def test_a_name_that_is_not_there_is_one_sentence(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(running, capsys, "status", "nobody")

    assert code == 1
    assert text == (
        f"error: there is no DelayTopic nobody in the namespace {running.team}; kubectl delaytopic status -A\n"
    )


def test_kubectl_finds_the_plugin(running: Platform, reminders: str, tmp_path: Path) -> None:
    script = tmp_path / "kubectl-delaytopic"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m delaytopic_cli.kubectl "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    result = subprocess.run(
        ["kubectl", "delaytopic", "status", "-n", running.team],
        capture_output=True, text=True, check=True, env=environment, timeout=60,
    )  # fmt: skip

    assert reminders in result.stdout


def test_relays_are_found_and_asked_through_the_api_server(running: Platform, reminders: str) -> None:
    kubectl = Kubectl.of(namespace=running.team)

    pods = running_pods(kubectl, delay_topic(kubectl, reminders))
    (answer,) = ask_pods(kubectl, pods, "status", {})

    # The node of these tests is this machine, and the API server lets nobody through to loopback addresses.
    assert [namespace for namespace, _ in pods] == [running.namespace]
    assert answer.problem == "the cluster says: address not allowed"
