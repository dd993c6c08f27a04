from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delaytopic_cli.local.state import LocalState, read_running_state, remove_state, state_file, write_state


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def state(pid: int) -> LocalState:
    return LocalState(pid, "127.0.0.1:1", None, ("a", "b"), ("http://127.0.0.1:2",))


def test_a_running_local_is_found() -> None:
    write_state(state(os.getpid()))

    assert read_running_state() == state(os.getpid())


def test_nothing_runs_at_first() -> None:
    assert read_running_state() is None


def test_a_local_that_was_killed_is_not_found() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    write_state(state(ended.pid))

    assert read_running_state() is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pid": 1}', "\0"])
def test_a_damaged_file_counts_as_none(content: str) -> None:
    state_file().parent.mkdir()
    state_file().write_text(content, encoding="utf-8")

    assert read_running_state() is None


def test_only_ones_own_state_is_removed() -> None:
    write_state(state(os.getppid()))

    remove_state(os.getpid())

    assert read_running_state() == state(os.getppid())
