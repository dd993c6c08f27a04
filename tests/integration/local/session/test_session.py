"""`delaytopic local` as its users run it: a process, a file, and Ctrl-C.

One session for all tests of this file; the last two tests end it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.harness.fixtures import QUICK_START
from tests.support.child_process import hearing_ctrl_c

from delaytopic_cli.__main__ import run
from delaytopic_local.session.state import read_running_state
from delaytopic_process.waiting import wait_until

DOCUMENTS = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: reminders, namespace: shop}
spec:
  source: {topic: shop.delayed, partitions: 2}
  target: {topic: shop.reminders}
  backend: {type: RedisZset}
  precision: 50ms
---
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: letters, namespace: post}
spec:
  source: {topic: post.delayed, partitions: 1}
  target: {topic: post.letters}
  backend: {type: RedisZset}
  precision: 50ms
"""
RELAYS = ("shop.reminders-1", "post.letters-1")
PATIENCE_SECONDS = 120.0


class Local:
    """A running `delaytopic local`."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.output = folder / "output"
        self.file = folder / "topics.yaml"
        self.file.write_text(DOCUMENTS, encoding="utf-8")
        command = [sys.executable, "-m", "delaytopic_cli", "local", "-f", str(self.file), "--data", str(self.data)]
        with self.output.open("wb") as output, hearing_ctrl_c():
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def overview(self, delay_topic: str) -> str:
        """The latest line about a DelayTopic; empty before the first."""
        lines = [line for line in self.text().splitlines() if f"  {delay_topic}  " in line]
        return lines[-1] if lines else ""

    def text(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def children(self) -> dict[int, str]:
        """The command lines of the processes that it started, by process id."""
        return {pid: command for pid, parent, command in processes() if parent == self.process.pid}

    def relay(self, name: str) -> int | None:
        """The process id of a relay; None while there is none."""
        return next((pid for pid, command in self.children().items() if f"{name}.yaml" in command), None)

    def wait_for(self, delay_topic: str, text: str) -> None:
        """Wait until the latest overview of the DelayTopic has the text."""
        wait_until(
            lambda: text in self.overview(delay_topic) or self.process.poll() is not None,
            timeout_seconds=PATIENCE_SECONDS,
        )
        assert text in self.overview(delay_topic), self.text()


def processes() -> Iterator[tuple[int, int, str]]:
    """Process id, parent and command line of every process of this machine."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                parent = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield int(entry.name), int(parent), command


def remaining(pids: Collection[int]) -> set[int]:
    """Return those of the processes that are still there."""
    return {pid for pid, _, _ in processes() if pid in pids}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    folder = tmp_path_factory.mktemp("local")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_START))
        session = Local(folder)
        try:
            for delay_topic in ("shop/reminders", "post/letters"):
                session.wait_for(delay_topic, "relays=1/1")
            yield session
        finally:
            children = session.children()
            session.process.kill()
            session.process.wait()
        assert wait_until(lambda: not remaining(children), timeout_seconds=PATIENCE_SECONDS)


class End(NamedTuple):
    """The end of a session, and the processes that it had started."""

    exit_code: int
    children: dict[int, str]
    found_before: bool
    """Other commands found it while it ran."""


@pytest.fixture(scope="module")
def ended(local: Local) -> End:
    """The end of the session by Ctrl-C: no test that needs it running may come later."""
    children, found_before = local.children(), read_running_state() is not None
    local.process.send_signal(signal.SIGINT)
    return End(local.process.wait(PATIENCE_SECONDS), children, found_before)


def test_records_sent_to_a_running_local_arrive(local: Local, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["send", "post.delayed", "--after", "1h", "--id", "cancelled", "--value", "never"]) == 0
    local.wait_for("post/letters", "  pending=1  ")
    assert run(["cancel", "letters", "cancelled"]) == 0
    assert run(["send", "shop.delayed", "--after", "2s", "--value", "tea"]) == 0
    capsys.readouterr()

    assert run(["watch", "shop.reminders", "--from-beginning", "--limit", "1", "-o", "json"]) == 0

    arrival = json.loads(capsys.readouterr().out)
    assert (arrival["value"], arrival["latenessMs"] >= 0) == ("tea", True)
    local.wait_for("shop/reminders", "  delivered=1  ")


def test_a_running_local_has_a_console_and_says_where(local: Local) -> None:
    state = read_running_state()
    assert state is not None
    assert state.gateway_url is not None

    with urllib.request.urlopen(state.gateway_url, timeout=10) as answer:
        page = answer.read().decode()

    assert f"open:  {state.gateway_url}\n" in local.text()
    assert "shop/reminders</a>" in page
    assert "post/letters</a>" in page


def test_what_waits_in_a_running_local_is_listed(local: Local, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["send", "shop.delayed", "--after", "1h", "--id", "late", "--value", "never shown"]) == 0
    assert run(["send", "shop.delayed", "--after", "30m", "--id", "soon", "--value", "never shown"]) == 0
    local.wait_for("shop/reminders", "  pending=2  ")
    capsys.readouterr()

    assert run(["pending", "reminders", "-o", "json"]) == 0

    found = capsys.readouterr().out
    document = json.loads(found)
    assert [record["id"] for record in document["records"]] == ["soon", "late"]
    assert (document["pending"], document["complete"], document["notes"]) == (2, True, [])
    assert "never shown" not in found


def test_a_relay_that_was_killed_is_started_again_and_its_backlog_arrives(
    local: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["send", "post.delayed", "--after", "3s", "--count", "10"]) == 0
    killed = local.relay("post.letters-1")
    assert killed is not None

    os.kill(killed, signal.SIGKILL)

    assert wait_until(lambda: local.relay("post.letters-1") not in (None, killed), timeout_seconds=PATIENCE_SECONDS)
    capsys.readouterr()
    assert run(["watch", "post.letters", "--from-beginning", "--limit", "10", "-o", "json"]) == 0
    values = sorted(json.loads(line)["value"] for line in capsys.readouterr().out.splitlines() if line.startswith("{"))
    assert values == sorted(f"record {number}" for number in range(1, 11))


def test_a_redis_that_does_not_answer_is_named_in_the_overview(local: Local) -> None:
    redis = next(pid for pid, command in local.children().items() if "valkey-server" in command)

    os.kill(redis, signal.SIGSTOP)
    try:
        assert run(["send", "shop.delayed", "--after", "1h", "--value", "never"]) == 0
        local.wait_for("shop/reminders", "  trouble=not available: Redis at ")
    finally:
        os.kill(redis, signal.SIGCONT)


def test_the_status_of_a_running_local_has_its_delay_topics(local: Local, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["send", "post.delayed", "--header", "Deliver-After=1h", "--value", "at once"]) == 0
    local.wait_for("post/letters", "trouble=delivered as if it named no time")

    def status_lines() -> list[str]:
        capsys.readouterr()
        assert run(["status"]) == 0
        return capsys.readouterr().out.splitlines()

    # The overview has the trouble from the relay's log, and the status from its page, which is made once a second.
    assert wait_until(lambda: len(status_lines()) > 3, timeout_seconds=PATIENCE_SECONDS)
    lines = status_lines()
    assert lines[0].startswith(f"local (process {local.process.pid}): Kafka 127.0.0.1:")
    assert lines[1].startswith("  shop/reminders: 1 relay, ")
    assert lines[3].endswith("left as if they named no time: 1, with a header Deliver-After")

    assert run(["status", "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [topic["name"] for topic in found["delayTopics"]] == ["shop/reminders", "post/letters"]


def test_what_a_local_knows_of_its_topics_saves_a_record_from_the_wrong_one(
    local: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["send", "shop.reminders", "--after", "1h", "--value", "never"]) == 2
    assert "shop.reminders is the target topic of shop/reminders" in capsys.readouterr().err


def test_a_second_local_on_the_same_folder_is_refused(local: Local, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["local", "-f", str(local.file), "--data", str(local.data)])

    assert code == 2
    assert f"--data: another delaytopic uses {local.data}" in capsys.readouterr().err


def test_ctrl_c_ends_everything_in_order(ended: End, local: Local) -> None:
    assert ended.exit_code == 0
    assert len(ended.children) == 4, "Kafka, Redis and two relays"
    assert remaining(ended.children) == set()
    assert ended.found_before
    assert read_running_state() is None
    assert local.text().endswith("stopping ...\nstopped\n")


@pytest.mark.usefixtures("ended")
def test_every_relay_hands_over_before_it_ends(local: Local) -> None:
    logs = [(local.data / "relays" / f"{name}.log").read_text(encoding="utf-8") for name in RELAYS]
    assert [json.loads(log.splitlines()[-1])["event"] for log in logs] == ["stopped", "stopped"]
