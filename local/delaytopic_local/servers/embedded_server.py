"""The life of a real server that runs as a child process, for one machine."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from delaytopic_local.errors import EmbeddedServerError
from delaytopic_local.servers.process import ManagedProcess


class EmbeddedServer(ABC):
    """A server with its data under a directory, on 127.0.0.1.

    The port is chosen once and survives stop, kill and restart, as does the data. As a context manager it starts
    on entry and stops on exit. The kernel kills it when this process dies.
    """

    start_seconds: ClassVar[float]
    """The time within which it has to be ready."""
    grace_seconds: ClassVar[float]
    """The time that it has to end by itself."""

    def __init__(self, name: str, command: Sequence[str], directory: Path, port: int) -> None:
        """Keep what is needed to start it; nothing is started yet."""
        self.directory = directory
        self.port = port
        self._process = ManagedProcess(name, command, log_file=directory / "server.log")

    @property
    def log_file(self) -> Path:
        """The server's own log."""
        return self._process.log_file

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._process.pid

    def is_running(self) -> bool:
        """Tell whether the server's process is there."""
        return self._process.is_running()

    def start(self) -> None:
        """Start it and wait until it answers, with its data loaded.

        Raises ServerStartError with the end of the log when it ends or does not answer in time.
        """
        if self.is_running():
            raise EmbeddedServerError(f"{self._process.name} is running already (pid {self.pid})")
        self._data_directory.mkdir(parents=True, exist_ok=True)
        self._prepare()
        self._process.start()
        self._process.await_ready(self._answers, timeout_seconds=self.start_seconds)

    def stop(self) -> None:
        """End it gracefully (SIGTERM, after a grace SIGKILL). Nothing when it is not running."""
        self._process.stop(grace_seconds=self.grace_seconds)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._process.kill()

    def restart(self) -> None:
        """Stop it gracefully when it runs, and start it again on the same port with the same data."""
        self.stop()
        self.start()

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal: SIGSTOP freezes it, SIGCONT lets it go on."""
        self._process.send_signal(number)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _data_directory(self) -> Path:
        return self.directory / "data"

    def _prepare(self) -> None:  # noqa: B027 - most servers make their data themselves
        """Make what the server's first start, or the next one, needs."""

    @abstractmethod
    def _answers(self) -> bool:
        """Tell whether it serves clients."""
