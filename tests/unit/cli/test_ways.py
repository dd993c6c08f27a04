"""The commands on records by every way: a gateway, its service in the process with relays and Kafka, and kubectl."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from tests.support.gateway.dead_letters import AT_MS, stored
from tests.support.gateway.gateway import REMINDERS, Scene, gateway_over
from tests.support.gateway.rights import Table
from tests.unit.cli.kubectl.scripted_kubectl import NAME, ScriptedKubectl, forwarding
from tests.unit.process.test_command_line import HARMLESS, HOSTILE

from delaytopic_api import Duration
from delaytopic_api.relay import PendingList
from delaytopic_cli.__main__ import run as run_delaytopic
from delaytopic_cli.kubectl.__main__ import run as run_kubectl
from delaytopic_gateway.client.dead_letters import Choice, Outcome, Place
from delaytopic_gateway.client.new_records import Timing
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.telemetry.server import Health, PageServer

HOUR_MS = 3_600_000
LONG = replace(REMINDERS, dead_letter=f"{REMINDERS.source}.dlq", max_delay_ms=10**12)
SOURCE = LONG.source
DUE_MS = time.time_ns() // 1_000_000 + HOUR_MS
TEA = Schedule(DUE_MS, 7, b"customer-4", b"tea\x1b[2J", [("own", b"\xff"), ("deliver-id", b"order/17")], id=b"order/17")
NAMELESS = Schedule(DUE_MS + HOUR_MS, 9, b"\xff", b"more", [])
LETTERS = [
    stored("0:1", SOURCE, key=b"customer-4", value=b"tea", headers=[("own", b"1")]),
    stored("0:3", SOURCE, "too-large", key=b"\xff", value=None),
    stored("0:4", SOURCE, key=None),
]


class Said(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@dataclass
class Way:
    """Runs the commands on one DelayTopic, by one way."""

    name: str
    scene: Scene
    relay_url: str
    token: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, command: str, *arguments: str) -> Said:
        *group, verb = command.split()
        words = [*group, verb, NAME if self.name == "kubectl" else SOURCE, *arguments, *self._options(command)]
        code = (run_kubectl if self.name == "kubectl" else run_delaytopic)(words)
        return Said(code, *self.capsys.readouterr())

    def _options(self, command: str) -> Sequence[str]:
        if self.name == "direct":
            relay, kafka = ["--relay", self.relay_url], ["-b", "kafka:9092"]
            return {"pending": relay, "get": relay, "reschedule": [*relay, *kafka]}.get(command, kafka)
        shown = ["--token-file", str(self.token)]
        return shown if self.name == "kubectl" else ["--gateway", self.scene.url, *shown]


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene(), Table()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    scene = served.begin({LONG: [(2, TEA), (0, NAMELESS)]})
    scene.letters.records = {LONG.dead_letter: [*LETTERS]}
    return scene


@pytest.fixture(scope="module")
def relay_url(served: Scene) -> Iterator[str]:
    """The pages of a relay with what waits in the scene."""
    healthy = Health(True, "running")

    def pending(query: str) -> PendingList:
        document = served.answer("shop/reminders", query).document
        assert document is not None
        return document

    server = PageServer(
        "127.0.0.1",
        0,
        health=lambda: healthy,
        readiness=lambda: healthy,
        metrics=bytes,
        status=lambda: pytest.fail("nobody asks for it"),
        pending=pending,
    )
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


@pytest.fixture(params=["gateway", "direct", "kubectl"])
def way(
    request: pytest.FixtureRequest,
    scene: Scene,
    relay_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Way:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("delaytopic_gateway.kafka.cluster.KafkaCluster", lambda settings: scene)
    kubectl = ScriptedKubectl(tmp_path)
    kubectl.write()
    kubectl.write_services(gateway=forwarding(urlsplit(scene.url).port or 0))
    token = tmp_path / "token"
    token.write_text("editor")
    return Way(request.param, scene, relay_url, token, capsys)


def test_what_waits_is_listed_in_the_order_of_delivery(way: Way) -> None:
    said = way("pending")

    assert (said.code, said.err) == (0, "")
    page = said.document
    records = page.pop("records")
    assert page == {
        "delayTopic": "shop/reminders",
        "source": SOURCE,
        "pending": 2,
        "overdue": 0,
        "nextDueMs": None,
        "ingestLag": 0,
        "dueHistogram": [],
        "next": None,
        "complete": True,
        "notes": [],
    }
    assert [(each["id"], each["key"], each["keyBase64"], each["content"]) for each in records] == [
        ("order/17", "customer-4", None, None),
        (None, None, "/w==", None),
    ]


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (["--due-before", str(DUE_MS + 1)], [7]),
        (["--due-before", "3h"], [7, 9]),
        (["--partition", "0"], [9]),
        (["--limit", "1"], [7]),
        (["--limit", "0"], []),
    ],
)
def test_options_choose_what_is_listed(way: Way, options: list[str], offsets: list[int]) -> None:
    assert [each["offset"] for each in way("pending", *options).document["records"]] == offsets


def test_a_list_for_people_says_what_is_missing(way: Way) -> None:
    lines = way("pending", "--limit", "1", "-o", "text").out.splitlines()

    assert lines[:2] == [f"shop/reminders (source {SOURCE})", "2 pending, 0 overdue"]
    # In front of it is the due time, and a day where it is not today's.
    assert lines[-3].split()[-5:] == ["2:7", "shop.reminders", "order/17", "customer-4", "7"]
    assert lines[-1] == "not complete: there are more than were asked for"


def test_a_record_is_shown_whole(way: Way) -> None:
    said, lines = way("get", "order/17"), way("get", "order/17", "-o", "text").out.splitlines()

    assert (said.code, said.document["dueMs"], said.document["content"]["key"]) == (0, DUE_MS, "customer-4")
    assert lines[1:] == [
        "place    2:7",
        "target   shop.reminders",
        "key      customer-4",
        "value    tea\\u001b[2J",
        "header   own=base64:/w==",
        "header   deliver-id=order/17",
    ]


def test_a_document_is_yaml_where_that_is_asked_for(way: Way) -> None:
    assert f"dueMs: {DUE_MS}\n" in way("get", "order/17", "-o", "yaml").out


@pytest.mark.parametrize("options", [["--at", str(DUE_MS + HOUR_MS)], ["--after", "2h"], ["--now"]])
def test_a_record_gets_another_time(way: Way, options: list[str]) -> None:
    said = way("reschedule", "order/17", *options)

    assert (said.code, said.document["partition"], said.document["offset"]) == (0, 2, 1)
    (topic, record, partition) = way.scene.written[0]
    assert (topic, partition, record.value) == (SOURCE, 2, b"tea\x1b[2J")
    assert record.headers == [
        ("own", b"\xff"),
        ("deliver-id", b"order/17"),
        ("deliver-at", b"%d" % said.document["dueMs"]),
    ]
    assert "--at" not in options or said.document["dueMs"] == DUE_MS + HOUR_MS


def test_dead_letters_are_listed_the_newest_first_with_the_sum_of_each_reason(way: Way) -> None:
    said, few = way("dead-letters list"), way("dead-letters list", "--limit", "2", "-o", "text").out.splitlines()

    page = said.document
    assert (said.code, [each["place"] for each in page["deadLetters"]]) == (0, ["0:4", "0:3", "0:1"])
    assert (page["reasons"], page["complete"], page["notes"]) == ({"expired": 2, "too-large": 1}, True, [])
    assert [line.split()[0] for line in few] == ["PLACE", "0:4", "0:3", "3"]
    assert [line.split()[3:] for line in few[1:3]] == [
        ["expired", "1", "-", "0:4", "no", "why"],
        ["too-large", "-", "base64:/w==", "0:3", "no", "why"],
    ]
    assert few[3] == "3 dead letters: 2 expired, 1 too-large"


def test_only_dead_letters_of_a_reason_are_listed(way: Way) -> None:
    page = way("dead-letters list", "--reason", "too-large").document

    assert [each["place"] for each in page["deadLetters"]] == ["0:3"]


def test_a_dead_letter_is_shown_whole(way: Way) -> None:
    said, lines = way("dead-letters show", "0:1"), way("dead-letters show", "0:1", "-o", "text").out.splitlines()

    assert (said.code, said.document["atMs"], said.document["content"]["value"]) == (0, AT_MS + 1, "tea")
    assert lines[2:] == [
        "reason   expired",
        "detail   why",
        "source   0:1",
        "again    no",
        "key      customer-4",
        "value    tea",
        "header   own=1",
    ]


@pytest.mark.parametrize(
    ("arguments", "choice", "places", "dry_run"),
    [
        (["0:1", "0:4"], Choice(SOURCE), [Place(0, 1), Place(0, 4)], False),
        (["--all", "--dry-run"], Choice(SOURCE), None, True),
        (["--all", "--reason", "expired", "--reason", "unsupported"],
         Choice(SOURCE, frozenset({"expired", "unsupported"})), None, False),
        (["--all", "--after", "5m"], Choice(SOURCE, timing=Timing(after=Duration("5m"))), None, False),
        (["0:1", "--at", "1795269686270"], Choice(SOURCE, timing=Timing(at_ms=1_795_269_686_270)), [Place(0, 1)],
         False),
    ],
)  # fmt: skip
def test_dead_letters_are_sent_again(
    way: Way, arguments: list[str], choice: Choice, places: list[Place] | None, dry_run: bool
) -> None:
    said = way("dead-letters resend", *arguments)

    assert (said.code, said.err, way.scene.letters.asked) == (0, "", [(LONG.dead_letter, choice, places, dry_run)])
    assert said.document == {
        "source": SOURCE,
        "sent": 2,
        "places": ["0:1", "0:4"],
        "sentBefore": [],
        "incomplete": [],
        "incompleteCount": 0,
        "fromFirst": False,
        "complete": True,
        "dryRun": dry_run,
    }


def test_a_dry_run_names_what_would_be_sent(way: Way) -> None:
    way.scene.letters.outcome.from_first = True

    lines = way("dead-letters resend", "--all", "--dry-run", "-o", "text").out.splitlines()

    assert lines == [
        "would send 0:1",
        "would send 0:4",
        f"would send 2 dead letters to {SOURCE} again, from the first on",
    ]


def test_dead_letters_that_are_left_out_are_named(way: Way) -> None:
    outcome = Outcome([Place(0, 1)], {Place(0, 3): "its value was too large"}, sent_before=[Place(0, 4)])
    way.scene.letters.outcome = outcome

    said = way("dead-letters resend", "0:1", "0:3", "0:4", "-o", "text")

    assert said == (
        1,
        f"sent 1 dead letter to {SOURCE} again\nnot sent: 0:4: it was sent again before\n",
        "not sent: 0:3: its value was too large\nerror: 1 dead letter cannot be sent again from here\n",
    )


@pytest.mark.parametrize(
    ("command", "exit_code", "message"),
    [
        ("get gone", 5, "no record with id gone is pending in "),
        ("get order/17 --partition 1", 5, "no record with id order/17 is pending in "),
        ("reschedule order/17", 2, "say when the record is due: with --after, --at or --now"),
        ("reschedule order/17 --now --after 1h", 2, "say when the record is due: with --after, --at or --now"),
        ("reschedule order/17 --after 1w", 2, '"1w" is not a duration'),
        ("reschedule gone --now", 5, "no record with id gone is pending in "),
        ("pending --due-before soon", 2, '--due-before: "soon" is not a time; '),
        ("cancel ''", 2, "an id has 1 to 256 bytes, not 0: "),
        ("dead-letters show 0:9", 5, "there is no dead letter of "),
        ("dead-letters show 0", 2, '"0" is not PARTITION:OFFSET, such as 0:17; dead-letters list shows them'),
        ("dead-letters resend", 2, "name places such as 0:17, or all with --all; not both"),
        ("dead-letters resend 0:1 --all", 2, "name places such as 0:17, or all with --all; not both"),
        ("dead-letters resend 0:1 --reason expired", 2, "--reason chooses among all: it goes with --all, and not "),
        ("dead-letters resend 0:1 --after 1h --at 1", 2, "set --after or --at, not both"),
        ("dead-letters resend 0:1 --after soon", 2, '"soon" is not a duration'),
        (f"dead-letters resend {' '.join(f'0:{n}' for n in range(101))}", 2, "name up to 100 places at a time, not "),
    ],
)
def test_what_cannot_be_done_is_one_line_with_the_reason(way: Way, command: str, exit_code: int, message: str) -> None:
    verb, *arguments = command.replace("dead-letters ", "dead-letters_").split()

    said = way(verb.replace("_", " "), *(each.strip("'") for each in arguments))

    assert (said.code, said.out, said.err.count("\n")) == (exit_code, "", 1)
    assert said.err.startswith(f"error: {message}")
    assert (way.scene.written, way.scene.letters.asked) == ([], [])


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_field_of_a_record_reaches_the_terminal_as_a_command(
    way: Way, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    hostile = HOSTILE.encode()
    way.scene.waiting = {LONG: [(0, Schedule(DUE_MS, 7, hostile, b"tea", [], id=hostile, target=HOSTILE))]}
    way.scene.letters.records = {LONG.dead_letter: [stored("0:1", SOURCE, HOSTILE, key=hostile, detail=HOSTILE * 99)]}

    shown = [way("pending", "-o", form).out, way("dead-letters list", "-o", form).out]
    shown += [way("dead-letters show", "0:1", "-o", form).out]

    assert [line for text in shown for line in text.split("\n") if not line.isprintable()] == []
    assert form == "text" or all(HARMLESS in text for text in shown)
