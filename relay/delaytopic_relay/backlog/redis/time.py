"""Edge: the clock of Redis."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from delaytopic_relay.backlog.redis.connection import RedisConnection, RedisSettings, connect_redis


class RedisTime:
    """Implements `TimeSource` by `TIME`, over a connection of its own that is opened when it is first asked."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._connection: RedisConnection | None = None

    @property
    def name(self) -> str:
        """The server, where it is known."""
        return self._connection.where if self._connection is not None else "Redis"

    def time_ms(self) -> int:
        """Ask `TIME`. Raises `BacklogUnavailable` and `ConfigurationError`."""
        connection = self._connection = self._connection or connect_redis(self._settings)
        seconds, microseconds = connection.ask(cast("Callable[[], tuple[int, int]]", connection.client.time))
        return seconds * 1_000 + microseconds // 1_000

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.client.close()
