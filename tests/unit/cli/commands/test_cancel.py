"""`delaytopic cancel` through a gateway behind a real port, whose relays read at once."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.gateway.gateway import REMINDERS, TIMERS, Scene, gateway_over
from tests.support.gateway.rights import Table

from delaytopic_api.records import Headers
from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.new_records import OutgoingRecord, Written
from delaytopic_relay.core.commands import Schedule

HOUR_MS = 3_600_000


class ReadingScene(Scene):
    """A scene where what was cancelled waits no more."""

    def write(self, topic: str, record: OutgoingRecord, partition: int | None) -> Written:
        (name,) = [value for header, value in record.headers if header == "deliver-id"]
        self.waiting[REMINDERS] = [
            (number, each) for number, each in self.waiting[REMINDERS] if (number, each.id) != (partition, name)
        ]
        super().write(topic, record, partition)
        return Written(partition or 0, 1_000, 0)

    def places(self) -> list[tuple[bytes | None, int | None]]:
        return [(dict(record.headers)["deliver-id"], partition) for _, record, partition in self.written]


def waiting(name: str, offset: int = 7) -> Schedule:
    headers: Headers = [("deliver-id", name.encode())]
    return Schedule(time.time_ns() // 1_000_000 + HOUR_MS, offset, b"customer", b"tea", headers, id=name.encode())


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(ReadingScene()) as found:
        yield found


@pytest.fixture
def scene(served: ReadingScene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ReadingScene:
    monkeypatch.setenv("DELAYTOPIC_GATEWAY", served.url)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    served.begin({REMINDERS: [(2, waiting("a")), (0, waiting("b")), (3, waiting("b"))], TIMERS: []})
    return served


@pytest.mark.parametrize("topic", ["shop/reminders", "reminders", "shop.reminders.delayed"])
def test_an_id_is_cancelled_where_the_gateway_finds_it(
    scene: ReadingScene, capsys: pytest.CaptureFixture[str], topic: str
) -> None:
    assert run(["cancel", topic, "a", "-o", "text"]) == 0

    assert capsys.readouterr().out == "a: cancelled\n"
    assert scene.places() == [(b"a", 2)]


def test_ids_come_from_the_standard_input_and_the_answer_is_json(
    scene: ReadingScene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("b\r\n\nx\na\n"))

    assert run(["cancel", "reminders"]) == 7

    assert json.loads(capsys.readouterr().out) == {
        "ids": [
            {"id": "b", "outcome": "Cancelled", "partitions": [0, 3]},
            {"id": "x", "outcome": "NotPending", "partitions": []},
            {"id": "a", "outcome": "Cancelled", "partitions": [2]},
        ]
    }
    assert scene.places() == [(b"b", 0), (b"b", 3), (b"a", 2)]


def test_while_relays_are_behind_an_unseen_id_is_unknown(
    scene: ReadingScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.ingest_lag = 3

    assert run(["cancel", "reminders", "x", "-o", "text"]) == 8

    assert capsys.readouterr().out == (
        "x: not pending so far; relays have records still to read, so try again in a moment\n"
    )
    assert scene.written == []


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["nothing", "a"], 2, "nothing is no DelayTopic here; there are: shop/reminders, shop/timers"),
        (["reminders", "é" * 129], 2, "an id has 1 to 256 bytes, not 258: "),
        (["reminders", "a", "--gateway", "localhost:1"], 5, "no gateway answers at http://localhost:1: "),
        (["reminders", "a", "-b", "localhost:1"], 4, "no Kafka broker answers at localhost:1"),
    ],
)
def test_what_cannot_be_done_is_one_line_with_the_reason(
    scene: ReadingScene,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    exit_code: int,
    message: str,
) -> None:
    monkeypatch.setattr("delaytopic_gateway.client.kafka_clients.METADATA_TIMEOUT_SECONDS", 0.2)

    assert run(["cancel", *arguments]) == exit_code

    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert (error.count("\n"), scene.written) == (1, [])


def test_who_may_only_read_cancels_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("viewer")
    with gateway_over(Scene(), Table()) as guarded:
        guarded.begin({REMINDERS: [(2, waiting("a"))]})
        code = run(["cancel", "reminders", "a", "--gateway", guarded.url, "--token-file", str(token)])

    assert (code, guarded.written) == (1, [])
    assert "this needs update on delaytopics/records of delaytopic.dev in namespace shop" in capsys.readouterr().err
