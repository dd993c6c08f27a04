"""Tests of a backlog that is full: what it refuses is held in memory, and everything else goes on."""

from __future__ import annotations

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.schedules import cancel, schedule
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.backlog.redis.asks import Part
from delaytopic_relay.backlog.redis.manager import CHECK_MS, FULL_MS, RedisManager
from delaytopic_relay.backlog.redis.shard import LEAST_SHARE_BYTES, MOST_HELD_BYTES, OFFERED_RECORDS
from delaytopic_relay.backlog.segments import pack
from delaytopic_relay.backlog.store import StoreVersion
from delaytopic_relay.core.entries import size
from delaytopic_relay.errors import BacklogMoved, OversizedAnswer

CLAIM = StoreVersion("me", 1, 0)
PLENTY = 1 << 30
FAR_MS = 60_000


class Store(MemoryBacklogStore):
    """Has so much left, and answers no more than some segments at once."""

    left: int | None = None
    most_segments = 1_000

    def free_bytes(self) -> int | None:
        return self.left

    def load(self, *arguments: object) -> list[bytes]:
        found = super().load(*arguments)  # type: ignore[arg-type]
        if len(found) > self.most_segments:
            raise OversizedAnswer("too large")
        return found


class Desk:
    """A shard on a backlog, and who carries out what it asks for."""

    def __init__(self) -> None:
        self.world = World()
        self.store = Store()
        self.store.put(0, None, CLAIM, [], {})
        self.events = QuietEvents()
        self.manager = RedisManager(self.store, WorldClock(self.world), self.events)
        self.shard = redis_shard(claim=CLAIM)

    def take_in(self, first: int, count: int = 1, name: bytes | None = None, after_ms: int = FAR_MS) -> None:
        due_ms = self.world.now_ms + after_ms
        self.shard.ingest([schedule(due_ms, first + number, name) for number in range(count)], first + count, {})

    def put(self) -> None:
        self.manager.put_all([self.shard])

    def tend(self, after_ms: int = 0) -> bool:
        self.world.now_ms += after_ms
        return self.manager.load_next([self.shard], PLENTY)

    @property
    def stored(self) -> int:
        """Return how many records the backlog has."""
        return sum(self.store.slices(0).values())


def test_what_a_full_backlog_refuses_holds_back_the_offset_and_not_the_position() -> None:
    desk = Desk()
    desk.store.is_full = True
    desk.take_in(7)

    desk.put()

    progress = desk.shard.progress("")
    assert (desk.stored, desk.shard.must_put, desk.shard.pending) == (0, False, 1)
    assert (progress.offset, progress.position) == (7, 8)


def test_an_attempt_that_arrives_after_the_refusal_is_refused_too_when_there_is_room() -> None:
    desk = Desk()
    desk.store.is_full = True
    desk.take_in(0)
    late = desk.shard.put(desk.world.now_ms)
    desk.put()

    desk.store.is_full = False
    with pytest.raises(BacklogMoved):
        desk.store.put(0, late.expected, late.new, late.segments, late.ids)

    assert desk.store.version(0) == desk.shard.store_version == StoreVersion("me", 3, 0)


def test_what_is_to_be_known_of_ids_goes_to_a_full_backlog() -> None:
    desk = Desk()
    desk.take_in(0, name=b"a")
    desk.put()
    desk.store.is_full = True
    desk.take_in(1, name=b"b")
    desk.shard.ingest([cancel(2, b"a")], 3, desk.manager.look_up(desk.shard, [b"a"]))

    desk.put()

    entries = desk.store.ids(0, desk.shard.store_version, [b"a", b"b"])
    assert [entry is not None and entry.offset >> 1 for entry in entries] == [2, 1]
    assert desk.shard.progress("").offset == 1


def test_what_was_refused_is_offered_again_in_portions_and_moves_the_offset_once_it_is_there() -> None:
    desk = Desk()
    desk.store.is_full = True
    desk.take_in(0, 2 * OFFERED_RECORDS)
    desk.put()
    at_once = desk.tend()
    refused_again = desk.tend(FULL_MS)
    desk.store.is_full = False

    took = [desk.tend(FULL_MS), desk.tend()]

    assert (at_once, refused_again, took) == (False, False, [True, True])
    assert (desk.stored, desk.shard.progress("").offset) == (2 * OFFERED_RECORDS, 2 * OFFERED_RECORDS)
    assert not desk.tend()


def test_what_becomes_near_is_delivered_from_memory_while_the_backlog_is_full() -> None:
    desk = Desk()
    desk.store.is_full = True
    desk.take_in(0, name=b"a")
    desk.put()

    desk.tend(FAR_MS)

    assert [each.offset for each in desk.shard.take_due(desk.world.now_ms, 10).schedules] == [0]
    assert desk.shard.progress("").offset == 1


def test_reading_pauses_when_enough_was_refused_and_not_before() -> None:
    desk = Desk()
    desk.store.is_full = True
    desk.take_in(0)
    desk.put()
    before = desk.shard.full(desk.world.now_ms, paused=False)

    desk.take_in(1, MOST_HELD_BYTES // size(schedule(0, 0)))
    desk.put()

    assert (before, desk.shard.full(desk.world.now_ms, paused=False)) == (False, True)


def test_a_full_backlog_is_not_asked_with_each_tick() -> None:
    desk = Desk()
    desk.store.is_full = True
    for offset in range(20):
        desk.take_in(offset)
        desk.put()

    assert len(desk.events.errors) == 1


def test_by_default_the_shards_may_take_as_much_as_the_backlog_has_left() -> None:
    desk = Desk()
    desk.manager.share_what_is_free(4)
    shares = []
    for left in (None, 40 << 20, 1):
        desk.store.left = left
        desk.tend(CHECK_MS)
        shares.append(desk.shard.share.limit_bytes)

    assert shares == [1 << 62, 10 << 20, LEAST_SHARE_BYTES]


def test_a_portion_that_is_too_large_is_read_in_smaller_ones() -> None:
    desk = Desk()
    for offset in range(9):
        desk.take_in(offset)
        desk.put()
    desk.store.most_segments = 1

    desk.tend(FAR_MS)

    assert desk.shard.calendar.count == 9


def test_a_single_segment_that_is_too_large_makes_the_backlog_count_as_lost() -> None:
    desk = Desk()
    desk.take_in(0)
    desk.put()
    desk.store.most_segments = 0

    with pytest.raises(BacklogMoved, match="counts as lost, and is filled again: too large"):
        desk.tend(FAR_MS)

    assert desk.store.version(0) is None


def test_a_part_of_a_wide_slice_ends_where_there_is_no_more_room_and_has_what_is_due_in_any_case() -> None:
    part = Part(1_000, 3_000, 60_000, 10 * size(schedule(0, 0)) - 1)

    for offset, due_ms in enumerate(range(0, 60_000, 500)):
        part.add([schedule(due_ms, offset)])
    roomy = [each.due_ms for each in part.cut()], part.until_ms
    tight = Part(1_000, 3_000, 60_000, 0)
    tight.add([schedule(due_ms, due_ms) for due_ms in range(0, 60_000, 500)])

    assert roomy == ([*range(1_000, 5_000, 500)], 5_000)
    assert ([each.due_ms for each in tight.cut()], tight.until_ms) == ([1_000, 1_500, 2_000, 2_500], 3_000)


def test_segments_are_cut_at_a_mebibyte_unless_a_single_record_is_larger() -> None:
    records = [schedule(1_000, offset, value=bytes(size)) for offset, size in enumerate([600_000, 600_000, 3_000_000])]

    assert [segment.records for segment in pack(records, 0)] == [1, 1, 1]
    assert [segment.records for segment in pack(records[:1] + records[:1], 0)] == [1, 1]
    assert [segment.records for segment in pack([schedule(1_000, offset) for offset in range(501)], 0)] == [500, 1]


def test_what_is_due_is_loaded_without_room_where_what_was_refused_alone_waits_in_memory() -> None:
    desk = Desk()
    desk.take_in(0)
    desk.put()
    desk.store.is_full = True
    desk.take_in(1, after_ms=100 * FAR_MS)
    desk.put()
    desk.world.now_ms += FAR_MS

    for _ in range(3):
        desk.manager.load_next([desk.shard], 0)

    assert (desk.shard.calendar.count, desk.shard.wake_ms()) == (1, desk.world.now_ms)
