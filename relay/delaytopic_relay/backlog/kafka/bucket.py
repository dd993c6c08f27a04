"""One bucket of one shard, as its owner keeps it in memory. Pure.

A bucket is a queue of segments whose floors never go back, so that the floor of the first unread one bounds all that is
unread: nothing of them is due before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from delaytopic_relay.core.bucket_state import BucketState
from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.id_states import IdEntry

MOST_SPANS = 64
"""The most spans that are counted apart in one bucket; beyond, neighbours are taken together."""


class Span:
    """Some consecutive segments: their schedules are due from `first_ms` to `last_ms`, both included."""

    __slots__ = ("first_ms", "last_ms", "records", "until")

    def __init__(self, until: int, first_ms: int, last_ms: int, records: int) -> None:
        """`until` is the number after the last segment's."""
        self.until = until
        self.first_ms = first_ms
        self.last_ms = last_ms
        self.records = records


class BucketSpans:
    """An index of when the segments of one bucket are due, bounded in size: never a scan of the topic."""

    def __init__(self, until: int, first_ms: int, last_ms: int, records: int) -> None:
        """Begin with what a successor knows of all that waits."""
        # It is committed text: a span that ends before it begins has no width to spread records over.
        self._spans = [Span(until, first_ms, max(first_ms, last_ms), records)] if records else []

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    @property
    def first_ms(self) -> int:
        """The time before which nothing that waits is due; 0 when nothing waits."""
        return min((span.first_ms for span in self._spans), default=0)

    @property
    def last_ms(self) -> int:
        """The time after which nothing that waits is due; 0 when nothing waits."""
        return max((span.last_ms for span in self._spans), default=0)

    def wrote(self, until: int, first_ms: int, last_ms: int, records: int) -> None:
        """A segment was written."""
        self._spans.append(Span(until, first_ms, last_ms, records))
        if len(self._spans) > MOST_SPANS:
            self._spans = [*map(_together, self._spans[::2], self._spans[1::2]), *self._spans[len(self._spans) & ~1 :]]

    def visited(self, until: int, records: int) -> None:
        """The first segment was read; `until` is the number after it."""
        if self._spans:
            self._spans[0].records -= records
            if self._spans[0].until <= until:
                del self._spans[0]


def _together(a: Span, b: Span) -> Span:
    return Span(b.until, min(a.first_ms, b.first_ms), max(a.last_ms, b.last_ms), a.records + b.records)


class Visited(NamedTuple):
    """A segment that was read, and the last of its schedules that only memory holds."""

    number: int
    offset: int
    last: DueKey


class WaitingBucket(NamedTuple):
    """The waiting part of a bucket at one moment: segments `[next_number, written)`, at or after `offset`.

    Their schedules are due from `first_ms` to `last_ms`; those below `read_before` may hold what is also elsewhere.
    """

    bucket: int
    offset: int
    next_number: int
    read_before: int
    written: int
    first_ms: int
    last_ms: int
    records: int


class BucketsCopy(NamedTuple):
    """The facts that a reader needs of a shard: its buckets in which something waits, and the ids of what waits."""

    buckets: Sequence[WaitingBucket]
    ids: Mapping[bytes, IdEntry]
    """The shard's own, which its loop goes on changing."""


class Bucket:
    """One bucket: its segments written, its segments read, and those of them that are not yet done."""

    def __init__(self, state: BucketState) -> None:
        """Begin as committed; what was read and is not done has to be read again first."""
        self.offset = state.offset
        self.next_number = state.kept
        """The number of the segment to read next."""
        self.read_before = state.read
        """Segments below this number were read by a predecessor, and what was far in them written anew."""
        self.written = state.written
        self.records = state.records
        """The number of schedules that nobody has read."""
        self.head_ms = state.head_ms
        """The time before which nothing is due that nobody has read."""
        self.last_ms = state.last_ms
        self.spans = BucketSpans(state.written, state.first_due_ms, state.last_due_ms, state.records)
        self._visited: deque[Visited] = deque()

    @property
    def waits(self) -> bool:
        """Return whether there is anything to read."""
        return self.next_number < self.written

    @property
    def again(self) -> bool:
        """Return whether the next segment is one that a predecessor has read."""
        return self.next_number < self.read_before

    @property
    def bound_ms(self) -> int | None:
        """The time before which nothing unread is due; None when nothing is unread."""
        if not self.waits:
            return None
        return 0 if self.again else self.head_ms

    def waiting(self, number: int) -> WaitingBucket | None:
        """Return what waits, for a listing; None when nothing does. `number` is the bucket's own."""
        if not self.waits:
            return None
        first_ms = 0 if self.again else max(self.head_ms, self.spans.first_ms)
        place = (self.offset, self.next_number, self.read_before, self.written)
        return WaitingBucket(number, *place, first_ms, max(first_ms, self.spans.last_ms), max(0, self.records))

    def floor_ms(self, wished_ms: int) -> int:
        """The floor of a segment to write: never below one that still waits."""
        return max(wished_ms, self.last_ms) if self._first_new < self.written else wished_ms

    @property
    def _first_new(self) -> int:
        """The first segment that nobody has read."""
        return max(self.next_number, self.read_before)

    def wrote(self, floor_ms: int, first_due_ms: int, last_due_ms: int, records: int) -> None:
        """A segment was written; its schedules are due from the first to the last of these times."""
        if self._first_new >= self.written:
            self.head_ms = floor_ms
        self.written += 1
        self.last_ms = floor_ms
        self.records += records
        self.spans.wrote(self.written, first_due_ms, last_due_ms, records)

    def wave(self, lead_ms: int) -> int:
        """Return about how many schedules have to be read within so long, judged by how close floors lie."""
        spread_ms = max(1, self.last_ms - self.head_ms)
        return self.records * min(lead_ms, spread_ms) // spread_ms

    def saw(self, floor_ms: int) -> None:
        """The next segment is known, and not read yet."""
        self.head_ms = max(self.head_ms, floor_ms)

    def skipped(self, offset: int) -> None:
        """Skip a foreign record at this offset."""
        self.offset = offset + 1

    def visited(self, offset: int, floor_ms: int, records: int, last: DueKey | None) -> None:
        """The next segment was read; `last` is the greatest key of its schedules that went to memory."""
        if not self.again:
            self.records -= records
            self.spans.visited(self.next_number + 1, records)
            self.head_ms = max(self.head_ms, floor_ms)
        if last is not None:
            self._visited.append(Visited(self.next_number, offset, last))
        self.next_number += 1
        self.offset = offset + 1

    def state(self, cursor: DueKey) -> BucketState:
        """Return what to commit with this cursor."""
        visited = self._visited
        while visited and visited[0].last <= cursor:
            visited.popleft()
        offset, kept = (visited[0].offset, visited[0].number) if visited else (self.offset, self.next_number)
        read = self._first_new
        if read >= self.written:
            return BucketState(offset, kept, read, self.written)
        bounds = (self.head_ms, self.last_ms, self.records, self.spans.first_ms, self.spans.last_ms)
        return BucketState(offset, kept, read, self.written, *bounds)
