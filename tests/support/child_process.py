"""A program of ours as a real process, for tests that kill and freeze it; it never outlives the test run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from delaytopic_local.servers.process import spawn


@contextmanager
def hearing_ctrl_c() -> Iterator[None]:
    """Let processes that are started in this block hear Ctrl-C.

    A shell starts what runs in its background with Ctrl-C ignored, which all that a test run starts would inherit.
    """
    outer = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, outer)


class ChildProcess:
    """A process that a test starts by `spawn`, and then kills, freezes or stops."""

    _child: subprocess.Popen[bytes] | None = None

    def spawn(
        self,
        command: Sequence[str],
        log_file: Path,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the command with its output appended to a file; the kernel kills it when this process ends."""
        self._child = spawn(command, log_file, environment, directory)

    @property
    def child(self) -> subprocess.Popen[bytes]:
        """The process."""
        assert self._child is not None
        return self._child

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.child.kill()
        self.child.wait()

    def terminate(self, timeout_s: float = 20.0) -> int:
        """SIGTERM; its exit code."""
        self.child.terminate()
        return self.child.wait(timeout_s)

    def freeze(self) -> None:
        """SIGSTOP: nothing runs, no heartbeat leaves."""
        os.kill(self.child.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: it goes on exactly where it was."""
        os.kill(self.child.pid, signal.SIGCONT)

    def stop_whatever_happens(self) -> None:
        """For teardown."""
        if self._child is not None and self._child.poll() is None:
            self.thaw()
            self.kill()


def is_stopped(child: ChildProcess) -> bool:
    """Tell whether all its threads have been stopped, by itself or by another."""
    threads = Path(f"/proc/{child.child.pid}/task").glob("*/stat")
    try:
        return all(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T" for stat in threads)
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread has ended while it was looked at
