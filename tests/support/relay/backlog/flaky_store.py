"""A memory backlog that cannot always be reached, takes its time, and may be damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.world import World

from delaytopic_relay.backlog.store import Page, Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogUnavailable


class FlakyStore(MemoryBacklogStore):
    """Each load takes `load_ms` of the world's time."""

    def __init__(self, world: World, load_ms: int = 0) -> None:
        super().__init__()
        self.world = world
        self.load_ms = load_ms
        self.away = False
        """True if it cannot be reached."""
        self.deaf_puts = 0
        """Leave puts unanswered that are done."""
        self.damaged: set[int] = set()
        """Shards whose segments cannot be read."""

    def _answer(self) -> None:
        if self.away:
            raise BacklogUnavailable("connection refused")

    def version(self, partition: int) -> StoreVersion | None:
        self._answer()
        return super().version(partition)

    def put(
        self,
        partition: int,
        expected: StoreVersion | None,
        new: StoreVersion,
        segments: Sequence[Segment],
        ids: Mapping[bytes, IdEntry],
    ) -> int:
        self._answer()
        stored_bytes = super().put(partition, expected, new, segments, ids)
        if self.deaf_puts > 0:
            self.deaf_puts -= 1
            raise BacklogUnavailable("timed out")
        return stored_bytes

    def page(self, partition: int, expected: StoreVersion, from_ms: int, count: int) -> Page:
        self._answer()
        return super().page(partition, expected, from_ms, count)

    def load(self, partition: int, expected: StoreVersion, slice_: Slice, first: int, count: int) -> list[bytes]:
        return self._loaded(partition, [super().load(partition, expected, slice_, first, count)])[0]

    def load_first(
        self, partition: int, expected: StoreVersion, slices: Sequence[Slice], count: int
    ) -> list[list[bytes]]:
        return self._loaded(partition, super().load_first(partition, expected, slices, count))

    def _loaded(self, partition: int, slices: list[list[bytes]]) -> list[list[bytes]]:
        self._answer()
        self.world.now_ms += self.load_ms
        return [[b"\x01garbage" for _ in loaded] for loaded in slices] if partition in self.damaged else slices

    def id_pages(self, partition: int) -> Iterator[Mapping[bytes, IdEntry]]:
        self._answer()
        return super().id_pages(partition)

    def ids(self, partition: int, expected: StoreVersion, names: Sequence[bytes]) -> list[IdEntry | None]:
        self._answer()
        return super().ids(partition, expected, names)

    def reset(self, partition: int, slices: Iterable[Slice]) -> None:
        self._answer()
        self.damaged.discard(partition)
        super().reset(partition, slices)

    def drop(self, partition: int, expected: StoreVersion, slices: Sequence[Slice], ids: Sequence[bytes]) -> int:
        self._answer()
        return super().drop(partition, expected, slices, ids)
