"""Tests that no two servers of this machine are given one port, though neither listens yet."""

from __future__ import annotations

import subprocess
import sys

import pytest

from delaytopic_local.servers import process
from delaytopic_local.servers.process import free_port

ASK = "from delaytopic_local.servers.process import free_port; print(free_port(), flush=True); input()"


def test_a_port_that_this_process_was_given_is_given_to_nobody_else_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port()
    [second] = unclaimed(1)
    monkeypatch.setattr("random.sample", lambda *_: [first, second])

    assert free_port() == second


def test_a_port_that_another_process_was_given_is_free_once_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", ASK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        first, second = unclaimed(2)
        monkeypatch.setattr("random.sample", lambda *_: [port, first, second])
        meanwhile = [free_port(), free_port(port)]
        other.communicate("\n")

    assert (meanwhile, free_port()) == ([first, second], port)


def test_a_port_that_this_process_was_given_is_its_own_to_prefer() -> None:
    port = free_port()

    assert free_port(port) == port


def unclaimed(count: int) -> list[int]:
    """Return so many ports that are free, and claimed by nobody."""
    ports = [free_port() for _ in range(count)]
    with process._claims() as claims:
        for port in ports:
            (claims / str(port)).unlink()
    return ports
