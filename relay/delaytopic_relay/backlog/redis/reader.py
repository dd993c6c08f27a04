"""Reading a backlog in Redis for a listing, over a connection of its own, with the reading commands of the relay's
user.

No script and no write: GET, ZRANGE, HMGET and LRANGE. Answers are kept small, so that neither Redis nor the
relay's loop, which shares the interpreter with the reading thread, waits long for any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from delaytopic_relay.backlog.protocol import Portion, SliceGone
from delaytopic_relay.backlog.redis.connection import RedisConnection
from delaytopic_relay.backlog.redis.layout import (
    ShardKeys,
    check_backend_id,
    decode_count,
    decode_id_entry,
    decode_page,
    decode_version,
)
from delaytopic_relay.backlog.redis.store import Command, page_range
from delaytopic_relay.backlog.segments import decode_segment
from delaytopic_relay.backlog.signing import MARK_BYTES, UNSIGNED, SegmentSigner, slice_place
from delaytopic_relay.backlog.store import Page, Slice, StoreVersion
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import ForeignRecord

PORTION_BYTES = 256 << 10
FIRST_PORTION = 4
LARGEST_PORTION = 256
"""Segments in one answer."""
NAMES = 1_000
"""Ids, or slices, in one question."""


class RedisPendingReader:
    """A `PendingReader` over Redis."""

    def __init__(
        self, connection: RedisConnection, backend_id: str, signer: SegmentSigner = UNSIGNED, topic_mark: str = ""
    ) -> None:
        """Owns the connection; `topic_mark` is the source's. Raises `ConfigurationError`."""
        self._topic_mark = topic_mark
        self._connection, self._client = connection, connection.client
        self._signer = signer
        self._id = check_backend_id(backend_id)

    def slices(self, partition: int, from_ms: int, before_ms: int) -> Mapping[Slice, int]:
        """See `PendingReader.slices`: a range of the schedule, page by page."""
        found: dict[Slice, int] = {}
        while from_ms < before_ms:
            page = self._page(partition, from_ms)
            found.update(page.slices)
            from_ms = page.until_ms
        return found

    def _page(self, partition: int, from_ms: int) -> Page:
        """Read a page; slices that the loop forgot in between are left out."""
        keys = self._of(partition)
        scored: Any = self._asked(page_range(keys, from_ms, NAMES))
        if not scored:
            return Page.of([], NAMES)
        slices, counts = decode_page(scored, keys.slices), self._asked(("HMGET", keys.counts, *scored[::2]))
        found = [
            (slice_, decode_count(text, keys.counts) if text is not None else 0)
            for slice_, text in zip(slices, counts, strict=True)
        ]
        page = Page.of(found, NAMES)
        return page._replace(slices={slice_: records for slice_, records in page.slices.items() if records})

    def _asked(self, command: Command) -> Any:
        return self._connection.ask(lambda: self._client.execute_command(*command))  # type: ignore[no-untyped-call]

    def expect(self, partition: int, slices: Sequence[Slice]) -> None:
        """Do nothing: an answer comes at once."""

    def read(self, partition: int, slices: Sequence[Slice], before_ms: Callable[[], int]) -> Iterator[Portion]:
        """See `PendingReader.read`: the beginnings of all slices in one request, then the rest of each."""
        keys = [self._of(partition).list(slice_) for slice_ in slices]
        firsts = self._ranges(keys, 0, FIRST_PORTION - 1)
        for slice_, key, segments in zip(slices, keys, firsts, strict=True):
            if not segments:
                raise SliceGone
            place = slice_place(partition, slice_)
            yield self._portion(place, segments)
            if len(segments) == FIRST_PORTION:
                yield from self._rest(place, key, segments)

    def _rest(self, place: bytes, key: bytes, segments: Sequence[bytes]) -> Iterator[Portion]:
        first, last = len(segments), False
        while not last:
            mean_bytes = max(1, sum(map(len, segments)) // len(segments))
            count = max(1, min(LARGEST_PORTION, PORTION_BYTES // mean_bytes))
            (found,) = self._ranges([key], first, first + count - 1)
            last = len(found) < count
            if found:
                yield self._portion(place, found)
                segments = found
            elif not self._ranges([key], 0, 0)[0]:
                raise SliceGone
            first += len(found)

    def ids(self, partition: int, names: Sequence[bytes]) -> Sequence[IdEntry | None]:
        """See `PendingReader.ids`."""
        key = self._of(partition).ids
        found: list[IdEntry | None] = []
        for start in range(0, len(names), NAMES):
            texts: Any = self._connection.ask(lambda: self._client.hmget(key, list(names[start : start + NAMES])))  # noqa: B023
            found += [decode_id_entry(text, key) for text in texts]
        return found

    def still_at(self, partition: int, version: StoreVersion) -> bool:
        """See `PendingReader.still_at`; a put in several parts marks the owner in between (`redis_parts`)."""
        key = self._of(partition).version
        text: Any = self._connection.ask(lambda: self._client.get(key))
        found = decode_version(text, key)
        if found is None or found.counter < version.counter:
            return False
        return found.owner == version.owner or found.owner.startswith(f"{version.owner}+")

    def close(self) -> None:
        """See `PendingReader.close`."""
        self._client.close()

    def _of(self, partition: int) -> ShardKeys:
        return ShardKeys.of(self._id, partition, self._topic_mark)

    def _ranges(self, keys: Sequence[bytes], first: int, last: int) -> list[list[bytes]]:
        def in_one_go() -> list[list[bytes]]:
            with self._client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.execute_command("LRANGE", key, first, last)
                return list(pipeline.execute())

        return self._connection.ask(in_one_go)

    def _portion(self, place: bytes, segments: Sequence[bytes]) -> Portion:
        """Return those that relays wrote; the loop counts and names what it skips when it loads the slice."""
        schedules: list[Schedule] = []
        for segment in segments:
            with suppress(ForeignRecord):
                schedules += decode_segment(self._signer.verify(place, segment, MARK_BYTES))
        return Portion(schedules, sum(map(len, segments)))
