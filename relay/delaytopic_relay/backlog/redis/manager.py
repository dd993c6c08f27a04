"""Carries out what the shards ask of their backlog: puts before a commit, drops after it, loads in between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from typing import NamedTuple, TypeVar

from delaytopic_relay.backlog.redis.asks import Load, Put
from delaytopic_relay.backlog.redis.shard import LEAST_SHARE_BYTES, UNLIMITED_BYTES, RedisShard
from delaytopic_relay.backlog.segments import decode_slice_segment
from delaytopic_relay.backlog.signing import MARK_BYTES, UNSIGNED, SegmentSigner, mark_of, slice_place
from delaytopic_relay.backlog.slices import CASCADE_MS
from delaytopic_relay.backlog.store import BacklogStore, PutRefused, Slice
from delaytopic_relay.core.commands import Record, Schedule
from delaytopic_relay.core.entries import sizes
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import (
    BacklogMoved,
    BacklogUnavailable,
    CorruptState,
    ForeignRecord,
    OversizedAnswer,
    RelayError,
    SegmentError,
    TransactionAborted,
)
from delaytopic_relay.ports import Clock, LoopEvents

PATIENCE_MS = 10_000
"""The wait of a tick for a backlog that does not answer, before it is given up."""
PAUSE_MS = 50
UNREADABLE_MS = 10_000
"""The pause before a slice that cannot be read is tried again."""
FULL_MS = 1_000
"""The pause before a full backlog is asked again to take segments."""
CHECK_MS = 1_000
"""The age at which the knowledge of the backlog's version is renewed."""
LOADING_MS = 10
"""The longest time that loading may keep the loop from what is due."""
EARLY_BYTES = 2 << 20
"""The size from which on what a shard has for the backlog begins to be written, while the loop reads on."""
PAGE_SLICES = 1_000
"""Slices of the schedule in one answer."""

T = TypeVar("T")
Fetched = dict[Load, list[bytes]]
"""Portions that came with an earlier one; nothing was put in the backlog since."""


class Writing(NamedTuple):
    """The way of segments into the backlog: signed, and early if there is a `background` for it.

    From `early_bytes` on, what a shard has for the backlog is written there while the loop reads on.
    """

    signer: SegmentSigner = UNSIGNED
    background: Executor | None = None
    early_bytes: int = EARLY_BYTES


class Answer(NamedTuple):
    """The backlog's answer to a write: how much the shard takes there, and how long the answer took."""

    stored_bytes: int
    took_ms: int


class Early(NamedTuple):
    """A write that has begun: `write` does it, and does it again."""

    shard: RedisShard
    put: Put
    write: Callable[[], Answer]
    answer: Future[Answer]


class RedisManager:
    """The backlog as the loop uses it."""

    awaits = False
    """Each answer is waited for."""

    def __init__(
        self,
        store: BacklogStore,
        clock: Clock,
        events: LoopEvents,
        writing: Writing = Writing(),  # noqa: B008 - it cannot be changed
    ) -> None:
        self._store = store
        self._signer, self._background, self._early_bytes = writing
        self._early: Early | None = None
        self._clock = clock
        self._events = events
        self._checked_ms: dict[int, int] = {}
        self._turn = 0
        self._unreadable_until_ms: dict[int, int] = {}
        self.unreadable: dict[int, str] = {}
        """The reasons for which shards cannot be loaded any further, by shard."""
        self._quiet_until_ms = 0
        self._full_until_ms: dict[int, int] = {}
        self._partitions: int | None = None
        self._measured_ms = -CHECK_MS

    def share_what_is_free(self, partitions: int) -> None:
        """Let each of so many partitions take as much of the backlog as an equal part of what is left free there.

        Who fills it alone stops at half of it. Each that comes later finds room, and with each all the others give way.
        """
        self._partitions = partitions

    def look_up(self, shard: RedisShard, names: Sequence[bytes]) -> dict[bytes, IdEntry]:
        """Return the entries of these ids."""
        # Nobody else writes between the relay's own writes, each of which tells what is there: an empty backlog need
        # not be asked. Inside the horizon that is a request for each chunk of records.
        if not names or not shard.stored_bytes:
            return {}
        self._flush(shard)
        with self._readable(shard):
            entries = self._retry(lambda: self._store.ids(shard.partition, shard.store_version, names))
        return {name: entry for name, entry in zip(names, entries, strict=True) if entry is not None}

    def put_early(self, shards: Collection[RedisShard]) -> Sequence[Record]:
        """Begin to write what is far of the shard that has most of it; one write at a time."""
        if self._background is None or (self._early is not None and not self._early.answer.done()):
            return ()
        self._settle(shards)
        shard = max(shards, key=_unwritten_bytes, default=None)
        if shard is not None and shard.unwritten_bytes >= self._early_bytes:
            put = shard.put_early(self._clock.now_ms())
            write = self._writing(shard, put)
            self._early = Early(shard, put, write, self._background.submit(write))
        return ()

    def _settle(self, shards: Collection[RedisShard]) -> None:
        """Have the write that has begun acknowledged."""
        early, self._early = self._early, None
        if early is None:
            return
        if early.shard not in shards:
            # Whoever has the shard by now has moved its version on, or will.
            with suppress(RelayError):
                early.answer.result()
            return
        attempts = chain([early.answer.result], repeat(early.write))

        def attempt() -> Answer:
            return next(attempts)()

        self._acknowledge(early.shard, early.put, attempt)

    def _is_early(self, shard: RedisShard) -> bool:
        return self._early is not None and self._early.shard is shard

    def abandon(self, partition: int) -> None:
        """Wait until a write that has begun for a partition is over, whatever came of it: its shard is planned anew."""
        if self._early is not None and self._early.shard.partition == partition:
            self._settle(())

    def put_all(self, shards: Collection[RedisShard]) -> Sequence[Record]:
        """Make the backlog hold everything that a commit of these shards will take for granted: done when it
        returns. What a full backlog refuses is held by the shard, and holds back what is committed.
        """
        self._settle(shards)
        for shard in shards:
            self._flush(shard)
            while shard.must_put:
                if self._is_full(shard):
                    shard.hold()
                put = shard.put(self._clock.now_ms())
                if not put.segments and not put.ids:
                    break
                self._write(shard, put)
        return ()

    def _is_full(self, shard: RedisShard) -> bool:
        """Return whether the backlog has refused segments a moment ago."""
        return shard.refused and self._clock.monotonic_ms() < self._full_until_ms.get(shard.partition, 0)

    def _write(self, shard: RedisShard, put: Put) -> bool:
        """Carry out a write; return whether the backlog had room for it."""
        return self._acknowledge(shard, put, self._writing(shard, put))

    def _writing(self, shard: RedisShard, put: Put) -> Callable[[], Answer]:
        """Return what writes a put, and may be called again until it is answered."""
        number, started_ms = shard.partition, self._clock.monotonic_ms()
        signed = put.segments
        if self._signer.key_id:
            mark = mark_of(put.new)
            signed = [
                segment._replace(data=self._signer.sign(slice_place(number, segment.slice), segment.data, mark))
                for segment in put.segments
            ]

        def write() -> Answer:
            stored_bytes = self._store.put(number, put.expected, put.new, signed, put.ids)
            return Answer(stored_bytes, self._clock.monotonic_ms() - started_ms)

        return write

    def _acknowledge(self, shard: RedisShard, put: Put, write: Callable[[], Answer]) -> bool:
        try:
            with self._readable(shard, [segment.slice for segment in put.segments]):
                answer = self._retry(write)
        except PutRefused as refused:
            self._note_refusal(shard, put, refused)
            self._flush(shard)
            return False
        shard.note_stored(answer.stored_bytes)
        shard.acknowledged(put)
        self._checked_ms[shard.partition] = self._clock.monotonic_ms()
        self._events.put(answer.took_ms)
        return True

    def _note_refusal(self, shard: RedisShard, put: Put, refused: PutRefused) -> None:
        self._events.unavailable(refused)
        self._full_until_ms[shard.partition] = self._clock.monotonic_ms() + FULL_MS
        shard.note_refusal(put, refused.reached, refused.stored, self._clock.now_ms())

    @contextmanager
    def _readable(self, shard: RedisShard, slices: Sequence[Slice] = ()) -> Iterator[None]:
        """Take a shard's backlog for lost where it holds what no relay writes.

        Nothing of it can be relied on any more, and the source topic still has it.
        """
        try:
            yield
        except SegmentError:
            raise
        except CorruptState as error:
            raise self._lost(shard, str(error), slices) from error

    def _lost(self, shard: RedisShard, why: str, slices: Sequence[Slice] = ()) -> BacklogMoved:
        """Forget what the backlog has of a shard, so that whoever recovers it fills it again from the source topic."""
        self._retry(lambda: self._store.reset(shard.partition, [*shard.index, *slices]))
        return BacklogMoved(f"the backlog of shard {shard.partition} counts as lost, and is filled again: {why}")

    def _retry(self, call: Callable[[], T]) -> T:
        """Repeat a call while the backlog does not answer: a tick that already produced cannot go on without it."""
        give_up_ms = self._clock.monotonic_ms() + PATIENCE_MS
        while True:
            try:
                return call()
            except PutRefused:
                raise
            except BacklogUnavailable as error:
                self._events.unavailable(error)
                if self._clock.monotonic_ms() >= give_up_ms:
                    raise TransactionAborted(f"the backlog has not answered for {PATIENCE_MS} ms: {error}") from error
                self._clock.sleep(PAUSE_MS)

    def _is_old(self, shard: RedisShard) -> bool:
        return self._clock.monotonic_ms() - self._checked_ms.get(shard.partition, 0) >= CHECK_MS

    def drop_done(self, shards: Iterable[RedisShard]) -> None:
        """After a commit: forget what is done. What cannot be dropped now is dropped later."""
        for shard in shards:
            slices, ids = shard.droppable()
            if not slices:
                continue
            try:
                with self._readable(shard):
                    shard.note_stored(self._store.drop(shard.partition, shard.store_version, slices, ids))
            except BacklogUnavailable as error:
                self._events.unavailable(error)
                return
            shard.dropped(slices)

    def hand_over(self, shards: Iterable[RedisShard]) -> None:
        """After the last commit: state where a successor starts, so that it reads nothing again."""
        for shard in shards:
            try:
                with self._readable(shard):
                    self._refresh(shard)
            except (BacklogUnavailable, BacklogMoved) as error:
                self._events.unavailable(error)

    def lost(self) -> Collection[int]:
        """None: a backlog that lost something says so when it is asked for anything, by `BacklogMoved`."""
        return ()

    def list_next(self, shards: Sequence[RedisShard]) -> None:
        """Read the shards' schedules: what comes near at once, the rest a few pages a turn, until all is counted."""
        until_ms = self._clock.monotonic_ms() + LOADING_MS
        if until_ms < self._quiet_until_ms:
            return
        try:
            for shard in shards:
                while not self._is_writing(shard) and self._is_to_list(shard, until_ms):
                    with self._readable(shard):
                        self._list(shard)
        except BacklogUnavailable as error:
            self._events.unavailable(error)
            self._quiet_until_ms = until_ms + PAUSE_MS

    def _is_writing(self, shard: RedisShard) -> bool:
        """Return whether the version will be another one as soon as a write is answered."""
        return shard.touching or self._is_early(shard)

    def _is_to_list(self, shard: RedisShard, until_ms: int) -> bool:
        near = shard.must_list(self._clock.now_ms())
        return near or (not shard.counted and self._clock.monotonic_ms() < until_ms)

    def _list(self, shard: RedisShard) -> None:
        page = self._store.page(shard.partition, shard.store_version, shard.listed_until_ms, PAGE_SLICES)
        if not {slice_.width_ms for slice_ in page.slices} <= CASCADE_MS.keys():
            raise CorruptState(f"the backlog of shard {shard.partition} has slices of a width that no relay uses")
        shard.listed(page)

    def load_next(self, shards: Sequence[RedisShard], room_bytes: int) -> bool:
        """Load a few portions of what comes within the horizon, each shard in its turn; check idle versions.

        `room_bytes` is how much more memory may take; with none, only what was begun is loaded further. What is to be
        committed changes only where the backlog has taken what it had refused before.
        """
        return self._load_some(shards, room_bytes)

    def _load_some(self, shards: Sequence[RedisShard], room_bytes: int) -> bool:
        until_ms, taken = self._clock.monotonic_ms() + LOADING_MS, False
        if until_ms < self._quiet_until_ms:
            return False
        try:
            self._measure(shards)
            for _ in shards:
                self._turn = (self._turn + 1) % len(shards)
                shard = shards[self._turn]
                before = shard.size
                held_bytes = shard.held_bytes
                self._load_shard(shard, room_bytes, until_ms)
                taken = taken or shard.held_bytes < held_bytes
                room_bytes -= shard.size - before
                if self._clock.monotonic_ms() >= until_ms:
                    break
        except BacklogUnavailable as error:
            self._events.unavailable(error)
            self._quiet_until_ms = until_ms + PAUSE_MS
        return taken

    def _measure(self, shards: Sequence[RedisShard]) -> None:
        """Share what the backlog has left, now and then."""
        now_ms = self._clock.monotonic_ms()
        if self._partitions is None or now_ms - self._measured_ms < CHECK_MS:
            return
        free_bytes = self._store.free_bytes()
        self._measured_ms = now_ms
        for shard in shards:
            share_bytes = UNLIMITED_BYTES if free_bytes is None else free_bytes // self._partitions
            shard.note_share(max(LEAST_SHARE_BYTES, share_bytes))

    def _load_shard(self, shard: RedisShard, room_bytes: int, until_ms: int) -> None:
        if self._is_early(shard):
            # Nothing new is begun before all is put; what was begun goes on.
            if shard.current is None:
                return
            self._settle([shard])
        if shard.refused and not self._is_full(shard):
            shard.offer(self._clock.now_ms())
        if shard.touching or self._is_old(shard):
            with self._readable(shard):
                self._refresh(shard)
        if self._unreadable_until_ms.get(shard.partition, 0) > until_ms:
            return
        try:
            fetched: Fetched = {}
            full = shard.size + room_bytes
            while (load := self._next_load(shard, full - shard.size)) is not None:
                with self._readable(shard):
                    self._load(shard, load, fetched, full - shard.size)
                if self._clock.monotonic_ms() >= until_ms and not fetched:
                    break
        except SegmentError as error:
            self.unreadable[shard.partition] = f"slice {shard.current}: {error}"
            self._unreadable_until_ms[shard.partition] = until_ms + UNREADABLE_MS
            self._events.stuck(shard.partition, error)
        else:
            self.unreadable.pop(shard.partition, None)

    def _next_load(self, shard: RedisShard, room_bytes: int) -> Load | None:
        return shard.next_load(self._clock.now_ms(), room=room_bytes > 0, ahead_bytes=max(0, room_bytes // 2))

    def _refresh(self, shard: RedisShard) -> None:
        """Move the backlog's version on, or only compare it: either notices a backlog that lost writes."""
        if shard.touching or shard.committed_offset > shard.store_version.offset:
            put = shard.touch()
            try:
                answer = self._writing(shard, put)()
            except PutRefused as refused:
                if not put.segments:
                    raise
                self._note_refusal(shard, put, refused)
                self._refresh(shard)
                return
            shard.note_stored(answer.stored_bytes)
            shard.acknowledged(put)
        else:
            version = self._store.version(shard.partition)
            if version != shard.store_version:
                raise BacklogMoved(
                    f"shard {shard.partition}: the backlog is at {version}, not at {shard.store_version}"
                )
        self._checked_ms[shard.partition] = self._clock.monotonic_ms()

    def _flush(self, shard: RedisShard) -> None:
        """Have a write that is under way acknowledged, before the version is relied on."""
        if self._is_early(shard):
            self._settle([shard])
        if shard.touching:
            with self._readable(shard):
                self._retry(lambda: self._refresh(shard))

    def _load(self, shard: RedisShard, load: Load, fetched: Fetched, room_bytes: int) -> None:
        try:
            data = fetched.pop(load) if load in fetched else self._fetch(shard, load, fetched, room_bytes)
        except OversizedAnswer:
            # Many large records may lie together; a single one is never so large.
            if not shard.halve():
                raise
            return
        schedules, tags = self._genuine(shard, load, data)
        size = sum(map(len, data))
        if shard.loads_whole(load):
            shard.loaded(load, size, schedules, self._ids_of(shard, schedules))
        elif shard.looks_through:
            shard.look_through(load, size, schedules)
        elif schedules:
            fetched.clear()
            if not self._write(shard, shard.cascade(load, size, schedules, self._clock.now_ms())):
                return
        else:
            shard.skipped(load, size)
        shard.tags |= tags
        if len(data) < load.segments:
            self._finish(shard, load)

    def _finish(self, shard: RedisShard, load: Load) -> None:
        """The current slice has no further segments."""
        if shard.missing > 0:
            raise self._lost(shard, f"slice {load.slice} lacks {shard.missing} of its schedules", [load.slice])
        if part := shard.looked_through():
            shard.loaded(load, sizes(part).total, part, self._ids_of(shard, part))
        shard.load_finished()

    def _ids_of(self, shard: RedisShard, schedules: Sequence[Schedule]) -> dict[bytes, IdEntry]:
        """Return what the backlog knows of ids that have to be known for these schedules."""
        names = shard.ids.unknown(schedules)
        found = self._store.ids(shard.partition, shard.store_version, names) if names else []
        return {name: entry for name, entry in zip(names, found, strict=True) if entry is not None}

    def _genuine(self, shard: RedisShard, load: Load, data: Sequence[bytes]) -> tuple[list[Schedule], set[bytes]]:
        """The schedules of the segments that relays of this backend wrote, and their tags.

        Others are skipped and named, and so is a copy of one in the same slice. Skipping loses nothing: how many
        schedules a slice has to have is known, and it is filled again if it has fewer.
        """
        place, found, tags = slice_place(shard.partition, load.slice), list[Schedule](), set[bytes]()
        for element, segment in enumerate(data, load.first):
            try:
                genuine = self._signer.verify(place, segment, MARK_BYTES)
                tag = self._signer.tag_of(segment)
                if tag is not None and (tag in shard.tags or tag in tags):
                    raise ForeignRecord("it is a copy of another element")
                found += decode_slice_segment(genuine, load.slice)
                tags |= {tag} if tag is not None else set()
            except ForeignRecord as error:
                where = f"partition {shard.partition}, slice {load.slice.start_ms}:{load.slice.width_ms}"
                self._events.foreign(shard.partition, f"{where}, element {element} of the list in Redis: {error}")
        return found, tags

    def _fetch(self, shard: RedisShard, load: Load, fetched: Fetched, room_bytes: int) -> list[bytes]:
        """The portion's segments; the first portions of thin slices behind it come in the same request."""
        fetched.clear()
        whole = shard.loads_whole(load) and load.first == 0 and not shard.halved
        companions = shard.companions(self._clock.now_ms(), room_bytes) if whole else []
        if companions:
            slices = [load.slice, *companions]
            data, *others = self._store.load_first(shard.partition, shard.store_version, slices, load.segments)
            fetched.update(zip((load._replace(slice=slice_) for slice_ in companions), others, strict=True))
        else:
            data = self._store.load(shard.partition, shard.store_version, load.slice, load.first, load.segments)
        self._checked_ms[shard.partition] = self._clock.monotonic_ms()
        return data


def _unwritten_bytes(shard: RedisShard) -> int:
    return shard.unwritten_bytes
