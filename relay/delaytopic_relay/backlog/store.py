"""The store that the core asks for: an index, over bytes, of the schedules due beyond the horizon.

A backlog may lose its last writes or everything: the shard notices by the version and fills it again
from the source topic. It must not invent or reorder anything, and a write whose expected version
does not match must change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogFull, BacklogMoved, CorruptState

END_MS = 1 << 62
"""Later than any slice begins."""


class StoreVersion(NamedTuple):
    """The offset up to which a shard's backlog is filled, by whom, and after how many writes.

    `owner` is the token of the relay that last claimed the shard, `counter` grows with each write. Every
    schedule with a source offset below `offset` is in the backlog, or was done when this was written:
    it is the offset committed last, not the one read last, so that it stays true of an old copy of the
    backlog even when what was near at that time was put there later.
    """

    owner: str
    counter: int
    offset: int


class Slice(NamedTuple):
    """A span of due time `[start_ms, start_ms + width_ms)`; a segment never crosses one."""

    start_ms: int
    width_ms: int

    @property
    def end_ms(self) -> int:
        """The first millisecond that is no longer in the slice."""
        return self.start_ms + self.width_ms


class Segment(NamedTuple):
    """A packed batch of one shard's schedules in one slice; `data` is opaque to the backlog."""

    slice: Slice
    records: int
    data: bytes


class Page(NamedTuple):
    """Slices of a shard from some time on, with the number of records put into each (copies counted too).

    All that begin before `until_ms` are in it; the next page begins there, unless that is `END_MS`.
    """

    slices: Mapping[Slice, int]
    until_ms: int

    @classmethod
    def of(cls, found: Sequence[tuple[Slice, int]], count: int) -> Page:
        """Return the page of the first `count` slices, in the order of their start. Raises `CorruptState`.

        Slices of several widths may begin at one time; a full page leaves those at its end to the next one.
        """
        if len(found) < count:
            return cls(dict(found), END_MS)
        until_ms = found[-1][0].start_ms
        if found[0][0].start_ms == until_ms:
            raise CorruptState(f"{count} slices begin at {until_ms}, more than there are widths")
        return cls({slice_: records for slice_, records in found if slice_.start_ms < until_ms}, until_ms)


class PutRefused(BacklogFull):
    """A full backlog has taken none of a put, or only the segments `stored`, and is at `reached`."""

    def __init__(self, text: str, reached: StoreVersion, stored: Sequence[Segment] = ()) -> None:
        super().__init__(text)
        self.reached = reached
        self.stored = stored


class BacklogStore(Protocol):
    """One relay's access to the backlog; every method names the shard (the source partition).

    Raises `BacklogMoved` when the version is not the expected one (another owner, or writes were
    lost) and `BacklogUnavailable` when the backlog cannot be reached; after the latter a write may or
    may not have happened, and repeating it with the same arguments is safe.
    """

    def version(self, partition: int) -> StoreVersion | None:
        """The shard's version; None for a shard that was never claimed, or a wiped backlog."""
        ...

    def put(
        self,
        partition: int,
        expected: StoreVersion | None,
        new: StoreVersion,
        segments: Sequence[Segment],
        ids: Mapping[bytes, IdEntry],
    ) -> int:
        """Append segments and set id entries, atomically with the version going from expected to new.

        Succeeds without a second effect when the version already is `new`. With no segments and
        no ids this claims a shard or moves its version on. Answers how many bytes the shard takes in the backlog.
        A full backlog refuses segments with `PutRefused`, and nothing else.
        """
        ...

    def page(self, partition: int, expected: StoreVersion, from_ms: int, count: int) -> Page:
        """Return the first slices that begin at `from_ms` or later; `count` is more than there are widths.

        Raises `CorruptState` where the backlog's own records of its slices contradict each other.
        """
        ...

    def load(self, partition: int, expected: StoreVersion, slice_: Slice, first: int, count: int) -> list[bytes]:
        """Segments `first` to `first + count - 1` of a slice, in the order they were put."""
        ...

    def load_first(
        self, partition: int, expected: StoreVersion, slices: Sequence[Slice], count: int
    ) -> list[list[bytes]]:
        """The first `count` segments of each of these slices, in one request."""
        ...

    def ids(self, partition: int, expected: StoreVersion, names: Sequence[bytes]) -> list[IdEntry | None]:
        """The entries of these ids, None where there is none, in the order asked for."""
        ...

    def id_pages(self, partition: int) -> Iterator[Mapping[bytes, IdEntry]]:
        """Yield all id entries, some at once, whoever owns the shard; what no relay wrote is left out."""
        ...

    def drop(self, partition: int, expected: StoreVersion, slices: Sequence[Slice], ids: Sequence[bytes]) -> int:
        """Forget whole slices and id entries; what is not there is not missed. Answers as `put`."""
        ...

    def reset(self, partition: int, slices: Iterable[Slice]) -> None:
        """Forget the shard, version included, whatever it holds and whoever owns it: its owner gets `BacklogMoved`.

        `slices` are those that the caller knows, beside those that can be listed.
        """
        ...

    def free_bytes(self) -> int | None:
        """Return how much memory the backlog has left for all who share it; None where that is not known."""
        ...

    @property
    def topic_mark(self) -> str:
        """The mark of the source's topic id; "" where that is not known."""
        ...

    def topic(self, partition: int) -> str | None:
        """Return the mark of the topic that the shard's backlog was last claimed for; None where nobody has."""
        ...

    def note_topic(self, partition: int) -> None:
        """Note that the shard's backlog is of this store's topic."""
        ...

    def forget_topic(self, partition: int, topic_mark: str) -> int:
        """Forget all that the shard has of the topic with this mark; answers how many records that were, about."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...


def moved(partition: int, expected: StoreVersion | None, found: StoreVersion | None) -> BacklogMoved:
    """The error for a shard whose version is `found` and not `expected`, with the likeliest reason."""
    return BacklogMoved(
        f"the backlog of shard {partition} is at {_text(found)}, not at {_text(expected)}: {_reason(expected, found)}"
    )


def _text(version: StoreVersion | None) -> str:
    if version is None:
        return "no version"
    return f"offset {version.offset} (write {version.counter} of {version.owner})"


def _reason(expected: StoreVersion | None, found: StoreVersion | None) -> str:
    if found is None:
        return "it was wiped, or it is another server's"
    if expected is None:
        return "it is claimed already"
    if found.owner != expected.owner:
        return "another relay claimed it, or a put was left half done"
    if found.counter < expected.counter:
        return "it lost its last writes"
    return "it took a write that this relay does not know of"
