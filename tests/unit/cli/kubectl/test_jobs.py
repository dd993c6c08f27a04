"""`kubectl delaytopic jobs`: a scripted kubectl, and a gateway with jobs at the port it forwards."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.gateway.gateway import NOW_MS
from tests.support.gateway.jobs import Desk, World, gateway_with_jobs
from tests.support.gateway.rights import Table
from tests.unit.cli.kubectl.scripted_kubectl import NAME, ScriptedKubectl, forwarding

from delaytopic_cli.commands import jobs
from delaytopic_cli.kubectl.__main__ import run

MISSING = "this needs update on delaytopics/records of delaytopic.dev in namespace shop"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(jobs, "LOOK_S", 0.01)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    world = World()
    for number in range(3):
        world.add(number % 2, NOW_MS + 3_600_000, b"a-%d" % number)
    kubectl = ScriptedKubectl(tmp_path)
    with gateway_with_jobs(world, Table()) as found:
        kubectl.write()
        kubectl.write_services(gateway=forwarding(urlsplit(found.url).port or 0))
        yield found


def called(directory: Path, command: str, *arguments: str, caller: str = "editor") -> int:
    token = directory / "token"
    token.write_text(caller)
    return run(["jobs", command, NAME, *arguments, "--token-file", str(token)])


def test_a_job_is_counted_carried_out_and_listed(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ["cancel", "--id-prefix", "a-", "--id", "one"]
    codes = [called(tmp_path, "start", *start, *more) for more in (["--dry-run"], ["--yes", "--follow"])]
    codes.append(called(tmp_path, "list", "-o", "text", caller="viewer"))

    count, ended, _, line = capsys.readouterr().out.splitlines()
    assert codes == [0, 0, 0]
    assert json.loads(count) == {"matched": 3, "complete": True}
    assert [json.loads(ended)[name] for name in ("state", "written", "createdBy")] == ["Done", 3, "editor"]
    assert line.split()[:6] == ["one", "Cancel", "Done", "3", "3", "0"]


def test_who_may_only_read_starts_and_stops_nothing(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = (["start", "cancel", "--all", "--yes", "--id", "one"], ["stop", "one"])

    codes = [called(tmp_path, *command, caller="viewer") for command in commands]

    assert (codes, desk.log.written) == ([1, 1], {})
    assert capsys.readouterr().err.splitlines() == [f"error: {MISSING}"] * 2
