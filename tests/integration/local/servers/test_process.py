"""ManagedProcess with small programs of the interpreter: no server, no network."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from delaytopic_local.errors import EmbeddedServerError
from delaytopic_local.servers.process import ManagedProcess
from delaytopic_process.waiting import wait_until

FOREVER = "import signal; print('ready', flush=True); signal.pause()"
DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True: signal.pause()
"""
COUNTING = """
import signal
signal.signal(signal.SIGTERM, lambda number, frame: print("asked", flush=True))
print("ready", flush=True)
while True: signal.pause()
"""
STARTER = """
import sys, signal, pathlib
from delaytopic_local.servers.process import ManagedProcess
child = ManagedProcess("child", [sys.executable, "-c", sys.argv[1]], log_file=pathlib.Path(sys.argv[2]))
child.start()
print(child.pid, flush=True)
signal.pause()
"""


def program(tmp_path: Path, code: str) -> ManagedProcess:
    return ManagedProcess("program", [sys.executable, "-c", code], log_file=tmp_path / "logs" / "program.log")


@pytest.fixture
def forever(tmp_path: Path) -> Iterator[ManagedProcess]:
    process = program(tmp_path, FOREVER)
    process.start()
    assert wait_until(lambda: "ready" in process.log_tail(), timeout_seconds=20)
    yield process
    process.kill()


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_started_program_runs_in_a_session_of_its_own(forever: ManagedProcess) -> None:
    assert forever.is_running()
    assert os.getsid(forever.pid) == forever.pid


def test_stop_ends_a_program_with_sigterm(forever: ManagedProcess) -> None:
    assert forever.stop(grace_seconds=20) == -signal.SIGTERM


def test_stop_ends_a_frozen_program_too(forever: ManagedProcess) -> None:
    forever.send_signal(signal.SIGSTOP)

    assert forever.stop(grace_seconds=20) == -signal.SIGTERM


def test_stop_kills_a_program_that_does_not_listen(tmp_path: Path) -> None:
    deaf = program(tmp_path, DEAF)
    deaf.start()
    assert wait_until(lambda: "ready" in deaf.log_tail(), timeout_seconds=20)

    assert deaf.stop(grace_seconds=0.1) == -signal.SIGKILL


def test_a_program_is_asked_to_stop_once_however_often_it_is_told(tmp_path: Path) -> None:
    counting = program(tmp_path, COUNTING)
    counting.start()
    assert wait_until(lambda: "ready" in counting.log_tail(), timeout_seconds=20)

    for _ in range(3):
        counting.ask_to_stop()
        assert wait_until(lambda: "asked" in counting.log_tail(), timeout_seconds=20)
    counting.stop(grace_seconds=0.1)

    assert counting.log_tail().split() == ["ready", "asked"]


def test_starting_a_running_program_is_an_error(forever: ManagedProcess) -> None:
    with pytest.raises(EmbeddedServerError, match="program is running already"):
        forever.start()


def test_a_killed_program_starts_again_and_appends_to_its_log(forever: ManagedProcess) -> None:
    forever.kill()

    forever.start()

    assert wait_until(lambda: forever.log_tail().split() == ["ready", "ready"], timeout_seconds=20)


def test_a_program_that_does_not_exist_says_so_in_its_log(tmp_path: Path) -> None:
    missing = ManagedProcess("missing", ["/no/such/program"], log_file=tmp_path / "log")
    missing.start()

    assert missing.wait(timeout_seconds=20) == 127
    assert missing.log_tail() == "cannot run /no/such/program: No such file or directory"


def test_a_program_started_in_a_thread_outlives_the_thread(tmp_path: Path) -> None:
    process = program(tmp_path, FOREVER)
    thread = threading.Thread(target=process.start)
    thread.start()
    thread.join()
    assert wait_until(lambda: "ready" in process.log_tail(), timeout_seconds=20)

    still_there = process.wait(timeout_seconds=0.3) is None

    process.kill()
    assert still_there


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the death of a parent")
def test_a_program_dies_with_a_starter_that_was_killed(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", STARTER, FOREVER, str(tmp_path / "log")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        child = int(starter.stdout.readline())

        starter.kill()

    assert wait_until(lambda: not exists(child), timeout_seconds=20)
