"""The stores behind backlogs, for the conformance suite: open a backlog on them, roll them back, wipe them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tests.support.relay.backlog.memory_store import MemoryBacklogStore

from delaytopic_relay.backlog.redis.connection import RedisConnection
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.store import END_MS, BacklogStore, Slice

FIRST_MS = -(1 << 53)
"""Before any slice of a test begins."""


def slices_of(store: BacklogStore, partition: int, count: int = 1_000) -> dict[Slice, int]:
    """Return all slices of a shard, read page by page; none where it was never claimed."""
    version, found, from_ms = store.version(partition), dict[Slice, int](), FIRST_MS
    while version is not None and from_ms < END_MS:
        page = store.page(partition, version, from_ms, count)
        found.update(page.slices)
        from_ms = page.until_ms
    return found


class Store(Protocol):
    """The common part of several relays' backlogs."""

    def open(self) -> BacklogStore:
        """Another relay's access."""
        ...

    def snapshot(self) -> Callable[[], None]:
        """Return a function that rolls the store back to now."""
        ...

    def wipe(self) -> None:
        """Lose everything."""
        ...


@dataclass(frozen=True)
class MemoryStore:
    memory: MemoryBacklogStore

    def open(self) -> BacklogStore:
        return self.memory

    def snapshot(self) -> Callable[[], None]:
        taken = self.memory.snapshot()
        return lambda: self.memory.restore(taken)

    def wipe(self) -> None:
        self.memory.wipe()


@dataclass(frozen=True)
class RedisStore:
    """The keys of one backend id on a server that other tests use too."""

    connection: RedisConnection
    backend_id: str

    def open(self) -> BacklogStore:
        return RedisBacklogStore(self.connection, self.backend_id)

    def keys(self) -> list[bytes]:
        return sorted(self._client.scan_iter(match=f"{{{self.backend_id}:*", count=10_000))

    def snapshot(self) -> Callable[[], None]:
        dumps = {key: self._client.dump(key) for key in self.keys()}

        def roll_back() -> None:
            self.wipe()
            for key, dump in dumps.items():
                self._client.restore(key, 0, dump)

        return roll_back

    def wipe(self) -> None:
        for key in self.keys():
            self._client.delete(key)

    @property
    def _client(self) -> Any:
        return self.connection.client
