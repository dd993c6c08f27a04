"""The gateway, or the relays and the Kafka, that a command of `delaytopic` means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, TIMERS, Scene, gateway_over
from tests.support.gateway.rights import Table

from delaytopic_cli.__main__ import run
from delaytopic_relay.core.commands import Schedule

HOUR_MS = 3_600_000
TEA = Schedule(
    NOW_MS + HOUR_MS, 7, b"customer-4", b"tea\x1b[2J", [("own", b"\xff"), ("deliver-id", b"order/17")], id=b"order/17"
)


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene()) as found:
        yield found


@pytest.fixture
def scene(served: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("DELAYTOPIC_GATEWAY", served.url)
    return served.begin({REMINDERS: [(2, TEA)], TIMERS: []})


@pytest.mark.parametrize("topic", ["shop/reminders", "reminders", "shop.reminders.delayed", "shop.reminders.dlq"])
def test_a_delay_topic_is_meant_by_its_names_and_its_topics(
    scene: Scene, capsys: pytest.CaptureFixture[str], topic: str
) -> None:
    scene.waiting = {REMINDERS: [(2, TEA)], replace(TIMERS, dead_letter="timers.dlq"): []}

    assert run(["get", topic, "order/17"]) == 0

    assert json.loads(capsys.readouterr().out)["id"] == "order/17"


def test_the_command_line_outranks_a_gateway_of_the_environment(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["get", "reminders", "order/17", "--relay", "localhost:1"]) == 5

    assert "http://localhost:1 does not answer" in capsys.readouterr().err


def test_a_gateway_of_the_command_line_outranks_a_kafka_of_the_environment(
    scene: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELAYTOPIC_BOOTSTRAP_SERVERS", "localhost:1")

    assert run(["dead-letters", "list", "reminders", "--gateway", scene.url]) == 0


def test_a_topic_of_several_delay_topics_is_refused_with_their_names(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dead-letters", "list", "shop.reminders.dlq"]) == 2

    assert capsys.readouterr().err == (
        "error: shop.reminders.dlq is the name of several DelayTopics here: shop/reminders, shop/timers\n"
    )


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["get", "nothing", "a"], 2, "nothing is no DelayTopic here; there are: shop/reminders, shop/timers"),
        (["reschedule", "reminders", "order/17", "--after", "25h"], 5, "the time asked for"),
        (["get", "reminders", "a", "--gateway", "localhost:1"], 5, "no gateway answers at http://localhost:1: "),
        (
            ["get", "reminders", "a", "--gateway", "localhost:1", "--relay", "b:1"],
            2,
            "a gateway asks relays and Kafka ",
        ),
        (["get", "a", "b", "--relay", "localhost:1"], 5, "no relay told what is pending: http://localhost:1 does not "),
        (["reschedule", "a", "b", "--now", "-b", "localhost:1"], 2, "no relay: name its pages with --relay URL, or a "),
        (
            ["cancel", "a", "b", "--relay", "localhost:1"],
            2,
            "no Kafka: name one with --bootstrap-servers, or a gateway",
        ),
        (["get", "a", "b", "--relay", "b:1", "--token-file", __file__], 2, "--token-file is shown to a gateway: "),
        (["cancel", "a", "b", "-X", "a=b"], 2, "-X goes with a Kafka: name it with --bootstrap-servers"),
        (["dead-letters", "list", "a", "--dead-letter", "b"], 2, "--dead-letter goes with a Kafka: name it with "),
    ],
)
def test_what_cannot_be_done_is_one_line_with_the_reason(
    scene: Scene, capsys: pytest.CaptureFixture[str], arguments: list[str], exit_code: int, message: str
) -> None:
    assert run(arguments) == exit_code

    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert (error.count("\n"), scene.written) == (1, [])


def test_an_address_that_is_no_gateways_is_told(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "reminders", "a", "--gateway", f"{scene.url}/console.css?"]) == 5

    assert "no gateway's address" in capsys.readouterr().err


def test_without_a_gateway_it_is_said_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    monkeypatch.delenv("DELAYTOPIC_GATEWAY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert run(["get", "reminders", "a"]) == 2

    assert "no gateway: name one with --gateway, or start one with: delaytopic local" in capsys.readouterr().err


@pytest.fixture(scope="module")
def guarded() -> Iterator[Scene]:
    with gateway_over(Scene(), Table()) as found:
        yield found.begin({REMINDERS: [(2, TEA)]})


def test_a_token_shows_a_gateway_of_a_cluster_who_asks(
    guarded: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("editor\n")
    monkeypatch.setenv("DELAYTOPIC_TOKEN_FILE", str(file))

    assert run(["get", "reminders", "order/17", "--gateway", guarded.url]) == 0

    assert json.loads(capsys.readouterr().out)["content"]["key"] == "customer-4"


@pytest.mark.parametrize(
    ("command", "token", "message"),
    [
        (["get"], None, "who is it?"),
        (["get"], b"nobody", "who is it?"),
        (["reschedule", "--now"], b"viewer", "this needs update on delaytopics/records of delaytopic.dev in namespace"),
        (["get"], b"", "--token-file: "),
        (["get"], b"editor\nX-Other: 1", "--token-file: "),
        (["get"], "Schlüssel".encode(), "--token-file: "),
    ],
)
def test_who_is_not_let_in_gets_one_line_with_the_reason(
    guarded: Scene,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: list[str],
    token: bytes | None,
    message: str,
) -> None:
    options = []
    if token is not None:
        file = tmp_path / "token"
        file.write_bytes(token)
        options = ["--token-file", str(file)]

    assert run([*command, "reminders", "order/17", "--gateway", guarded.url, *options]) != 0

    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert (error.count("\n"), guarded.written) == (1, [])
