"""A backlog in memory: the oracle that the other backlogs are compared with, and the backlog of the simulation."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from delaytopic_relay.backlog.redis.layout import stored_bytes
from delaytopic_relay.backlog.store import Page, PutRefused, Segment, Slice, StoreVersion, moved
from delaytopic_relay.core.id_states import IdEntry


@dataclass(slots=True)
class _Shard:
    version: StoreVersion | None = None
    segments: dict[Slice, list[bytes]] = field(default_factory=dict)
    records: dict[Slice, int] = field(default_factory=dict)
    ids: dict[bytes, IdEntry] = field(default_factory=dict)

    @property
    def stored_bytes(self) -> int:
        """As Redis counts."""
        segment_bytes = sum(len(data) for segments in self.segments.values() for data in segments)
        return stored_bytes(segment_bytes, len(self.records), len(self.ids))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All shards of a memory backlog at one moment, to roll back to."""

    shards: Mapping[tuple[str, int], _Shard]


class MemoryBacklogStore:
    """A `BacklogStore` that keeps everything in dictionaries.

    Several relays may share one, as they share a server; it is not for several threads.
    """

    def __init__(self) -> None:
        """An empty backlog, on which no shard was claimed."""
        self._shards: dict[tuple[str, int], _Shard] = {}
        self._topics: dict[int, str] = {}
        self.topic_mark = ""
        self._server = self
        self._is_full = False

    @property
    def is_full(self) -> bool:
        """Return whether it takes no segments, whatever source they are of."""
        return self._server._is_full

    @is_full.setter
    def is_full(self, is_full: bool) -> None:
        self._server._is_full = is_full

    def of_topic(self, topic_mark: str) -> MemoryBacklogStore:
        """Return the same backlog, as relays see it whose source has this mark."""
        view = MemoryBacklogStore()
        view._shards, view._topics, view.topic_mark = self._shards, self._topics, topic_mark
        view._server = self._server
        return view

    def version(self, partition: int) -> StoreVersion | None:
        """See `BacklogStore.version`."""
        return self._shard(partition).version

    def put(
        self,
        partition: int,
        expected: StoreVersion | None,
        new: StoreVersion,
        segments: Sequence[Segment],
        ids: Mapping[bytes, IdEntry],
    ) -> int:
        """See `BacklogStore.put`. Raises `BacklogMoved`, `PutRefused`."""
        kept = self._shard(partition)
        if kept.version == new:
            return kept.stored_bytes
        if kept.version != expected:
            raise moved(partition, expected, kept.version)
        if segments and self.is_full and expected is not None:
            raise PutRefused("the backlog is full", expected)
        for segment in segments:
            kept.segments.setdefault(segment.slice, []).append(segment.data)
            kept.records[segment.slice] = kept.records.get(segment.slice, 0) + segment.records
        kept.ids.update(ids)
        kept.version = new
        self._shards[self._key(partition)] = kept
        return kept.stored_bytes

    def page(self, partition: int, expected: StoreVersion, from_ms: int, count: int) -> Page:
        """See `BacklogStore.page`. Raises `BacklogMoved`."""
        records = self._owned(partition, expected).records
        found = sorted(item for item in records.items() if item[0].start_ms >= from_ms)
        return Page.of(found[:count], count)

    def slices(self, partition: int) -> dict[Slice, int]:
        """Return all slices of a shard, whoever owns it."""
        return dict(self._shard(partition).records)

    def load(self, partition: int, expected: StoreVersion, slice_: Slice, first: int, count: int) -> list[bytes]:
        """See `BacklogStore.load`. Raises `BacklogMoved`."""
        return self._owned(partition, expected).segments.get(slice_, [])[first : first + count]

    def load_first(
        self, partition: int, expected: StoreVersion, slices: Sequence[Slice], count: int
    ) -> list[list[bytes]]:
        """See `BacklogStore.load_first`. Raises `BacklogMoved`."""
        segments = self._owned(partition, expected).segments
        return [segments.get(slice_, [])[:count] for slice_ in slices]

    def ids(self, partition: int, expected: StoreVersion, names: Sequence[bytes]) -> list[IdEntry | None]:
        """See `BacklogStore.ids`. Raises `BacklogMoved`."""
        kept = self._owned(partition, expected)
        return [kept.ids.get(name) for name in names]

    def id_pages(self, partition: int) -> Iterator[Mapping[bytes, IdEntry]]:
        """See `BacklogStore.id_pages`."""
        yield dict(self._shard(partition).ids)

    def drop(self, partition: int, expected: StoreVersion, slices: Sequence[Slice], ids: Sequence[bytes]) -> int:
        """See `BacklogStore.drop`. Raises `BacklogMoved`."""
        kept = self._owned(partition, expected)
        for slice_ in slices:
            kept.records.pop(slice_, None)
            kept.segments.pop(slice_, None)
        for name in ids:
            kept.ids.pop(name, None)
        return kept.stored_bytes

    def reset(self, partition: int, slices: Iterable[Slice]) -> None:
        """See `BacklogStore.reset`."""
        self._shards.pop(self._key(partition), None)

    def topic(self, partition: int) -> str | None:
        """See `BacklogStore.topic`."""
        return self._topics.get(partition)

    def note_topic(self, partition: int) -> None:
        """See `BacklogStore.note_topic`."""
        self._topics[partition] = self.topic_mark

    def forget_topic(self, partition: int, topic_mark: str) -> int:
        """See `BacklogStore.forget_topic`."""
        kept = self._shards.pop(self._key(partition, topic_mark), _Shard())
        return sum(kept.records.values())

    def free_bytes(self) -> int | None:
        """See `BacklogStore.free_bytes`."""
        return 0 if self.is_full else None

    def close(self) -> None:
        """Nothing to give back: what was put stays, as on a server."""

    def snapshot(self) -> Snapshot:
        """Return what is in the backlog now, for `restore`."""
        return Snapshot(copy.deepcopy(self._shards))

    def restore(self, snapshot: Snapshot) -> None:
        """Roll back, as a server does that fails over to a replica which missed the last writes."""
        self._shards.clear()
        self._shards.update(copy.deepcopy(dict(snapshot.shards)))

    def lists(self) -> list[list[bytes]]:
        """Return the segments of each slice, to be looked at and changed."""
        return [segments for _, kept in sorted(self._shards.items()) for _, segments in sorted(kept.segments.items())]

    def wipe(self) -> None:
        """Lose everything, versions included."""
        self._shards.clear()
        self._topics.clear()

    def _key(self, partition: int, topic_mark: str | None = None) -> tuple[str, int]:
        return (self.topic_mark if topic_mark is None else topic_mark, partition)

    def _shard(self, partition: int) -> _Shard:
        return self._shards.get(self._key(partition)) or _Shard()

    def _owned(self, partition: int, expected: StoreVersion) -> _Shard:
        kept = self._shard(partition)
        if kept.version != expected:
            raise moved(partition, expected, kept.version)
        return kept
