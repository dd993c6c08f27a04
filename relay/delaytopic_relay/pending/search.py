"""The first records that wait, put together from copies of memory and from the backlog, read only as far as needed.

Everything is as of the moment at which a shard was copied: what was taken in later is left out, what was delivered
in the meantime may still be listed. The backlog is read after the copy, because what is due moves from the backlog to
memory and not back, and what moves within the backlog is written to its new place before it leaves the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from delaytopic_relay.backlog.protocol import PendingReader, SliceGone
from delaytopic_relay.backlog.slices import LEVELS
from delaytopic_relay.backlog.store import Slice
from delaytopic_relay.core.commands import Schedule, rank_of
from delaytopic_relay.core.entries import due_at
from delaytopic_relay.core.id_states import IdState, from_entry
from delaytopic_relay.errors import ConfigurationError, CorruptState, Unavailable
from delaytopic_relay.pending.query import EVERYTHING, PendingQuery, Place
from delaytopic_relay.pending.snapshot import ShardCopy

WIDEST_MS = LEVELS[0].width_ms
"""The width of the widest slice."""


class Listed(NamedTuple):
    """One pending record of the list. The first three fields are its place, and unique."""

    due_ms: int
    partition: int
    offset: int
    id: bytes | None
    target: str | None
    key: bytes | None
    value_bytes: int | None
    expires_ms: int | None = None
    whole: Schedule | None = None

    @classmethod
    def of(cls, partition: int, schedule: Schedule, *, contents: bool = False) -> Listed:
        """Leave out the value and the headers, unless `contents` are wanted."""
        value = schedule.value
        return cls(
            schedule.due_ms,
            partition,
            schedule.offset,
            schedule.id,
            schedule.target,
            schedule.key,
            None if value is None else len(value),
            schedule.expires_ms,
            schedule if contents else None,
        )


class TopN:
    """Keeps the first `size` records by (due, partition, offset); of copies it keeps one."""

    def __init__(self, size: int, *, contents: bool = False) -> None:
        """`size` is at least 1; with `contents` values and headers are kept."""
        self._size = size
        self._contents = contents
        self._found: dict[Place, Listed] = {}
        self._last_ms: int | None = None

    def add(self, partition: int, schedules: Iterable[Schedule]) -> None:
        """Consider these schedules of a shard."""
        last_ms, found = self._last_ms, self._found
        for schedule in schedules:
            if last_ms is None or schedule.due_ms <= last_ms:
                listed = Listed.of(partition, schedule, contents=self._contents)
                found[schedule.due_ms, partition, schedule.offset] = listed
        if len(found) > 2 * self._size or (last_ms is None and len(found) >= self._size):
            self._prune()

    def _prune(self) -> None:
        places = sorted(self._found)[: self._size]
        self._found = {place: self._found[place] for place in places}
        self._last_ms = places[-1][0]

    @property
    def last_ms(self) -> int | None:
        """Return what is due after this is not among the first; None while there are too few."""
        return self._last_ms

    def has(self, partition: int) -> bool:
        """Return whether a record of this shard is among them."""
        return any(listed.partition == partition for listed in self._found.values())

    @property
    def missing(self) -> int:
        """Return how many more it takes."""
        return max(0, self._size - len(self._found))

    def records(self) -> list[Listed]:
        """The first, in order."""
        return [self._found[place] for place in sorted(self._found)[: self._size]]


MOST_READ = 200_000
"""Records that a listing reads from the backlog."""
MOST_READ_BYTES = 64 << 20
IN_ONE_PARTITION = 3
"""The factor by which more is searched in one partition alone, as callers ask who page through a whole backlog."""
GROUP = 32
GROUP_RECORDS = 2_000
"""Thin slices that are read together."""
ATTEMPTS = 3
"""The most times that slices are looked for anew because one was gone."""


OpenReader = Callable[[], PendingReader]
"""Opens the backlog for one listing."""


class PendingResult(NamedTuple):
    """The first records, at most one more than the limit; `cut_ms` and `why` tell what could not be listed."""

    records: Sequence[Listed]
    cut_ms: int | None = None
    why: str | None = None


class SliceRead(NamedTuple):
    """A slice of a shard, in the order in which slices are read."""

    start_ms: int
    partition: int
    slice: Slice
    records: int


def list_pending(copies: Iterable[ShardCopy], open_reader: OpenReader, query: PendingQuery) -> PendingResult:
    """The first `query.limit` records, and one more when there are more."""
    return _Search(copies, open_reader, query).listing()


class _Search:
    def __init__(self, copies: Iterable[ShardCopy], open_reader: OpenReader, query: PendingQuery) -> None:
        self._copies = {copy.partition: copy for copy in copies}
        self._open_reader = open_reader
        self._query = query
        self._found = TopN(query.limit + 1, contents=query.contents)
        self._until_ms = query.due_before_ms
        self._why: str | None = None
        self._cut_ms: int | None = None
        times = 1 if query.partition is None else IN_ONE_PARTITION
        self._records_left, self._bytes_left = times * MOST_READ, times * MOST_READ_BYTES

    def listing(self) -> PendingResult:
        for copy in self._copies.values():
            self._found.add(copy.partition, copy.schedules)
            if copy.cut_ms is not None:
                self._cut(copy.cut_ms, "too many records in memory are due at about the same time")
        starts = [copy.stored.from_ms for copy in self._copies.values() if copy.stored.from_ms is not None]
        if starts and not self._is_enough(min(starts)):
            self._read_backlog(min(starts))
        records = self._found.records()
        if self._cut_ms is not None:
            records = [record for record in records if record.due_ms < self._until_ms]
        return PendingResult(records, self._cut_ms, self._why)

    def _cut(self, at_ms: int, why: str) -> None:
        """Note that nothing due from then on can be listed."""
        if at_ms < self._until_ms:
            self._cut_ms = self._until_ms = at_ms
            self._why = why

    def _is_enough(self, from_ms: int) -> bool:
        """Return whether nothing that is due from then on belongs to the list."""
        last_ms = self._found.last_ms
        return from_ms >= self._until_ms or (last_ms is not None and last_ms < from_ms)

    # -- the backlog

    def _read_backlog(self, from_ms: int) -> None:
        try:
            with closing(self._open_reader()) as reader:
                self._retry(reader, from_ms)
        except (Unavailable, CorruptState, ConfigurationError) as error:
            self._cut(from_ms, f"the backlog cannot be read: {error}")

    def _retry(self, reader: PendingReader, from_ms: int) -> None:
        for _ in range(ATTEMPTS):
            if self._read_slices(reader):
                self._check(reader)
                return
        self._cut(from_ms, "what is in the backlog moved while it was read; ask again")

    def _check(self, reader: PendingReader) -> None:
        """Discard what was read if the backlog is somebody else's by now, or lost its last writes."""
        for copy in self._copies.values():
            from_ms, state = copy.stored
            if from_ms is not None and not reader.still_at(copy.partition, state):
                self._cut(
                    from_ms, f"partition {copy.partition} is being recovered, or went to another relay; ask again"
                )

    def _read_slices(self, reader: PendingReader) -> bool:
        """Read slices in the order of their time until there is enough; False if one was gone."""
        name = self._query.selection.id
        if name is None:
            return self._carry_out(reader, self._reads(reader, dict.fromkeys(self._copies, self._until_ms)))
        likely = self._likely_reads(reader, name)
        return self._carry_out(reader, likely) and self._carry_out(
            reader, self._reads(reader, self._shards_with(reader, name))
        )

    def _carry_out(self, reader: PendingReader, reads: Sequence[SliceRead]) -> bool:
        for group in self._groups(reads):
            if self._is_enough(group[0].start_ms):
                break
            if sum(read.records for read in group) > self._records_left or self._bytes_left <= 0:
                self._cut(group[0].start_ms, _too_many(group))
                break
            try:
                self._read(reader, group)
            except SliceGone:
                return False
        return True

    def _likely_reads(self, reader: PendingReader, name: bytes) -> list[SliceRead]:
        """The slices with the last schedule of an id: mostly that is the one in effect."""
        shards = self._shards_with(reader, name)
        reads = self._reads(reader, shards)
        return [read for read in reads if read.slice.end_ms >= shards[read.partition]]

    def _shards_with(self, reader: PendingReader, name: bytes) -> dict[int, int]:
        """Return the shards in whose backlog an id may wait and is not found yet, and before when it is due.

        Every id that waits in the backlog has an entry there.
        """
        shards = {}
        for partition, copy in self._copies.items():
            if copy.stored.from_ms is not None and not self._found.has(partition):
                (entry,) = reader.ids(partition, [name])
                if entry is not None:
                    shards[partition] = min(self._until_ms, entry.until_due_ms + 1)
        return shards

    def _reads(self, reader: PendingReader, shards: Mapping[int, int]) -> list[SliceRead]:
        """Return the slices of these shards that begin before the shard's time, and of which something is selected."""
        selected_ms = self._query.selection.from_ms
        reads = []
        for partition, before_ms in shards.items():
            stored_ms = self._copies[partition].stored.from_ms
            if stored_ms is None:
                continue
            from_ms = max(stored_ms, selected_ms - WIDEST_MS)
            for slice_, records in reader.slices(partition, from_ms, before_ms).items():
                if stored_ms <= slice_.start_ms < before_ms and slice_.end_ms > selected_ms:
                    reads.append(SliceRead(slice_.start_ms, partition, slice_, records))
        return sorted(reads)

    def _groups(self, reads: Iterable[SliceRead]) -> Iterator[list[SliceRead]]:
        """Consecutive slices, as many as it takes to have enough, should nothing of them be left out."""
        group: list[SliceRead] = []
        records = 0
        for place in reads:
            if group and records + place.records > min(GROUP_RECORDS, self._records_left):
                yield group
                group, records = [], 0
            group.append(place)
            records += place.records
            if records >= max(1, self._found.missing) or len(group) == GROUP:
                yield group
                group, records = [], 0
        if group:
            yield group

    def _read(self, reader: PendingReader, group: Sequence[SliceRead]) -> None:
        wanted = _by_partition(group)
        for partition, slices in wanted.items():
            reader.expect(partition, slices)
        for partition, slices in wanted.items():
            for portion in reader.read(partition, slices, self._before_ms):
                self._records_left -= len(portion.schedules)
                self._bytes_left -= portion.data_bytes
                self._found.add(partition, self._pending(reader, self._copies[partition], portion.schedules))
                if self._bytes_left <= 0:
                    self._cut(group[0].start_ms, _too_many(group))
                    return

    def _before_ms(self) -> int:
        """Return what is due from then on is of no more use."""
        last_ms = self._found.last_ms
        return self._until_ms if last_ms is None else min(self._until_ms, last_ms + 1)

    def _pending(self, reader: PendingReader, copy: ShardCopy, schedules: Sequence[Schedule]) -> Iterable[Schedule]:
        """Return those that delivery would not leave out: taken in, not done, not superseded or cancelled."""
        before_ms = self._before_ms()
        waiting = [
            schedule
            for schedule in schedules
            if schedule.offset < copy.ingested
            and not copy.done.has(schedule.due_ms, schedule.offset)
            and schedule.due_ms < before_ms
        ]
        names = list({schedule.id: None for schedule in waiting if schedule.id is not None})
        if names:
            latest = _latest(reader, copy, names)
            in_effect = (_as_put_off(schedule, latest.get(schedule.id)) for schedule in waiting)
            waiting = [schedule for schedule in in_effect if schedule is not None and schedule.due_ms < before_ms]
        if self._query.selection == EVERYTHING:
            return waiting
        takes = self._query.selection.takes
        return [schedule for schedule in waiting if takes(copy.partition, schedule)]


def _as_put_off(schedule: Schedule, state: IdState | None) -> Schedule | None:
    """Return a schedule with the time that it is put off to; None for one that is withdrawn."""
    if state is None:
        return schedule
    if state.offset > rank_of(schedule):
        return None
    if state.postponed is None or not state.puts_off(schedule):
        return schedule
    return due_at(schedule, state.postponed.due_ms)


def _latest(reader: PendingReader, copy: ShardCopy, names: Sequence[bytes]) -> Mapping[bytes | None, IdState]:
    """The latest command of each id, as of the copy.

    A command that came after the copy has hidden the one before it; its id is taken for unchanged.
    """
    states = {
        name: from_entry(entry, copy.done)
        for name, entry in zip(names, reader.ids(copy.partition, names), strict=True)
        if entry is not None
    }
    return {
        name: state for name, state in states.items() if state.until > copy.done.cursor and state.offset < copy.ingested
    }


def _by_partition(group: Iterable[SliceRead]) -> dict[int, list[Slice]]:
    slices: dict[int, list[Slice]] = {}
    for place in group:
        slices.setdefault(place.partition, []).append(place.slice)
    return slices


def _too_many(group: Sequence[SliceRead]) -> str:
    place = max(group, key=lambda place: place.records)
    return (
        f"to put further records in order, more would have to be read than a listing may: {place.records} "
        f"wait in the backlog of partition {place.partition} within {place.slice.width_ms // 1_000} s; they can be "
        "listed closer to their time"
    )
