"""`kubectl delaytopic dead-letters`: a scripted kubectl, and a gateway at the port it forwards."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.gateway.dead_letters import AT_MS, stored
from tests.support.gateway.gateway import REMINDERS, Scene, gateway_over
from tests.support.gateway.rights import Table
from tests.unit.cli.kubectl.scripted_kubectl import NAME, ScriptedKubectl, forwarding

from delaytopic_api import Duration
from delaytopic_cli.kubectl.__main__ import run
from delaytopic_cli.kubectl.dead_letters import listed, sent, table_lines
from delaytopic_gateway.client.dead_letters import Choice, Place
from delaytopic_gateway.client.gateway import GatewayClient, GatewayTopic
from delaytopic_gateway.client.resending import Outcome
from delaytopic_gateway.client.sending import Timing
from delaytopic_gateway.errors import ConflictError

SOURCE = REMINDERS.source
LETTERS = [
    stored("0:1", SOURCE, key=b"customer-4", value=b"tea"),
    stored("0:3", SOURCE, "too-large", key=b"\xff", value=None),
    stored("0:4", SOURCE, key=None),
]


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene(), Table()) as found:
        yield found


@pytest.fixture
def scene(served: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    kubectl = ScriptedKubectl(tmp_path)
    kubectl.write()
    kubectl.write_services(gateway=forwarding(urlsplit(served.url).port or 0))
    scene = served.begin({REMINDERS: []})
    scene.letters.records = {REMINDERS.dead_letter: [*LETTERS]}
    return scene


def called(directory: Path, *arguments: str, caller: str = "editor") -> int:
    token = directory / "token"
    token.write_text(caller)
    return run(["dead-letters", *arguments, "--token-file", str(token)])


def test_the_newest_are_listed_first_with_the_sum_of_each_reason(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, "list", NAME, "--limit", "2") == 0
    page = json.loads(capsys.readouterr().out)
    lines = list(table_lines(page, now_ms=AT_MS))

    assert [line.split()[0] for line in lines] == ["PLACE", "0:4", "0:3", "2"]
    assert [line.split()[2:] for line in lines[1:3]] == [
        ["expired", "1", "-", "0:4", "no", "why"],
        ["too-large", "-", "base64:/w==", "0:3", "no", "why"],
    ]
    assert lines[3] == "2 expired, 1 too-large"


def test_only_letters_of_a_reason_are_listed(scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(tmp_path, "list", NAME, "--reason", "too-large") == 0

    assert [each["place"] for each in json.loads(capsys.readouterr().out)["deadLetters"]] == ["0:3"]


def test_who_may_only_read_sees_where_and_why_and_sends_nothing(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, "list", NAME, "-o", "text", caller="viewer") == 0
    lines = capsys.readouterr().out.splitlines()
    assert called(tmp_path, "resend", NAME, "0:1", caller="viewer") == 1

    needed = "this needs update on delaytopics/records of delaytopic.dev in namespace shop"
    assert [line.split()[-6:] for line in lines[1:4]] == [
        ["expired", "-", "-", "0:4", "no", "-"],
        ["too-large", "-", "-", "0:3", "no", "-"],
        ["expired", "-", "-", "0:1", "no", "-"],
    ]
    assert lines[5] == f"keys, values and headers are left out: {needed}"
    assert (capsys.readouterr().err, scene.letters.asked) == (f"error: {needed}\n", [])


def test_more_letters_than_a_page_has_are_listed_page_by_page(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delaytopic_cli.kubectl.dead_letters.MOST_OF_A_PAGE", 1)
    topic = GatewayTopic(GatewayClient(scene.url, "editor"), "shop", "reminders")

    found = listed(topic, [], 10)

    assert ([each["place"] for each in found["deadLetters"]], found["next"]) == (["0:4", "0:3", "0:1"], None)


@pytest.mark.parametrize(
    ("arguments", "reasons", "timing", "places", "dry_run"),
    [
        (["0:1", "0:4"], set(), None, [Place(0, 1), Place(0, 4)], False),
        (["--all", "--dry-run"], set(), None, None, True),
        (["--all", "--reason", "expired", "--reason", "other"], {"expired", "other"}, None, None, False),
        (["--all", "--after", "5m"], set(), Timing(after=Duration("5m")), None, False),
        (["0:1", "--at", "1795269686270"], set(), Timing(at_ms=1_795_269_686_270), [Place(0, 1)], False),
    ],
)
def test_letters_are_sent_again(
    scene: Scene,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    reasons: set[str],
    timing: Timing | None,
    places: list[Place] | None,
    dry_run: bool,
) -> None:
    assert called(tmp_path, "resend", NAME, *arguments, "-o", "text") == 0

    verb = "would send" if dry_run else "sent"
    assert capsys.readouterr().out == f"{verb} 2 dead letters again, 2 to {SOURCE}\n"
    choice = Choice(frozenset(reasons), timing=timing, source=SOURCE)
    assert scene.letters.asked == [(REMINDERS.dead_letter, SOURCE, choice, places, dry_run)]


def test_letters_that_are_left_out_are_named(scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(Counter({SOURCE: 1}))
    outcome.sent_before.append(Place(0, 4))
    outcome.incomplete[Place(0, 3)] = "its value was too large"
    scene.letters.outcome = outcome

    assert called(tmp_path, "resend", NAME, "0:1", "0:3", "0:4", "-o", "text") == 1

    said = capsys.readouterr()
    assert said.out == f"sent 1 dead letter again, 1 to {SOURCE}\nnot sent: 0:4: it was sent again before\n"
    assert said.err == ("not sent: 0:3: its value was too large\nerror: 1 dead letter cannot be sent again from here\n")


def turn(count: int, *, complete: bool) -> dict[str, Any]:
    """The answer of a gateway to one of several turns."""
    return {"sent": count, "to": {SOURCE: count}, "fromFirst": True, "complete": complete, "dryRun": False}


def test_a_gateway_that_stops_on_the_way_is_asked_again() -> None:
    turns = iter([turn(3, complete=False), turn(2, complete=True)])

    assert sent(lambda document: next(turns), {"all": True}) == turn(5, complete=True)


def test_a_gateway_that_sends_no_more_is_not_asked_for_ever() -> None:
    turns = iter([turn(3, complete=False), turn(0, complete=False)])

    assert sent(lambda document: next(turns), {"all": True}) == turn(3, complete=False)


def test_an_error_on_the_way_says_what_was_sent_before() -> None:
    turns = iter([turn(3, complete=False)])

    def ask(document: dict[str, Any]) -> dict[str, Any]:
        for answer in turns:
            return answer
        raise ConflictError("another one goes on")

    with pytest.raises(ConflictError) as failed:
        sent(ask, {"all": True})

    assert str(failed.value) == (
        "another one goes on; 3 dead letters sent again before; the same command goes on behind them"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name places such as 0:17, or all with --all; not both"),
        (["0:1", "--all"], "name places such as 0:17, or all with --all; not both"),
        (["0:1", "--reason", "expired"], "--reason chooses among all: it goes with --all, and not with places"),
        (["0:1", "--after", "1h", "--at", "1"], "set --after or --at, not both"),
        (["0:1", "--after", "soon"], '"soon" is not a duration'),
        ([f"0:{number}" for number in range(101)], "name up to 100 places at a time, not 101"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert called(tmp_path, "resend", NAME, *arguments) == 2

    assert capsys.readouterr().err.startswith(f"error: {message}")
    assert scene.letters.asked == []
