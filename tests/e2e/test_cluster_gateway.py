"""Pending records are read, moved and cancelled through the chart's gateway, whose port a real kubelet forwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playground.platform.installation import BOOTSTRAP_SERVERS, INFRASTRUCTURE
from playground.platform.installed_platform import InstalledPlatform
from tests.e2e.support.team import MakeTeam, Team

pytestmark = pytest.mark.e2e

NAME = "reminders"
IDS = ("shown", "moved", "cancelled")
NOT_FOUND = 5
"""The exit code of `get` for an id that nothing pending has."""
ACCOUNTS = {"clerk": "edit", "visitor": "view"}
"""ServiceAccounts of the team, and the cluster's roles that they have in its namespace."""


class Answer(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    output: str
    errors: str


Ask = Callable[..., Answer]


@pytest.fixture(scope="module")
def team(platform: InstalledPlatform, make_team: MakeTeam) -> Iterator[Team]:
    """Records of three ids wait for an hour; a gateway runs until the end of this module."""
    platform.install_gateway()
    team = make_team("desk")
    team.apply(NAME)
    team.await_ready(NAME)
    for account, role in ACCOUNTS.items():
        platform.kubectl("create", "serviceaccount", account, "-n", team.namespace)
        subject = f"--serviceaccount={team.namespace}:{account}"
        platform.kubectl("create", "rolebinding", account, f"--clusterrole={role}", subject, "-n", team.namespace)
    for id in IDS:
        send(platform, team.source(NAME), id)
    team.await_pending(NAME, len(IDS))
    yield team
    platform.install()


def send(platform: InstalledPlatform, topic: str, id: str) -> None:
    """Send a record in the cluster, by the command."""
    options = ("--bootstrap-servers", BOOTSTRAP_SERVERS, "--id", id, "--after", "1h")
    inside = ("exec", "-n", INFRASTRUCTURE, "kafka-0", "--")
    platform.kubectl(*inside, "delaytopic", "send", topic, *options, "--value", f"tea for {id}")


@pytest.fixture
def ask(team: Team, kubeconfig: Path, kubectl_program: Path, tmp_path: Path) -> Ask:
    """Calls `kubectl delaytopic COMMAND` for the team's DelayTopic as an account of the team."""
    path = os.pathsep.join([str(kubectl_program.parent), os.environ["PATH"]])
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}

    def call(account: str, command: str, *arguments: str) -> Answer:
        token = tmp_path / account
        token.write_text(team.platform.kubectl("create", "token", account, "-n", team.namespace))
        options = ("-n", team.namespace, "--token-file", str(token), "-o", "json")
        asked = [sys.executable, "-m", "delaytopic_cli.kubectl", command, NAME, *arguments, *options]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=120, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


def record(answer: Answer) -> dict[str, Any]:
    """Read the record of an answer without errors."""
    assert (answer.code, answer.errors) == (0, ""), answer
    return dict(json.loads(answer.output))


def test_who_may_edit_sees_a_record_whole(ask: Ask) -> None:
    found = record(ask("clerk", "get", "shown"))

    assert (found["id"], found["content"]["value"]) == ("shown", "tea for shown")


def test_who_may_view_sees_when_it_is_due_and_may_write_nothing(ask: Ask, team: Team) -> None:
    missing = f"this needs update on delaytopics/records of delaytopic.dev in namespace {team.namespace}"

    seen, refused = ask("visitor", "get", "shown"), ask("visitor", "cancel", "shown")

    assert (seen.code, json.loads(seen.output)["content"]) == (0, None)
    assert refused == Answer(1, "", f"error: {missing}\n")


def test_a_record_is_moved(ask: Ask) -> None:
    before = record(ask("clerk", "get", "moved"))["dueMs"]

    answered = record(ask("clerk", "reschedule", "moved", "--at", str(before + 3_600_000)))

    assert answered["dueMs"] == before + 3_600_000


def test_a_record_is_cancelled(ask: Ask) -> None:
    assert ask("clerk", "cancel", "cancelled").code == 0

    assert ask("clerk", "get", "cancelled").code == NOT_FOUND
