"""A test run that is interrupted or killed ends every process that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.child_process import hearing_ctrl_c
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for

CONFTEST = """
from tests.conftest import *
from tests.conftest import pytest_configure
"""
# One test a worker: each starts a server of its own, asks for a shared one, and then waits until somebody ends it.
TESTS = """
import os, pathlib, threading
import pytest
from redis import Redis
from delaytopic_local.servers.process import ManagedProcess

@pytest.mark.parametrize("number", range(2))
def test_that_never_ends(number, redis, tmp_path):
    own = ManagedProcess("own", ["sleep", "1000"], log_file=tmp_path / "log")
    own.start()
    with Redis.from_url(redis.url) as client:
        shared = client.info("server")["process_id"]
    here = pathlib.Path(__file__).parent
    unfinished = here / f"unfinished-{number}"
    unfinished.write_text(f"{os.getpid()} {own.pid} {shared}")
    unfinished.rename(here / f"pids-{number}")
    threading.Event().wait()
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run of two workers, each in the middle of a test."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    for number in range(2):
        (tmp_path / f"test_{number}.py").write_text(TESTS.replace("range(2)", f"[{number}]"))
    command = [sys.executable, "-m", "pytest", "-c", str(tmp_path / "pytest.ini"), "--numprocesses=2", str(tmp_path)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DELAYTOPIC"))}
    with (tmp_path / "output").open("wb") as output, hearing_ctrl_c():
        process = subprocess.Popen(
            command, cwd=ROOT, env=inherited, stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_for(lambda: len(pid_files(tmp_path)) == 2, (tmp_path / "output").read_text)
        yield process
    finally:
        process.kill()
        process.wait()


def pid_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("pids-*"))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("send", "number"),
    [
        pytest.param(os.killpg, signal.SIGINT, id="ctrl-c", marks=pytest.mark.takes_long("workers have 10 s to end")),
        pytest.param(os.kill, signal.SIGTERM, id="sigterm"),
        pytest.param(os.kill, signal.SIGKILL, id="sigkill"),
    ],
)
def test_a_run_that_gets_a_signal_leaves_no_process_behind(
    run: subprocess.Popen[bytes], tmp_path: Path, send: Callable[[int, int], None], number: signal.Signals
) -> None:
    pids = {int(pid) for file in pid_files(tmp_path) for pid in file.read_text().split()}

    send(run.pid, number)

    wait_for(lambda: not any(runs(pid) for pid in pids), lambda: str({pid for pid in pids if runs(pid)}))
    assert len(pids) == 2 + 2 + 1


def runs(pid: int) -> bool:
    """Tell a process that runs from one that ended and whose parent was not told yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
