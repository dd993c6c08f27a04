"""Edge: child processes that never outlive this one: ports for them, and waiting until they are ready.

Each has its own session, and the kernel kills it when this process dies.
"""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from delaytopic_local.errors import EmbeddedServerError, ServerStartError
from delaytopic_process.waiting import wait_until

_WRAPPER = Path(__file__).with_name("die_with_parent.py")
# The kernel's signal comes when the *thread* that started the child ends. So one thread, which lives as long as the
# interpreter, starts them all; a start() in a short-lived thread of a test is then as good as any other.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="delaytopic-spawner")
# Below the ephemeral ranges of Linux (32768) and IANA (49152): no outgoing connection of this machine can take the
# port while its server is down between a stop and a restart.
_RANGE = range(20000, 32000)
_ATTEMPTS = 200


class ManagedProcess:
    """One program that can be started, stopped, killed and started again, with its output appended to a log file.

    The child has its own session and process group (a Ctrl-C of the terminal does not reach it) and gets SIGKILL
    from the kernel when this process ends in any way.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, log_file: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment` is added to that of this process. Nothing is started yet."""
        self.name = name
        self.command = list(command)
        self.log_file = log_file
        self._environment = dict(environment or {})
        self._child: subprocess.Popen[bytes] | None = None
        self._asked_to_stop = False

    @property
    def pid(self) -> int:
        """The process id; raises EmbeddedServerError when it was never started."""
        if self._child is None:
            raise EmbeddedServerError(f"{self.name} has not been started")
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code (negative: the signal) of the last run; None while it runs or before the first start."""
        return None if self._child is None else self._child.poll()

    def is_running(self) -> bool:
        """Tell whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start it; raises EmbeddedServerError when it runs already."""
        if self.is_running():
            raise EmbeddedServerError(f"{self.name} is running already (pid {self.pid})")
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        self._asked_to_stop = False
        self._child = spawn(self.command, self.log_file, self._environment)

    def await_ready(self, ready: Callable[[], bool], *, timeout_seconds: float) -> None:
        """Wait until it is ready; kill it and raise ServerStartError when it ended or takes too long."""
        in_time = wait_until(lambda: not self.is_running() or ready(), timeout_seconds=timeout_seconds)
        if in_time and self.is_running():
            return
        what = f"was not ready in {timeout_seconds:.0f} s" if self.is_running() else "ended while starting"
        self.kill()
        raise ServerStartError(f"{self.name} {what}; the end of {self.log_file}:\n{self.log_tail()}")

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal (SIGSTOP and SIGCONT freeze and thaw it) to its process group; nothing when it has ended."""
        if self._child is not None and self._child.poll() is None:
            os.killpg(self._child.pid, number)

    def ask_to_stop(self) -> None:
        """Send it SIGTERM, once a run, and return at once."""
        # A relay takes a second SIGTERM as an order to die without handing over.
        if not self._asked_to_stop:
            self._asked_to_stop = True
            self.send_signal(signal.SIGTERM)
        self.send_signal(signal.SIGCONT)  # a frozen process would not act on it

    def stop(self, *, grace_seconds: float) -> int | None:
        """End it with SIGTERM, and with SIGKILL when it still runs after the grace; returns the exit code."""
        self.ask_to_stop()
        if self.wait(timeout_seconds=grace_seconds) is None:
            self.kill()
        return self.exit_code

    def kill(self) -> None:
        """End it at once with SIGKILL and wait until it is gone."""
        self.send_signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait()

    def wait(self, *, timeout_seconds: float) -> int | None:
        """Wait until it ends; the exit code, or None when it still runs after the timeout."""
        if self._child is None:
            return None
        try:
            return self._child.wait(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            return None

    def log_tail(self, *, lines: int = 15) -> str:
        """Return the last lines of the log file, for error messages."""
        if not self.log_file.exists():
            return ""
        return "\n".join(self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def spawn(
    command: Sequence[str],
    log_file: Path,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own that the kernel kills with this process.

    Its output is appended to the log file; `environment` is added to that of this process.
    """
    return _SPAWNER.submit(_popen, command, log_file, environment, directory).result()


def dying_with_this_process(command: Sequence[str]) -> list[str]:
    """Return the command of a child that the kernel kills when the thread that starts it ends, or this process."""
    return [sys.executable, "-I", "-S", str(_WRAPPER), str(os.getpid()), *command]


def _popen(
    command: Sequence[str], log_file: Path, environment: Mapping[str, str] | None, directory: Path | None
) -> subprocess.Popen[bytes]:
    with log_file.open("ab") as log:
        return subprocess.Popen(
            dying_with_this_process(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=directory,
            start_new_session=True,
        )


def free_port(preferred: int = 0) -> int:
    """Return a port on 127.0.0.1 that nobody listens on now and that no outgoing connection is given: `preferred`, if
    that is one.

    No other caller on this machine gets it while this process lives: a server takes seconds until it listens, and is
    stopped and started again. Raises EmbeddedServerError when none of many candidates is free.
    """
    with _claims() as claims:
        if preferred and _claimant(claims / str(preferred)) in {None, os.getpid()} and is_free(preferred):
            return _claimed(claims, preferred)
        for port in random.sample(_RANGE, _ATTEMPTS):
            if _claimant(claims / str(port)) is None and is_free(port):
                return _claimed(claims, port)
    raise EmbeddedServerError(
        f"no free TCP port found on 127.0.0.1 between {_RANGE.start} and {_RANGE.stop}; "
        "end some local servers and try again"
    )


@contextmanager
def _claims() -> Iterator[Path]:
    """Open the folder that has a file for each port that somebody was given, for one caller at a time."""
    folder = Path(gettempdir()) / f"delaytopic-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(descriptor)


def _claimed(claims: Path, port: int) -> int:
    (claims / str(port)).write_text(str(os.getpid()), encoding="ascii")
    return port


def _claimant(claim: Path) -> int | None:
    """Return the process that was given a port; None where there is none, or it has ended."""
    try:
        pid = int(claim.read_text(encoding="ascii"))
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, ValueError):
        return None
    return pid


def accepts_connections(port: int) -> bool:
    """Tell whether something listens on 127.0.0.1:`port`."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5):
            return True
    except OSError:
        return False


def is_free(port: int) -> bool:
    """Tell whether nobody listens on 127.0.0.1:`port`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
