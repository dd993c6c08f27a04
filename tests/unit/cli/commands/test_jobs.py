"""`delaytopic jobs` against a gateway that keeps its jobs in memory, behind a real port."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.gateway.gateway import NOW_MS
from tests.support.gateway.jobs import Desk, World, gateway_with_jobs
from tests.support.gateway.rights import Table

from delaytopic_cli.__main__ import run
from delaytopic_cli.commands import jobs as commands
from delaytopic_cli.commands.jobs import followed
from delaytopic_gateway.errors import GatewayUnreachableError
from delaytopic_gateway.reach.rest import GatewayClient, GatewayTopic
from delaytopic_process.waiting import wait_until

HOUR_MS = 3_600_000


def world_of_three() -> World:
    world = World()
    for partition, name in ((0, b"a-1"), (1, b"a-2"), (1, b"b-1")):
        world.add(partition, NOW_MS + HOUR_MS, name)
    return world


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(commands, "LOOK_S", 0.01)
    with gateway_with_jobs(world_of_three()) as found:
        monkeypatch.setenv("DELAYTOPIC_GATEWAY", found.url)
        yield found


def shown(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_job_is_started_followed_to_its_end_and_shown(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--id-prefix", "a-", "--by", "1h30m", "--id", "later", "--yes", "--follow"]
    assert run(["jobs", "start", "reminders", "move", *options]) == 0

    said = capsys.readouterr()
    ended = json.loads(said.out)
    assert (ended["id"], ended["state"], ended["matched"], ended["written"]) == ("later", "Done", 2, 2)
    assert ended["selector"]["idPrefix"] == "a-"
    assert said.err.splitlines()[-1] == "Done: 2 of 2, 2 written, 0 skipped"
    run(["jobs", "list", "shop/reminders"])
    assert shown(capsys) == [ended]
    run(["jobs", "show", "shop.reminders.delayed", "later", "-o", "yaml"])
    assert yaml.safe_load(capsys.readouterr().out) == ended


def test_a_dry_run_counts_and_starts_nothing(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    within = ["--due-from", str(NOW_MS), "--due-before", str(NOW_MS + 2 * HOUR_MS), "--partition", "1"]
    start = ["jobs", "start", "reminders", "cancel", "--key-prefix", "b", *within, "--dry-run"]
    assert run([*start, "-o", "text"]) == 0
    assert run(start) == 0

    assert capsys.readouterr().out.splitlines() == ["1 record matches now", '{"matched": 1, "complete": true}']
    assert desk.log.written == {}


@pytest.mark.parametrize(("answer", "exit_code", "states"), [("y", 0, ["Done"]), ("n", 1, []), ("", 130, [])])
def test_it_counts_and_asks_before_it_starts(
    desk: Desk,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    exit_code: int,
    states: list[str],
) -> None:
    asked = answers(monkeypatch, answer)

    assert run(["jobs", "start", "reminders", "release", "--all", "--follow"]) == exit_code

    assert asked == ["Release them?"]
    assert capsys.readouterr().err.splitlines()[0] == "3 records match now"
    assert [job.state for job in desk.log.written.values()] == states


def answers(monkeypatch: pytest.MonkeyPatch, answer: str) -> list[str]:
    """Let somebody at a terminal answer; the questions."""
    asked: list[str] = []

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        if not answer:
            raise KeyboardInterrupt
        return answer == "y"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", confirm)
    return asked


def test_a_job_is_stopped(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.world.read = {0: 0, 1: 0}
    run(["jobs", "start", "reminders", "cancel", "--all", "--id", "waits", "--yes"])
    assert wait_until(lambda: any(job.message for job in desk.log.written.values()), timeout_seconds=10)
    capsys.readouterr()

    assert run(["jobs", "stop", "reminders", "waits", "-o", "text"]) == 0
    assert capsys.readouterr().out.startswith("waits  Cancelled: counting; stopped\n")
    assert run(["jobs", "follow", "reminders", "waits", "-o", "text"]) == 1
    assert run(["jobs", "stop", "reminders", "waits"]) == 5
    assert capsys.readouterr().err.endswith("error: the job waits is Cancelled already\n")


def test_asked_for_twice_by_one_id_it_is_started_once(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    start = ["jobs", "start", "reminders", "--id", "one", "--yes", "--follow"]

    codes = [run([*start, "cancel", "--all"]), run([*start, "cancel", "--all"]), run([*start, "release", "--all"])]

    assert (codes, len(desk.log.written)) == ([0, 0, 5], 1)
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: there is a job one that asks for something else; choose another id"
    )


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["start", "reminders", "cancel", "--yes"], 2, "say which records: by --due-from, "),
        (["start", "reminders", "cancel", "--all"], 2, "nobody is there to be asked whether it is meant so: "),
        (["start", "reminders", "cancel", "--due-from", "soon"], 2, '--due-from: "soon" is not a time; '),
        (["start", "reminders", "cancel", "--partition", "7", "--yes"], 5, "shop.reminders.delayed has 2 partitions, "),
        (["show", "reminders", "none"], 5, "shop/reminders has no job none; "),
        (["list", "nothing"], 2, "nothing is no DelayTopic here; there are: shop/reminders"),
        (["list", "reminders", "--gateway", "localhost:1"], 5, "no gateway answers at http://localhost:1: "),
    ],
)
def test_what_cannot_be_done_is_one_line_with_the_reason(
    desk: Desk, capsys: pytest.CaptureFixture[str], arguments: list[str], exit_code: int, message: str
) -> None:
    assert run(["jobs", *arguments]) == exit_code

    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert (error.count("\n"), desk.log.written) == (1, {})


def test_who_may_only_read_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("viewer")
    monkeypatch.setenv("DELAYTOPIC_TOKEN_FILE", str(token))
    with gateway_with_jobs(world_of_three(), Table()) as desk:
        monkeypatch.setenv("DELAYTOPIC_GATEWAY", desk.url)
        codes = [run(["jobs", "list", "reminders"]), run(["jobs", "start", "reminders", "cancel", "--all", "--yes"])]

    assert (codes, desk.log.written) == ([0, 1], {})
    assert "this needs update on delaytopics/records" in capsys.readouterr().err


def test_a_gateway_that_is_started_anew_is_waited_for(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    topic = GatewayTopic(GatewayClient(desk.url), "shop", "reminders")
    desk.world.read = {0: 0, 1: 0}
    topic.start_job({"id": "one", "action": "Cancel", "selector": {}})
    reached, paused = list[GatewayTopic](), list[float]()

    def reach() -> AbstractContextManager[GatewayTopic]:
        reached.append(_Lost(topic.client, topic.namespace, topic.name) if not reached else topic)
        if len(reached) == 2:
            desk.world.read = {}
            raise GatewayUnreachableError("no gateway answers")
        return nullcontext(reached[-1])

    ended = followed(reach, "one", pause=paused.append)

    assert (ended["state"], len(reached)) == ("Done", 3)
    assert [line for line in capsys.readouterr().err.splitlines() if "asking again" in line] == [
        "the line is dead; asking again",
        "no gateway answers; asking again",
    ]


class _Lost(GatewayTopic):
    """A DelayTopic whose gateway answers once."""

    asked = 0

    def job(self, name: str) -> dict[str, Any]:
        type(self).asked += 1
        if self.asked > 1:
            raise GatewayUnreachableError("the line is dead")
        return super().job(name)
