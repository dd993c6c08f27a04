"""A shard whose backlog is sliced by due time: what to put there, what to load from it, what to drop.

Pure: every method takes plain data and the time, and returns what the caller has to do. The caller
does it in the order that `ShardCore` names.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from delaytopic_api.values import Quantity
from delaytopic_relay.backlog.redis.asks import Load, Part, Portion, Put, Write
from delaytopic_relay.backlog.segments import pack
from delaytopic_relay.backlog.slices import EARLIEST_MS, NARROW_MS, cascades_at_ms, is_narrow
from delaytopic_relay.backlog.store import END_MS, Page, Segment, Slice, StoreVersion
from delaytopic_relay.core.calendar import bytes_of
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.entries import SCHEDULE_BYTES, sizes, summary
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.partition import ShardCore, Share, Stored
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.rules import Generation

PORTION_BYTES = 1 << 20
FIRST_PORTION = 16
LARGEST_PORTION = 256
MOST_COMPANIONS = 64
UNLIMITED_BYTES = 1 << 62
RESUME_SHARE = 0.75
"""The part of the share in the backlog below which reading goes on after it had paused."""
LEAST_SHARE_BYTES = 256 << 10
"""A share of what is left is not less: who has so little there has not filled it."""
MOST_HELD_BYTES = 4 << 20
"""The bound of what a full backlog has refused; from there on reading pauses. Until then what is near goes on."""
OFFERED_RECORDS = 500
OFFERED_BYTES = 1 << 20
"""Refused records are offered again in portions of so many records and bytes at the most."""


def share_bytes_of(memory: Quantity | None, partitions: int) -> int:
    """Return the share of one partition of what a DelayTopic may keep in Redis."""
    return memory.value // partitions if memory is not None else UNLIMITED_BYTES


class RedisShard(ShardCore):
    """The state machine of one source partition with a backlog.

    The backlog's schedule is read page by page (`listed`). `index` has all slices that begin before
    `listed_until_ms` and were not loaded; what is put into later ones is found with their page.

    A full backlog takes no segments. What it has refused is held in memory until there is room or it is near, and holds
    back the committed offset. Wide slices wait as they are; one that begins is loaded from where it is.
    """

    def __init__(
        self,
        partition: int,
        progress: Progress,
        start: int,
        version: StoreVersion,
        horizon_ms: int,
        share_bytes: int = UNLIMITED_BYTES,
    ) -> None:
        """`progress` is what is committed, `start` where reading begins, `version` the claimed backlog's.

        From `share_bytes` in the backlog on, reading pauses.
        """
        super().__init__(partition, progress, start, horizon_ms)
        self.store_version = version
        self.share_bytes = share_bytes
        self.stored_bytes = 0
        self.over_share = False
        self.refused = False
        """True if the backlog was full when it was asked last to take segments."""
        self._token = self._committed_token = version.owner
        self._held: list[Schedule] = []
        """The far schedules that the backlog has refused."""
        self._offered: list[Schedule] = []
        """The refused schedules that go with the touch."""
        self.held_bytes = 0
        self._direct: dict[Slice, int] = {}
        """Wide slices that are loaded as they are, and the due time up to which they were."""
        self._part: Part | None = None
        """The part of the current slice that is loaded from a wide one as it is."""
        self.index: dict[Slice, int] = {}
        self.listed_until_ms = 0
        self._agenda: list[tuple[int, bool, Slice]] = []
        """The time to begin each slice; wide ones that wait as they are come before narrow ones of that time."""
        self._current: Slice | None = None
        self._next_segment = 0
        self._portion = FIRST_PORTION
        self.tags: set[bytes] = set()
        """The marks of the current slice's segments, as far as they came: of copies one counts."""
        self.halved = False
        """True if portions of the current slice had to be smaller."""
        self._mean_record_bytes = PORTION_BYTES
        self._unloaded = 0
        self._records = 0
        self._loaded: list[Slice] = []
        self._touch: Put | None = None
        self._early: list[Schedule] = []
        """The far schedules whose write has begun (`put_early`)."""
        self._early_bytes = 0

    @property
    def must_put(self) -> bool:
        """See `ShardCore.must_put`."""
        return bool(self._early) or super().must_put

    @property
    def pending(self) -> int:
        """Schedules not yet done, in memory and in the backlog (copies in the backlog are counted too)."""
        unwritten = len(self._early) + len(self._far) + len(self._offered) + len(self._held)
        return self.calendar.count + unwritten + sum(self.index.values()) + self._unloaded

    def waiting(self) -> Iterator[tuple[int, int, int]]:
        """Spans in which schedules wait that are not in the calendar: start, width, and how many."""
        unwritten = chain(self._early, self._far, self._offered, self._held)
        yield from ((schedule.due_ms, 1, 1) for schedule in unwritten)
        yield from ((slice_.start_ms, slice_.width_ms, records) for slice_, records in self.index.items())
        if self._current is not None and self._unloaded:
            yield self._current.start_ms, self._current.width_ms, self._unloaded

    def note_stored(self, stored_bytes: int) -> None:
        """Note how many bytes the shard takes in the backlog, after a write."""
        self.stored_bytes = stored_bytes
        self.over_share = stored_bytes >= self.share_bytes * (RESUME_SHARE if self.over_share else 1)

    def note_share(self, share_bytes: int) -> None:
        """Note how many bytes the shard may take in the backlog, from now on."""
        self.share_bytes = share_bytes
        self.note_stored(self.stored_bytes)

    def full(self, now_ms: int, *, paused: bool) -> bool:
        """Return whether reading on can wait: the backlog has as much of this shard as it may have, or soon will."""
        return (
            self.held_bytes >= MOST_HELD_BYTES
            or self.over_share
            or self.stored_bytes + self.far_bytes >= self.share_bytes
        )

    @property
    def share(self) -> Share:
        """See `ShardCore.share`."""
        return Share(self.stored_bytes, self.share_bytes, self.over_share, self.held_bytes)

    def stored(self) -> Stored:
        """Return the time before which nothing waits in the backlog, and the backlog's version."""
        current = [self._current] if self._current is not None else []
        unlisted = [self.listed_until_ms] if not self.counted else []
        from_ms = min([*(slice_.start_ms for slice_ in (*self.index, *current)), *unlisted], default=None)
        return Stored(from_ms, self.store_version)

    # -- the schedule

    @property
    def counted(self) -> bool:
        """True once the whole schedule was read."""
        return self.listed_until_ms == END_MS

    def must_list(self, now_ms: int) -> bool:
        """Return whether slices that have to be loaded may be among those that are not listed."""
        return self.listed_until_ms < self._target_ms(now_ms) + EARLIEST_MS

    def listed(self, page: Page) -> None:
        """Add the next page of the schedule, read at `store_version` from `listed_until_ms` on."""
        self.listed_until_ms = page.until_ms
        for slice_, records in page.slices.items():
            self._add(slice_, records)

    def _add(self, slice_: Slice, records: int) -> None:
        if slice_ not in self.index:
            self.index[slice_] = 0
            heapq.heappush(self._agenda, (_agenda_ms(slice_), True, slice_))
        self.index[slice_] += records
        self._direct.pop(slice_, None)

    # -- the backlog

    def put(self, now_ms: int) -> Put:
        """The write that makes the backlog hold all that is far and was taken in."""
        return self._put_far(now_ms, self.ids.to_put(max(self.position, self.replay_until)), Write.PUT)

    def _put_far(self, now_ms: int, ids: dict[bytes, IdEntry], kind: Write) -> Put:
        new = self._next_version(max(self.committed_offset, self.store_version.offset))
        return Put(self.store_version, new, pack(self._far, now_ms), ids, kind)

    def progress(self, owner: str) -> Progress:
        """Return what to commit: what the backlog has refused holds back the offset."""
        progress = super().progress(owner)
        held = chain(self._offered, self._held)
        lowest = min((schedule.offset for schedule in held), default=progress.offset)
        return progress._replace(offset=min(progress.offset, lowest))

    def acknowledged(self, put: Put) -> None:
        """The backlog has carried out a write; `Write` says what follows."""
        self.store_version = put.new
        self._indexed(put.segments)
        match put.kind:
            case Write.PUT:
                self._far, self.far_bytes = [], 0
                self.ids.put_done()
            case Write.EARLY:
                self.far_bytes -= self._early_bytes
                self._early, self._early_bytes = [], 0
            case Write.TOUCH:
                self.held_bytes -= sizes(self._offered).total
                self._offered, self._touch = [], None
            case Write.CASCADE:
                assert put.portion is not None
                self._next_portion(*put.portion)

    def note_refusal(self, put: Put, reached: StoreVersion, stored: Sequence[Segment], now_ms: int) -> None:
        """A full backlog has refused a write, or what came after the segments that are `stored`, at `reached`.

        A former attempt may still be on its way to a backlog that has room by then. So the next thing is a touch that
        leaves out the put's version: either the attempt is there before it, and is noticed, or it is refused.
        """
        self.refused = True
        self._held, self._offered = self._offered + self._held, []
        self.store_version = reached
        self._indexed(stored)
        offset = max(self.committed_offset, reached.offset)
        new = StoreVersion(self._token, put.new.counter + 1, offset)
        self._touch = Put(reached, new, [], {}, Write.TOUCH)
        match put.kind:
            case Write.PUT | Write.EARLY:
                self.hold()
            case Write.CASCADE:
                assert put.portion is not None
                self._wait_as_it_is(put.portion, now_ms)

    @property
    def unwritten_bytes(self) -> int:
        """Return about how many bytes of memory `put_early` would begin to write; none while it is being written."""
        return 0 if self._early or self.held_bytes or self.touching else self.far_bytes

    def put_early(self, now_ms: int) -> Put:
        """Begin to write what is far, while more is taken in: the first part of the next put, as it were.

        Nothing else is asked of the backlog until it is acknowledged. Ids go with the put itself: until then a later
        command may change what is to be said of them.
        """
        put = self._put_far(now_ms, {}, Write.EARLY)
        self._early, self._early_bytes, self._far = self._far, self.far_bytes, []
        return put

    # -- a full backlog

    def hold(self) -> None:
        """Keep in memory what is far until the backlog has room, and what is to be known of its ids."""
        self.ids.loaded([*self._early, *self._far])
        self._held += self._early + self._far
        self.held_bytes += self.far_bytes
        self._early, self._early_bytes, self._far, self.far_bytes = [], 0, [], 0

    def offer(self, now_ms: int) -> None:
        """Let the next touch take along the first of what is held; with nothing of that the backlog is not refusing."""
        if self.touching:
            return
        count = size = 0
        while count < min(len(self._held), OFFERED_RECORDS) and (not count or size < OFFERED_BYTES):
            size += bytes_of(self._held[count])
            count += 1
        self.refused = count > 0
        if self.refused:
            self._offered, self._held = self._held[:count], self._held[count:]
            self._touch = self.touch()._replace(segments=pack(self._offered, now_ms))

    def _advance(self, frontier_ms: int) -> None:
        """Hold in memory all that is due before a time; of what was held, this is to leave in its turn."""
        if frontier_ms <= self._frontier_ms:
            return
        self._frontier_ms = frontier_ms
        if near := [schedule for schedule in self._held if schedule.due_ms < frontier_ms]:
            self._held = [schedule for schedule in self._held if schedule.due_ms >= frontier_ms]
            self.held_bytes -= sizes(near).total
            self.calendar.add(near, only_here=True)

    @property
    def touching(self) -> bool:
        """True while a touch is not yet acknowledged: it goes before any other write."""
        return self._touch is not None

    def touch(self) -> Put:
        """A write that moves the backlog's version on; the same again until it is acknowledged.

        It is empty, but for what the backlog had refused before (`offer`).

        A write without an answer may have happened. Another one with the same versions and other contents
        would then be taken for its repetition.
        """
        if self._touch is None:
            new = self._next_version(max(self.committed_offset, self.store_version.offset))
            self._touch = Put(self.store_version, new, [], {}, Write.TOUCH)
        return self._touch

    def renamed(self, until_committed: str, then: str) -> Put:
        """Return the touch by which the claim gets another token, and another one once rules are committed.

        Nothing is read or written before that.
        """
        self._token, self._committed_token = until_committed, then
        return self.touch()

    def follow(self, generations: Sequence[Generation], floor: int) -> None:
        """See `ShardCore.follow`. What is written from now on says by which rules."""
        super().follow(generations, floor)
        self._token = self._committed_token

    def _next_version(self, offset: int) -> StoreVersion:
        return StoreVersion(self._token, self.store_version.counter + 1, offset)

    def _indexed(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            if segment.slice.start_ms < self.listed_until_ms:
                self._add(segment.slice, segment.records)

    def next_load(self, now_ms: int, *, room: bool, ahead_bytes: int = 0) -> Load | None:
        """The next portion to load, or None when all within the horizon is in memory.

        Without `room` in memory no new slice is begun: the horizon shrinks, and what is due goes first. It is begun all
        the same where a full backlog has refused something, and nothing in memory may leave before. Of a wide slice
        that is loaded as it is, `ahead_bytes` may come that are due beyond the horizon, so that it is read less often.
        While something is on its way to the backlog (`must_put`), or has to be listed first, nothing is begun either.
        """
        if self._current is None and not self._begin(now_ms, ahead_bytes, room=room):
            return None
        assert self._current is not None
        return Load(self._current, self._next_segment, self._portion)

    def _target_ms(self, now_ms: int) -> int:
        return (now_ms + self._horizon_ms) // NARROW_MS * NARROW_MS + NARROW_MS

    def _begin(self, now_ms: int, ahead_bytes: int, *, room: bool) -> bool:
        # What a full backlog has refused waits in memory, perhaps for days, and what would give its room back may come
        # after what is in the backlog.
        starves = not room and (self.refused or self.held_bytes > 0) and self.wake_ms() is None
        if not (room or starves) or self.must_put or self.must_list(now_ms):
            return False
        target_ms = self._target_ms(now_ms)
        while self._agenda and self._agenda[0][0] < target_ms:
            at_ms, _, slice_ = heapq.heappop(self._agenda)
            if is_narrow(slice_) or not self.refused or at_ms >= slice_.start_ms:
                self._begin_with(slice_, target_ms, ahead_bytes)
                return True
            heapq.heappush(self._agenda, (slice_.start_ms, False, slice_))
        self._advance(target_ms)
        self._loaded_until_ms = self._frontier_ms
        return False

    def _begin_with(self, slice_: Slice, target_ms: int, ahead_bytes: int) -> None:
        self._current, self._next_segment, self._portion = slice_, 0, FIRST_PORTION
        self._unloaded = self._records = self.index.pop(slice_, 0)
        self._part, self.halved, self.tags = None, False, set()
        if is_narrow(slice_):
            self._loaded_until_ms = max(self._loaded_until_ms, slice_.start_ms)
            self._advance(slice_.end_ms)
        elif self.refused or slice_ in self._direct:
            # Everything that is due before the part which comes now is in memory.
            from_ms = self._direct.get(slice_, slice_.start_ms)
            self._loaded_until_ms = max(self._loaded_until_ms, from_ms)
            self._advance(target_ms)
            self._part = Part(from_ms, target_ms, slice_.end_ms, ahead_bytes)

    def loaded(
        self, load: Load, data_bytes: int, schedules: Sequence[Schedule], found: Mapping[bytes, IdEntry]
    ) -> None:
        """A portion of a narrow slice arrived; `found` are the backlog's entries for `ids.unknown(schedules)`.

        Entries at or above the position were put by a predecessor that never committed them: they are
        read again from the source. What is done is left out.
        """
        self._learn(found)
        position, done = self.position, self.done
        span = summary(schedules) if schedules else None
        if span is not None and span.last_offset < position and span.first_ms > done.last_ms:
            fresh = schedules
        else:
            last_ms = done.last_ms
            fresh = [
                s for s in schedules if s.offset < position and (s.due_ms > last_ms or not done.has(s.due_ms, s.offset))
            ]
        self.ids.loaded(fresh)
        self.calendar.add(fresh, only_here=False)
        self._next_portion(load, data_bytes, len(schedules))

    def look_through(self, load: Load, data_bytes: int, schedules: Sequence[Schedule]) -> None:
        """A portion of a wide slice arrived that is loaded as it is: keep what belongs to the part."""
        assert self._part is not None
        self._part.add(schedules)
        self._next_portion(load, data_bytes, len(schedules))

    def looked_through(self) -> Sequence[Schedule]:
        """Return the part of a wide slice that goes to memory, once all of the slice has come: as `loaded`."""
        return self._part.cut() if self._part is not None else ()

    def cascade(self, load: Load, data_bytes: int, schedules: Sequence[Schedule], now_ms: int) -> Put:
        """A portion of a wide slice arrived: the write that spreads it over narrower ones."""
        width_below = load.slice.width_ms
        near_ms = max(now_ms, cascades_at_ms(load.slice))
        segments = pack(schedules, near_ms)
        assert all(segment.slice.width_ms < width_below for segment in segments)
        new = self._next_version(self.store_version.offset)
        portion = Portion(load, data_bytes, sum(segment.records for segment in segments))
        return Put(self.store_version, new, segments, {}, Write.CASCADE, portion)

    def _wait_as_it_is(self, portion: Portion, now_ms: int) -> None:
        """Leave the current slice as it is until it begins, and is then loaded from there."""
        slice_ = portion.load.slice
        self._mean_record_bytes = max(1, portion.data_bytes // max(1, portion.records))
        self._put_back(slice_, slice_.start_ms)
        if slice_.start_ms < self._target_ms(now_ms):
            self._direct[slice_] = slice_.start_ms

    def _put_back(self, slice_: Slice, at_ms: int) -> None:
        """Leave the current slice in the index, to be begun anew."""
        heapq.heappush(self._agenda, (at_ms, False, slice_))
        self.index[slice_] = self.index.get(slice_, 0) + self._records
        self._current = None
        self._unloaded = 0

    def halve(self) -> bool:
        """Load the current slice alone, then in smaller portions; return False if they cannot be smaller."""
        smaller = self._portion > 1 or not self.halved
        self._portion, self.halved = max(1, self._portion // 4), True
        return smaller

    def _next_portion(self, load: Load, data_bytes: int, records: int) -> None:
        self._unloaded = max(0, self._unloaded - records)
        self._next_segment = load.first + load.segments
        mean_bytes = max(1, data_bytes // load.segments)
        self._portion = max(1, min(LARGEST_PORTION, PORTION_BYTES // mean_bytes))
        if records:
            self._mean_record_bytes = max(1, data_bytes // records)

    def companions(self, now_ms: int, room_bytes: int) -> list[Slice]:
        """Slices that come after the current one, and are thin enough to be fetched with it; wide ones are not.

        Together they fit into a portion, and into the room that is left in memory. They stay what they are only
        until the next put.
        """
        if not self._agenda or self._agenda[0][0] >= self._target_ms(now_ms):
            return []
        found: list[Slice] = []
        mean_bytes = self._mean_record_bytes
        room = min(PORTION_BYTES // mean_bytes, room_bytes // (SCHEDULE_BYTES + mean_bytes)) - self._unloaded
        for agenda_ms, _, slice_ in heapq.nsmallest(MOST_COMPANIONS, self._agenda):
            room -= self.index.get(slice_, 0)
            if room < 0 or not is_narrow(slice_) or agenda_ms >= self._target_ms(now_ms):
                break
            found.append(slice_)
        return found

    @property
    def current(self) -> Slice | None:
        """The slice that is being loaded."""
        return self._current

    @property
    def missing(self) -> int:
        """Schedules that were put into the current slice, and have not come from it."""
        return self._unloaded

    def skipped(self, load: Load, data_bytes: int) -> None:
        """A portion had nothing in it that a relay wrote."""
        self._next_portion(load, data_bytes, 0)

    def load_finished(self) -> None:
        """The current slice has no further segments."""
        assert self._current is not None
        if is_narrow(self._current):
            self._loaded_until_ms = max(self._loaded_until_ms, self._current.end_ms)
        if self._part is not None:
            # What was put there meanwhile, by a clock that was set back, may be due in a part that was loaded before.
            until_ms = self._part.until_ms if self._current not in self.index else self._current.start_ms
            self._direct[self._current] = until_ms
            is_over = until_ms == self._current.end_ms
            if not is_over:
                self._put_back(self._current, until_ms)
            # What comes next may have to wait until this has left, and makes room.
            next_ms = min(self._part.least_ms, *(until_ms, *(self._agenda[0][:1] if self._agenda else ())))
            self._loaded_until_ms = max(self._loaded_until_ms, next_ms)
            if not is_over:
                return
        self._loaded.append(self._current)
        self._current = None
        self._unloaded = 0

    def loads_whole(self, load: Load) -> bool:
        """True if the portion goes to memory; otherwise it cascades."""
        return is_narrow(load.slice)

    @property
    def looks_through(self) -> bool:
        """True if the current slice is a wide one that is loaded as it is."""
        return self._part is not None

    # -- done

    def droppable(self) -> tuple[list[Slice], list[bytes]]:
        """Slices and ids that are done with; to be asked after a commit, before anything else is taken in."""
        next_due_ms = self.calendar.next_due_ms()
        slices = [
            slice_
            for slice_ in self._loaded
            if slice_ not in self.index and (self._has_cascaded(slice_) or _is_over(slice_, next_due_ms))
        ]
        return slices, self.ids.to_forget() if slices else []

    def _has_cascaded(self, slice_: Slice) -> bool:
        return not is_narrow(slice_) and slice_ not in self._direct

    def dropped(self, slices: Sequence[Slice]) -> None:
        """The backlog forgot them."""
        gone = set(slices)
        self._loaded = [slice_ for slice_ in self._loaded if slice_ not in gone]
        self._direct = {slice_: until_ms for slice_, until_ms in self._direct.items() if slice_ not in gone}
        self.ids.forgotten()


def _agenda_ms(slice_: Slice) -> int:
    return slice_.start_ms if is_narrow(slice_) else cascades_at_ms(slice_)


def _is_over(slice_: Slice, next_due_ms: int | None) -> bool:
    return next_due_ms is None or slice_.end_ms <= next_due_ms
