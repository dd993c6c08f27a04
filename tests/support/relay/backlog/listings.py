"""Lists of what is pending, and what they are made of, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.relay.backlog.memory_store import MemoryBacklogStore

from delaytopic_api.relay import PendingList
from delaytopic_relay.backlog.protocol import Portion, SliceGone
from delaytopic_relay.backlog.segments import decode_segment
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry

AS_OF_MS = 1_795_269_600_000


def pending_list(**changes: Any) -> PendingList:
    """The list of a relay that holds nothing, with some of it changed."""
    fields: dict[str, Any] = {
        "relay": "relay-0",
        "delay_topic": "shop/reminders",
        "source": "shop.reminders.delayed",
        "source_partitions": 1,
        "as_of_ms": AS_OF_MS,
        "pending": 0,
        "overdue": 0,
        "ingest_lag": 0,
        "limit": 100,
        "complete": True,
    }
    return PendingList.model_validate(fields | changes)


@dataclass
class MemoryReader:
    """A `PendingReader` over a memory backlog; `meanwhile` is called before each slice that is read."""

    store: MemoryBacklogStore
    meanwhile: Callable[[Slice], None] = lambda slice_: None
    read_slices: list[Slice] = field(default_factory=list)
    closed: bool = False

    def slices(self, partition: int, from_ms: int, before_ms: int) -> Mapping[Slice, int]:
        return self.store.slices(partition)

    def expect(self, partition: int, slices: Sequence[Slice]) -> None:
        """Nothing takes its time here."""

    def read(self, partition: int, slices: Sequence[Slice], before_ms: Callable[[], int]) -> Iterator[Portion]:
        for slice_ in slices:
            self.meanwhile(slice_)
            version = self.store.version(partition)
            assert version is not None
            segments = self.store.load(partition, version, slice_, 0, 1_000_000)
            if not segments:
                raise SliceGone
            self.read_slices.append(slice_)
            for segment in segments:
                yield Portion(decode_segment(segment), len(segment))

    def ids(self, partition: int, names: Sequence[bytes]) -> Sequence[IdEntry | None]:
        version = self.store.version(partition)
        assert version is not None
        return self.store.ids(partition, version, names)

    def still_at(self, partition: int, version: StoreVersion) -> bool:
        found = self.store.version(partition)
        return found is not None and found.owner == version.owner and found.counter >= version.counter

    def close(self) -> None:
        self.closed = True
