"""`delaytopic local` as its users run it: a process, a file, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from delaytopic_cli.__main__ import run
from delaytopic_cli.embedded.waiting import wait_until
from delaytopic_cli.local_state import read_running_state

DOCUMENT = """
apiVersion: delaytopic.dev/v1alpha1
kind: DelayTopic
metadata: {name: reminders, namespace: shop}
spec:
  source: {topic: shop.delayed, partitions: 2}
  target: {topic: shop.reminders}
  precision: 50ms
"""
PATIENCE_SECONDS = 60.0


class Local:
    """A running `delaytopic local`."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.output = folder / "output"
        file = folder / "topics.yaml"
        file.write_text(DOCUMENT, encoding="utf-8")
        command = [sys.executable, "-m", "delaytopic_cli", "local", "-f", str(file), "--data", str(self.data)]
        with self.output.open("wb") as output:
            # A shell's background jobs ignore Ctrl-C, and so does what they start, unless it is handled here.
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            signal.signal(signal.SIGINT, before)

    def text(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def children(self) -> dict[int, str]:
        """The command lines of the processes that it started, by process id."""
        return {pid: command for pid, parent, command in processes() if parent == self.process.pid}

    def wait_for(self, text: str) -> None:
        found = wait_until(
            lambda: text in self.text() or self.process.poll() is not None, timeout_seconds=PATIENCE_SECONDS
        )
        assert found, self.text()
        assert text in self.text()


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
    """Those of the processes that are still there."""
    return {pid for pid, _, _ in processes() if pid in pids}


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    session = Local(tmp_path)
    session.wait_for("relays=1/1")
    yield session
    children = session.children()
    session.process.kill()
    session.process.wait()
    assert wait_until(lambda: not remaining(children), timeout_seconds=PATIENCE_SECONDS)


def test_records_sent_to_a_running_local_arrive_on_time(local: Local, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["send", "shop.delayed", "--after", "1s", "--id", "cancelled", "--value", "never"]) == 0
    assert run(["cancel", "shop.delayed", "cancelled"]) == 0
    assert run(["send", "shop.delayed", "--after", "2s", "--value", "tea"]) == 0
    capsys.readouterr()

    assert run(["watch", "shop.reminders", "--from-beginning", "--limit", "1", "-o", "json"]) == 0

    arrival = json.loads(capsys.readouterr().out)
    assert (arrival["value"], arrival["latenessMs"] >= 0) == ("tea", True)
    local.wait_for("delivered=1 ")


def test_what_waits_in_a_running_local_is_listed(local: Local, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["send", "shop.delayed", "--after", "1h", "--id", "late", "--value", "never shown"]) == 0
    assert run(["send", "shop.delayed", "--after", "30m", "--id", "soon", "--value", "never shown"]) == 0
    local.wait_for("pending=2 ")
    capsys.readouterr()

    assert run(["pending", "reminders", "-o", "json"]) == 0

    found = capsys.readouterr().out
    document = json.loads(found)
    assert [record["id"] for record in document["records"]] == ["soon", "late"]
    assert (document["pending"], document["complete"], document["notes"]) == (2, True, [])
    assert "never shown" not in found


def test_ctrl_c_ends_everything_in_order(local: Local) -> None:
    assert read_running_state() is not None
    children = local.children()

    local.process.send_signal(signal.SIGINT)

    assert local.process.wait(PATIENCE_SECONDS) == 0
    assert len(children) == 3, "Kafka, Redis and a relay"
    assert remaining(children) == set()
    assert read_running_state() is None
    assert local.text().endswith("stopping ...\nstopped\n")
    relay_log = (local.data / "relays" / "shop.reminders-1.log").read_text(encoding="utf-8")
    assert json.loads(relay_log.splitlines()[-1])["event"] == "stopped"


def test_a_relay_that_was_killed_is_started_again_and_its_backlog_arrives(
    local: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["send", "shop.delayed", "--after", "3s", "--count", "10"]) == 0
    (pid,) = (pid for pid, command in local.children().items() if "delaytopic_relay" in command)

    os.kill(pid, signal.SIGKILL)

    local.wait_for("was ended by signal 9")
    assert run(["watch", "shop.reminders", "--from-beginning", "--limit", "10", "-o", "json"]) == 0
    values = sorted(json.loads(line)["value"] for line in capsys.readouterr().out.splitlines() if line.startswith("{"))
    assert values == sorted(f"record {number}" for number in range(1, 11))


def test_a_second_local_on_the_same_folder_is_refused(
    local: Local, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["local", "-f", str(tmp_path / "topics.yaml"), "--data", str(local.data)])

    assert code == 2
    assert f"--data: another delaytopic uses {local.data}" in capsys.readouterr().err
