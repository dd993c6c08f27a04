"""A shard whose backlog is bucket topics: which bucket a schedule waits in, when a bucket is visited, what follows.

Bucket k takes what is due in at least horizon * 2^k, and is visited when its first unread segment comes close: what is
near by then goes to memory, the rest moves to nearer buckets. Writes, moves and the buckets' state are committed with
what is delivered, in one transaction, so nothing here ever disagrees with the progress. Copies do no harm: they have
the same key, and what is at or below the cursor is done.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from delaytopic_api.relay import BucketStatus
from delaytopic_relay.backlog.kafka.bucket import Bucket, BucketsCopy
from delaytopic_relay.backlog.kafka.ranges import ROOM_SHARE, BucketRanges, BucketRules
from delaytopic_relay.backlog.kafka.segments import SegmentHead, encode_bucket_segment, pack_parts, packed_bytes
from delaytopic_relay.core.admission_limits import NEVER_MS
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.calendar import bytes_of
from delaytopic_relay.core.commands import Command, DueKey, Reject, Schedule
from delaytopic_relay.core.entries import Summary, ordered, sizes, summary
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.partition import ShardCore, Stored
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.errors import BucketLost

ID_BYTES = 300

_due_ms = attrgetter("due_ms")


class BucketWrite(NamedTuple):
    """A segment to write."""

    bucket: int
    floor_ms: int
    records: int
    data: bytes


class BucketPut(NamedTuple):
    """The writes for the transaction that commits them; ids without an entry are forgotten."""

    segments: list[BucketWrite]
    ids: dict[bytes, IdEntry | None]


class BucketShard(ShardCore):
    """The state machine of one source partition with bucket topics."""

    def __init__(
        self,
        partition: int,
        progress: Progress,
        start: int,
        state: BucketsState,
        ids: Mapping[bytes, IdEntry],
        rules: BucketRules,
    ) -> None:
        """`state` and `ids` are what the bucket topics hold for this shard."""
        super().__init__(partition, progress, start, rules.horizon_ms)
        self._rules = rules
        self.ranges = BucketRanges(rules)
        buckets = rules.buckets
        states = [*state.buckets, *[BucketState()] * (buckets - len(state.buckets))]
        self.buckets = [Bucket(bucket) for bucket in states]
        self.pending_ids = dict(ids)
        self._ids_bytes = sum(ID_BYTES + len(name) for name in ids)
        for entry in ids.values():
            if entry.outlives_effect:
                self.ids.withdrawn.add(entry.until_due_ms)
        self._floors = [0] * buckets
        self._filled = state.filled
        self._known_reach_ms = self._reach_ms = state.reach_ms
        self._moved: dict[int, list[Schedule]] = {}
        self._moving = 0
        self._some_large = False
        """True if some of the chunk that is taken in may be too large for the topics."""

    @property
    def size(self) -> int:
        """Return about how many bytes of memory schedules take. Ids have a bound of their own: they would stop the
        reading.
        """
        return self.calendar.size + self.far_bytes

    @property
    def ids_bytes(self) -> int:
        """Return about how many bytes of memory ids take, also of those to be written with the next commit."""
        return self._ids_bytes + ID_BYTES * self.ids.waiting

    @property
    def pending(self) -> int:
        """Schedules not yet done, in memory and in buckets (copies in buckets are counted too)."""
        waiting = sum(bucket.records for bucket in self.buckets)
        return self.calendar.count + len(self._far) + self._moving + waiting

    def waiting(self) -> Iterator[tuple[int, int, int]]:
        """Spans in which schedules wait that are not in the calendar: start, width, and how many.

        In a bucket they are as evenly spread as is known.
        """
        for schedule in chain(self._far, *self._moved.values()):
            yield schedule.due_ms, 1, 1
        for bucket in self.buckets:
            for span in bucket.spans:
                if span.records > 0:
                    yield span.first_ms, span.last_ms - span.first_ms + 1, span.records

    def stored(self) -> Stored:
        """Return what waits in buckets; its state is a `BucketsCopy`."""
        found = (bucket.waiting(number) for number, bucket in enumerate(self.buckets))
        buckets = [waiting for waiting in found if waiting is not None]
        from_ms = min((bucket.first_ms for bucket in buckets), default=None)
        return Stored(from_ms, BucketsCopy(buckets, self.pending_ids))

    def bucket_status(self) -> list[BucketStatus]:
        """Return the state of each bucket, the nearest first."""
        return [self._bucket_status(number) for number in range(len(self.ranges.waits_ms))]

    def _bucket_status(self, number: int) -> BucketStatus:
        bucket, waits_ms = self.buckets[number], self.ranges.waits_ms
        waiting = bucket.waiting(number)
        return BucketStatus(
            bucket=number,
            from_delay_ms=waits_ms[number],
            to_delay_ms=waits_ms[number + 1] if number + 1 < len(waits_ms) else None,
            split=self.ranges.is_split(number),
            pending=bucket.records,
            next_due_ms=waiting.first_ms if waiting is not None else None,
            read_at_ms=bucket.head_ms - self.lead_ms(number) if waiting is not None else None,
        )

    # -- time

    def lead_ms(self, number: int) -> int:
        """Return how long before its time a bucket is read: longer when so much waits that it takes more than a
        tick.
        """
        lead_ms = self._rules.lead_ms
        if self.buckets[number].wave(lead_ms) <= self._rules.full_records:
            return lead_ms
        return max(lead_ms, self._rules.wait_ms(number) // ROOM_SHARE)

    def advance(self, now_ms: int) -> None:
        """Move the horizon on; not while schedules are on their way to buckets that were chosen with the old one."""
        if not self._far and not self._moved:
            self.ranges.adapt(now_ms)
            floor_ms = 0
            for number, wait_ms in enumerate(self.ranges.waits_ms):
                wished_ms = self.buckets[number].floor_ms(now_ms + wait_ms)
                floor_ms = self._floors[number] = max(floor_ms, wished_ms)
            self._frontier_ms = self._floors[0]
            self._reach_ms = max(self._reach_ms, self._near_until_ms(0))
        self._bound()

    def _bound(self) -> None:
        """Note the bound before which all that is due is in memory."""
        bounds = (bucket.bound_ms for bucket in self.buckets)
        self._loaded_until_ms = min((bound for bound in bounds if bound is not None), default=NEVER_MS)
        self._loaded_until_ms = min(self._loaded_until_ms, self._frontier_ms)

    def lags(self, now_ms: int) -> bool:
        """Return whether something that is due may still be in a bucket."""
        return self._loaded_until_ms <= now_ms

    # -- taking in

    @property
    def record_bytes(self) -> int:
        """See `ShardCore.record_bytes`."""
        return self._rules.record_bytes

    def _large(self, commands: Sequence[Command]) -> Mapping[int, int]:
        """See `ShardCore._large`."""
        # The size in memory is a bound that costs less than packing.
        least, done = min(self.record_bytes, self.admission.least_bytes), self.done
        large = [
            c for c in commands if type(c) is Schedule and bytes_of(c) > least and not done.has(c.due_ms, c.offset)
        ]
        self._some_large = bool(large)
        return {schedule.offset: packed_bytes([schedule]) for schedule in large}

    def _waits(self, schedules: Sequence[Schedule], span: Summary) -> bool:
        """See `ShardCore._waits`."""
        if not super()._waits(schedules, span):
            return False
        self._some_large = sizes(schedules).largest > min(self.record_bytes, self.admission.least_bytes)
        return not self._some_large

    def _admitted(self, commands: Sequence[Command], rejects: list[Reject]) -> Sequence[Command]:
        """See `ShardCore._admitted`. What another backlog took in may be too large for this one."""
        admitted = super()._admitted(commands, rejects)
        if not self.replaying:
            return admitted
        large = self._large(admitted)
        moved = [c for c in admitted if self._filled <= c.offset < self.replay_until and c.offset in large]
        too_large = [c for c in moved if type(c) is Schedule and large[c.offset] > self.record_bytes]
        rejects += [self.admission.refuse_moved(each, large[each.offset], self.record_bytes) for each in too_large]
        return [command for command in admitted if command not in too_large] if too_large else admitted

    def _keep_far(self, far: Sequence[Schedule]) -> None:
        """Keep what waits for the next put, unless a bucket has it already.

        What is read again, and was far for whoever took it in, is in a bucket.
        """
        if self.position < self._filled and far:
            far = [s for s in far if s.offset >= self._filled or s.due_ms < self._known_reach_ms]
        # What was taken in when the topic allowed larger records is delivered from memory.
        too_large = [s for s in far if packed_bytes([s]) > self.record_bytes] if self._some_large else []
        self.calendar.add(too_large, only_here=True)
        super()._keep_far([s for s in far if s not in too_large] if too_large else far)

    # -- visiting

    def to_visit(self, now_ms: int, *, room: bool) -> list[int]:
        """The buckets whose first unread segment is close, the closest first; without `room` only what is due."""
        found = [
            (bound_ms, number)
            for number, bucket in enumerate(self.buckets)
            if (bound_ms := bucket.bound_ms) is not None and bound_ms <= now_ms + (self.lead_ms(number) if room else 0)
        ]
        return [number for _, number in sorted(found)]

    def is_next(self, number: int, head: SegmentHead, offset: int, until_ms: int) -> bool:
        """Return whether this segment of a bucket is to be visited now. Raises `BucketLost`."""
        bucket = self.buckets[number]
        if head.number > bucket.next_number:
            raise BucketLost(
                f"segments {bucket.next_number} to {head.number - 1} are missing before offset {offset}: the topic was "
                "truncated, or its retention is too short"
            )
        if bucket.again:
            return True
        bucket.saw(head.floor_ms)
        return head.floor_ms <= until_ms

    def visit(self, number: int, offset: int, head: SegmentHead, schedules: Sequence[Schedule]) -> None:
        """The bucket's next segment: what is near stays in memory, what is far moves to nearer buckets.

        What a predecessor moved on is left out when a segment is read again.
        """
        bucket = self.buckets[number]
        done, ingested = self.done, max(self.position, self.replay_until)
        reach_ms = self._known_reach_ms if bucket.again else NEVER_MS
        near_ms = self._near_until_ms(number)
        span = summary(schedules) if schedules else None
        if (
            span is not None
            and done.last_ms < span.first_ms <= span.last_ms < min(reach_ms, near_ms)
            and span.last_offset < ingested
        ):
            near, far = schedules, []
        else:
            waiting = [
                s for s in schedules if s.offset < ingested and s.due_ms < reach_ms and not done.has(s.due_ms, s.offset)
            ]
            near = [s for s in waiting if s.due_ms < near_ms]
            far = [s for s in waiting if s.due_ms >= near_ms]
        self._learn(self.look_up(self.ids.unknown(near)))
        self.ids.loaded(near)
        self.calendar.add(near, only_here=False)
        for schedule in far:
            self._move(schedule, max(0, number - 1))
        last = max(map(_key, near), default=None)
        bucket.visited(offset, head.floor_ms, head.records, last)
        self._bound()

    def _near_until_ms(self, number: int) -> int:
        """Return what stays in memory when a bucket is visited; from the nearest also what just missed the horizon."""
        return self._frontier_ms + (self._horizon_ms if number == 0 else 0)

    def _move(self, schedule: Schedule, farthest: int) -> None:
        self._moved.setdefault(min(farthest, self._bucket_of(schedule)), []).append(schedule)
        self._moving += 1
        self.far_bytes += bytes_of(schedule)

    def _bucket_of(self, schedule: Schedule) -> int:
        """The farthest bucket whose floor it is not due before; what is far fits at least the first."""
        return bisect_right(self._floors, schedule.due_ms) - 1

    def look_up(self, names: Iterable[bytes]) -> dict[bytes, IdEntry]:
        """Return what is known of these ids."""
        found = ((name, self.pending_ids.get(name)) for name in names)
        return {name: entry for name, entry in found if entry is not None}

    # -- writing

    @property
    def must_put(self) -> bool:
        """Return whether there is anything to write with the next commit."""
        return bool(self._far) or bool(self._moved) or self.ids.must_put or bool(self.ids.to_forget())

    def put(self) -> BucketPut:
        """All that waits to be written; `put_done` when it is part of the transaction."""
        groups = self._moved
        self._sort_far_into(groups)
        self._far = []
        segments: list[BucketWrite] = []
        for number, group in sorted(groups.items()):
            bucket, floor_ms = self.buckets[number], self._floors[number]
            group.sort(key=_due_ms)
            self.ranges.took(number, len(group))
            for part in pack_parts(group, self._rules.segment_bytes):
                data = encode_bucket_segment(self._rules.source_id, bucket.written, floor_ms, part)
                first, last, records = part.schedules[0], part.schedules[-1], len(part.schedules)
                segments.append(BucketWrite(number, floor_ms, records, data))
                bucket.wrote(floor_ms, first.due_ms, last.due_ms, records)
        entries: dict[bytes, IdEntry | None] = {
            # They are committed with their commands, so that none ever knows of more.
            name: entry.believed()
            for name, entry in self.ids.to_put(self.position).items()
        }
        entries.update(dict.fromkeys(self.ids.to_forget()))
        return BucketPut(segments, entries)

    def _sort_far_into(self, groups: dict[int, list[Schedule]]) -> None:
        far, first = ordered(self._far), 0
        for number, next_floor_ms in enumerate([*self._floors[1:], NEVER_MS]):
            end = bisect_left(far, next_floor_ms, lo=first, key=_due_ms)
            if end > first:
                groups.setdefault(number, []).extend(far[first:end])
            first = end

    def put_done(self, put: BucketPut, now_ms: int) -> None:
        """It was produced; should the transaction fail, this shard is dropped."""
        self._moved, self._moving, self.far_bytes = {}, 0, 0
        for name, entry in put.ids.items():
            known = self.pending_ids.pop(name, None)
            self._ids_bytes -= ID_BYTES + len(name) if known is not None else 0
            if entry is not None:
                self.pending_ids[name] = entry
                self._ids_bytes += ID_BYTES + len(name)
        self.ids.put_done()
        self.ids.forgotten()
        self.advance(now_ms)

    # -- progress

    def progress(self, owner: str) -> Progress:
        """Return what to commit now, with the state of the buckets."""
        buckets = tuple(bucket.state(self.cursor) for bucket in self.buckets)
        filled = max(self.position, self._filled)
        return super().progress(owner)._replace(buckets=BucketsState(filled, self._reach_ms, buckets, self._rules.key))


def _key(schedule: Schedule) -> DueKey:
    return DueKey(schedule.due_ms, schedule.offset)
