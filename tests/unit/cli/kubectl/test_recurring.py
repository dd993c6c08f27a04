"""`kubectl delaytopic trigger` and `backfill`: a scripted kubectl, and a gateway at the port it forwards."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.gateway.gateway import REMINDERS, Scene, gateway_over
from tests.support.gateway.rights import Table
from tests.unit.cli.kubectl.scripted_kubectl import RECURRING, ScriptedKubectl, forwarding

from delaytopic_api.records import Headers
from delaytopic_cli.kubectl.__main__ import run
from delaytopic_gateway.client.new_records import OutgoingRecord, Written
from delaytopic_gateway.errors import TopicMissingError

SPAN = ["--from", "2024-03-28T08:00:00Z", "--to", "2024-04-01T07:00:00Z"]
"""From Thursday to Monday, with a change of clock between them."""
TIMES = ["2024-03-28T08:00:00.000Z", "2024-03-29T08:00:00.000Z", "2024-04-01T07:00:00.000Z"]
SLOTS_MS = [1_711_612_800_000, 1_711_699_200_000, 1_711_954_800_000]


class BreakingScene(Scene):
    """A scene whose Kafka may refuse all but the first records."""

    takes: int | None = None

    def write(self, topic: str, record: OutgoingRecord, partition: int | None) -> Written:
        if self.takes is not None and len(self.written) >= self.takes:
            raise TopicMissingError("the topic is gone")
        return super().write(topic, record, partition)


@pytest.fixture(scope="module")
def served() -> Iterator[BreakingScene]:
    with gateway_over(BreakingScene(), Table()) as found:
        assert isinstance(found, BreakingScene)
        yield found


@pytest.fixture
def scene(served: BreakingScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BreakingScene:
    """The scene, with a kubectl of the PATH that forwards a port to its gateway."""
    served.begin({REMINDERS: []})
    served.takes = None
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    kubectl = ScriptedKubectl(tmp_path)
    kubectl.write()
    kubectl.write_services(gateway=forwarding(urlsplit(served.url).port or 0))
    return served


def called(directory: Path, command: str, *arguments: str, caller: str = "editor") -> int:
    token = directory / "token"
    token.write_text(caller)
    return run([command, RECURRING, *arguments, "--token-file", str(token)])


def own_headers(record: OutgoingRecord) -> Headers:
    return [header for header in record.headers if header[0] != "delay-triggered"]


def test_a_trigger_delivers_the_record_now_under_no_id(
    scene: BreakingScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, "trigger", "-o", "text") == 0

    [(topic, record, partition)] = scene.written
    assert (topic, partition, record.key, record.value) == (REMINDERS.source, None, b"k", b"report")
    assert own_headers(record) == [("kind", b"daily"), ("deliver-after", b"0s")]
    when_ms, _, whose = (dict(record.headers)["delay-triggered"] or b"").partition(b":")
    assert (when_ms.isdigit(), whose) == (True, b"shop/report")
    assert capsys.readouterr().out == "shop/report is delivered in a moment: written to shop/reminders at 0:1\n"


def test_a_backfill_writes_a_record_for_each_time_in_its_order(
    scene: BreakingScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, "backfill", *SPAN, "--yes") == 0

    assert json.loads(capsys.readouterr().out) == {
        "recurringRecord": "shop/report",
        "delayTopic": "shop/reminders",
        "times": TIMES,
        "written": 3,
    }
    assert [(record.key, record.value, record.headers) for _, record, _ in scene.written] == [
        (
            b"k",
            b"report",
            [("kind", b"daily"), ("delay-backfilled", b"%d:shop/report" % slot_ms), ("deliver-after", b"0s")],
        )
        for slot_ms in SLOTS_MS
    ]


def test_a_dry_run_lists_the_times_and_writes_nothing(
    scene: BreakingScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, "backfill", *SPAN, "--dry-run", "-o", "text") == 0

    assert (capsys.readouterr().out.splitlines(), scene.written) == ([*TIMES, "3 times"], [])


def test_a_backfill_that_breaks_off_says_how_to_go_on(
    scene: BreakingScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.takes = 1
    broken = called(tmp_path, "backfill", *SPAN, "--yes")
    said = capsys.readouterr().err
    scene.takes = None
    again = called(tmp_path, "backfill", "--from", said.rsplit(maxsplit=1)[-1], *SPAN[2:], "--yes")

    assert (broken, again) == (4, 0)
    assert said == f"error: the topic is gone; 1 of 3 are written: go on with --from {TIMES[1]}\n"
    marks = [dict(record.headers)["delay-backfilled"] for _, record, _ in scene.written]
    assert marks == [b"%d:shop/report" % slot_ms for slot_ms in SLOTS_MS]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--from", "2024-01-01T00:00:00Z"], "nobody is there to be asked whether it is meant so: give --yes, or "),
        (["--from", "soon", "--yes"], '"soon" is not a time; '),
        (["--from", "2024-01-02T00:00:00Z", "--to", "2024-01-01T00:00:00Z", "--yes"], "--from 2024-01-02T00:00:00.000"),
        (["--from", "2024-01-02T00:00:00Z", "--to", "2999-01-01T00:00:00Z", "--yes"], "--to 2999-01-01T00:00:00.000Z "),
        (["--from", "1980-01-01T00:00:00Z", "--yes"], "there are more than 10,000 times from 1980-01-01T00:00:00.000Z"),
    ],
)
def test_a_span_that_is_not_meant_is_refused_before_anything_is_written(
    scene: BreakingScene, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert called(tmp_path, "backfill", *arguments) == 2

    assert (capsys.readouterr().err.startswith(f"error: {says}"), scene.written) == (True, [])


@pytest.mark.parametrize("command", [["trigger"], ["backfill", *SPAN, "--yes"]])
def test_who_may_not_write_to_the_delay_topic_delivers_nothing(
    scene: BreakingScene, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert called(tmp_path, *command, caller="viewer") == 1

    missing = "this needs update on delaytopics/records of delaytopic.dev in namespace shop"
    assert (capsys.readouterr().err.startswith(f"error: {missing}"), scene.written) == (True, [])


def test_a_span_without_a_time_writes_nothing(
    scene: BreakingScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weekend = ["--from", "2024-03-30T00:00:00Z", "--to", "2024-03-31T00:00:00Z"]

    assert called(tmp_path, "backfill", *weekend, "--yes", "-o", "text") == 0
    assert capsys.readouterr().out == "0 times of shop/report written to shop/reminders\n"


def test_a_header_without_a_name_is_refused_in_one_line(
    scene: BreakingScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "recurring.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "spec": {**document["spec"], "headers": {"": "daily"}}}))

    assert (called(tmp_path, "trigger"), scene.written) == (2, [])
    assert (
        capsys.readouterr().err
        == "error: spec.headers: a header cannot be written: String should have at least 1 character\n"
    )
