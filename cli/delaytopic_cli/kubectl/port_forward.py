"""Edge: ports of pods and services at this machine's loopback address, by `kubectl port-forward`, while in use."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from selectors import EVENT_READ, DefaultSelector
from tempfile import TemporaryFile
from threading import Lock
from types import TracebackType
from typing import IO, Final, Self

from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed, failure
from delaytopic_local.servers.process import dying_with_this_process

ADDRESS: Final = "127.0.0.1"
START_SECONDS: Final = 15.0
END_SECONDS: Final = 5.0
MOST_READ_BYTES: Final = 4096
_OPEN: Final = re.compile(rb"^Forwarding from 127\.0\.0\.1:(\d{1,5}) -> \d+\r?\n", re.MULTILINE)


@dataclass(slots=True)
class Forward:
    """A port of the cluster on this machine."""

    url: str
    complaint: str | None = None
    """The errors that kubectl told, as a sentence; known once the port is forwarded no more."""


class PortForwards:
    """The ports that are forwarded now; after the exit there are none, and no more can be opened.

    Threads open ports; the exit, in another one, ends what they wait for.
    """

    def __init__(
        self, kubectl: Kubectl, *, start_seconds: float = START_SECONDS, end_seconds: float = END_SECONDS
    ) -> None:
        """The longest times until a port is forwarded, and from SIGTERM to SIGKILL."""
        self._kubectl = kubectl
        self._start_seconds = start_seconds
        self._end_seconds = end_seconds
        self._lock = Lock()
        self._closed = False
        self._running: set[subprocess.Popen[bytes]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            for process in self._running:
                _signal(process, signal.SIGTERM)

    @contextmanager
    def to(self, namespace: str, name: str, port: int) -> Iterator[Forward]:
        """Forward a port of `pod/NAME` or `service/NAME` while the context lasts. Raises `KubectlFailed`."""
        target = ("port-forward", name, f":{port}", f"--address={ADDRESS}")
        command = self._kubectl.within(namespace).command(*target)
        with TemporaryFile() as errors:
            process = self._start(command, errors)
            try:
                forward = Forward(f"http://{ADDRESS}:{self._await_port(process, errors)}")
                yield forward
            finally:
                self._end(process)
            said = _said(errors)
            forward.complaint = str(failure(said)) if said else None

    def _start(self, command: list[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise KubectlFailed("kubectl port-forward was not started: the command ends", "Interrupted")
            # A session of its own: a wrapper around kubectl and what it started are ended together.
            process = subprocess.Popen(
                dying_with_this_process(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def _await_port(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> int:
        """Read what kubectl prints until it names the port; raises `KubectlFailed` when it ends or takes too long."""
        assert process.stdout is not None
        until = time.monotonic() + self._start_seconds
        said = b""
        with DefaultSelector() as selector:
            selector.register(process.stdout, EVENT_READ)
            while len(said) < MOST_READ_BYTES and selector.select(max(0.0, until - time.monotonic())):
                part = os.read(process.stdout.fileno(), MOST_READ_BYTES - len(said))
                if not part:
                    self._end(process)
                    raise failure(_said(errors) or said.decode("utf-8", "replace"))
                said += part
                found = _OPEN.search(said)
                if found is not None:
                    return int(found[1])
        complaint = _said(errors) or said.decode("utf-8", "replace")
        within = f" within {self._start_seconds:g} s" if len(said) < MOST_READ_BYTES else ""
        because = f": {failure(complaint)}" if complaint else ""
        raise KubectlFailed(f"kubectl port-forward named no port{within}{because}", "Timeout")

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End it and take its exit code; does nothing when that was done."""
        _signal(process, signal.SIGTERM)
        try:
            process.wait(self._end_seconds)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        with self._lock:
            self._running.discard(process)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _said(errors: IO[bytes]) -> str:
    return os.pread(errors.fileno(), MOST_READ_BYTES, 0).decode("utf-8", "replace").strip()
