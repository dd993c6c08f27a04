"""A program of ours as a real process, for tests that kill and freeze it; it never outlives the test run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from delaytopic_cli.embedded import die_with_parent

# The kernel ends a child when the thread that started it ends, so one thread that stays starts them all.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="test-spawner")


class ChildProcess:
    """A process that a test starts by `spawn`, and then kills, freezes or stops."""

    _child: subprocess.Popen[bytes] | None = None

    def spawn(self, command: Sequence[str], log_file: Path, directory: Path | None = None) -> None:
        """Start the command with its output appended to a file; the kernel kills it when this process ends."""
        wrapper = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
        with log_file.open("ab") as log:
            self._child = _SPAWNER.submit(
                subprocess.Popen,
                [*wrapper, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                start_new_session=True,  # a Ctrl-C of the terminal is for the test run
            ).result()

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
