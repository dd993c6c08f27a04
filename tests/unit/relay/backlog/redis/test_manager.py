"""Tests of what is asked of the backlog between ticks, and what happens when it does not answer."""

from __future__ import annotations

import pytest
from tests.support.relay.backlog.flaky_store import FlakyStore
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.schedules import cancel, schedule
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.backlog.redis.manager import CHECK_MS, PATIENCE_MS, PAUSE_MS, RedisManager, Writing
from delaytopic_relay.backlog.segments import encode_segment
from delaytopic_relay.backlog.signing import MAGIC, MARK_BYTES, UNSIGNED, SegmentSigner, slice_place
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.errors import BacklogMoved, BacklogUnavailable, TransactionAborted

CLAIM = StoreVersion("me", 1, 0)
PLENTY = 1 << 30
FAR_MS = 60_000
KEY = SegmentSigner("shop", [b"key"])


class Desk:
    """A shard that has claimed its backlog, and the storing between them."""

    def __init__(self, signer: SegmentSigner = UNSIGNED) -> None:
        self.world = World()
        self.store = FlakyStore(self.world)
        self.store.put(0, None, CLAIM, [], {})
        self.events = QuietEvents()
        self.manager = RedisManager(self.store, WorldClock(self.world), self.events, Writing(signer))
        self.shard = redis_shard(claim=CLAIM)

    def take_in_far(self, offset: int, name: bytes | None = None) -> None:
        self.shard.ingest([schedule(self.world.now_ms + FAR_MS, offset, name)], offset + 1, {})

    def tend(self) -> None:
        self.manager.load_next([self.shard], PLENTY)

    def put(self) -> None:
        self.manager.put_all([self.shard])

    @property
    def stored(self) -> int:
        """Return how many records the backlog has."""
        return sum(self.store.slices(0).values())


def test_what_is_far_is_in_the_backlog_before_the_commit() -> None:
    desk = Desk()
    desk.take_in_far(0)

    desk.put()

    assert (desk.stored, desk.shard.must_put, desk.store.version(0)) == (1, False, StoreVersion("me", 2, 0))


def test_with_nothing_far_the_backlog_is_not_asked() -> None:
    desk = Desk()
    desk.store.away = True

    desk.put()

    assert desk.events.errors == []


def test_a_put_is_repeated_until_it_is_answered() -> None:
    desk = Desk()
    desk.take_in_far(0)
    desk.store.deaf_puts = 3
    started_ms = desk.world.now_ms

    desk.put()

    assert (desk.stored, desk.world.now_ms - started_ms) == (1, 3 * PAUSE_MS)
    assert [str(error) for error in desk.events.errors] == ["timed out"] * 3


def test_a_tick_is_given_up_when_a_put_stays_unanswered() -> None:
    desk = Desk()
    desk.take_in_far(0)
    desk.store.away = True
    started_ms = desk.world.now_ms

    with pytest.raises(TransactionAborted, match="the backlog has not answered for 10000 ms: connection refused"):
        desk.put()

    assert desk.world.now_ms - started_ms == PATIENCE_MS


def test_the_version_follows_the_committed_offset_within_a_second() -> None:
    desk = Desk()
    desk.tend()
    desk.shard.committed_offset = 7

    desk.world.now_ms += CHECK_MS - 1
    desk.tend()
    before = desk.store.version(0)
    desk.world.now_ms += 1
    desk.tend()

    assert (before, desk.store.version(0), desk.shard.store_version) == (CLAIM, *[StoreVersion("me", 2, 7)] * 2)


def test_a_move_of_the_version_that_goes_unanswered_is_settled_before_the_next_put() -> None:
    # Given that the backlog moved on, and the shard does not know it
    desk = Desk()
    desk.shard.committed_offset = 7
    desk.store.deaf_puts = 1
    desk.tend()
    assert (desk.store.version(0), desk.shard.store_version) == (StoreVersion("me", 2, 7), CLAIM)

    # When a put would lead to the same version
    desk.take_in_far(8)
    desk.put()

    # Then it is not taken for a repetition of the move
    assert (desk.stored, desk.store.version(0)) == (1, StoreVersion("me", 3, 7))


def test_a_move_of_the_version_that_goes_unanswered_is_settled_before_ids_are_looked_up() -> None:
    desk = Desk()
    desk.take_in_far(0, b"a")
    desk.put()
    desk.shard.committed_offset = 1
    desk.store.deaf_puts = 1
    desk.world.now_ms += CHECK_MS
    desk.tend()

    found = desk.manager.look_up(desk.shard, desk.shard.ids.unknown([cancel(1, b"a"), cancel(2, b"b")]))

    assert {name: state.offset for name, state in found.items()} == {b"a": 0}


def test_without_names_nothing_is_looked_up() -> None:
    desk = Desk()
    desk.store.away = True

    assert desk.manager.look_up(desk.shard, []) == {}


def test_another_owner_is_noticed_within_a_second() -> None:
    desk = Desk()
    desk.tend()
    desk.store.put(0, CLAIM, StoreVersion("somebody else", 2, 0), [], {})
    desk.tend()

    desk.world.now_ms += CHECK_MS

    with pytest.raises(BacklogMoved):
        desk.tend()


def test_a_backlog_that_is_away_is_left_alone_for_a_moment() -> None:
    desk = Desk()
    desk.store.away = True
    for _ in range(5):
        desk.tend()
    at_first = len(desk.events.errors)

    desk.world.now_ms += 2 * PAUSE_MS
    desk.tend()

    assert (at_first, len(desk.events.errors)) == (1, 2)
    assert {type(error) for error in desk.events.errors} == {BacklogUnavailable}


def test_what_cannot_be_dropped_now_is_dropped_after_a_later_commit() -> None:
    # Given a record that came back from the backlog and left
    desk = Desk()
    desk.take_in_far(0)
    desk.put()
    desk.world.now_ms += FAR_MS
    desk.tend()
    desk.shard.take_due(desk.world.now_ms, 10)

    desk.store.away = True
    desk.manager.drop_done([desk.shard])
    desk.store.away = False
    kept = desk.stored
    desk.manager.drop_done([desk.shard])

    assert (kept, desk.stored) == (1, 0)


def far_slice(desk: Desk) -> Slice:
    """Return where a record waits that is taken in now."""
    due_ms = desk.world.now_ms + FAR_MS
    return Slice(due_ms - due_ms % 1_000, 1_000)


def push(desk: Desk, slice_: Slice, *data: bytes) -> None:
    """Write into the backlog what no relay writes."""
    desk.store._shards["", 0].segments[slice_][:0] = data


@pytest.mark.parametrize("signer", [UNSIGNED, KEY], ids=["unsigned", "signed"])
def test_a_genuine_segment_of_a_newer_version_stops_its_shard_and_is_read_again_later(signer: SegmentSigner) -> None:
    desk = Desk(signer)
    slice_ = far_slice(desk)
    desk.take_in_far(0)
    desk.put()
    place, mark = slice_place(0, slice_), bytes(MARK_BYTES)
    newer = KEY.sign(place, b"\x02 whatever", mark) if signer is KEY else MAGIC + bytes(16) + mark + b"\x02"
    push(desk, slice_, newer)
    desk.world.now_ms += FAR_MS
    desk.tend()
    said = desk.manager.unreadable[0]
    desk.world.now_ms += 1_000
    desk.tend()
    tries = len(desk.events.errors)

    desk.store._shards["", 0].segments[slice_].remove(newer)
    desk.world.now_ms += 60_000
    desk.tend()

    assert said.startswith(f"slice {slice_}: a segment starts with version byte 02, this relay reads 01")
    assert (tries, desk.manager.unreadable, desk.shard.calendar.count) == (1, {}, 1)


@pytest.mark.parametrize("signer", [UNSIGNED, KEY], ids=["unsigned", "signed"])
def test_a_byte_at_the_head_of_what_is_no_segment_keeps_no_shard_from_its_segments(signer: SegmentSigner) -> None:
    desk = Desk(signer)
    slice_ = far_slice(desk)
    desk.take_in_far(0)
    desk.put()
    push(desk, slice_, b"", *(bytes([byte]) + b" nonsense" for byte in range(256)))

    desk.world.now_ms += FAR_MS
    for _ in range(40):
        desk.tend()

    assert (desk.manager.unreadable, desk.shard.calendar.count, len(desk.events.skipped)) == ({}, 1, 257)
    place = f"partition 0, slice {slice_.start_ms}:1000, element 0 of the list in Redis: it is empty"
    assert desk.events.skipped[0] == (0, place)


def test_with_a_key_nothing_is_believed_that_it_has_not_signed_for_this_place() -> None:
    # Given segments of a stranger, and genuine ones from elsewhere
    desk = Desk(KEY)
    slice_ = far_slice(desk)
    forged = encode_segment([schedule(desk.world.now_ms + FAR_MS, -1)])
    desk.take_in_far(0)
    desk.put()
    place = slice_place(0, slice_)
    push(
        desk,
        slice_,
        forged,
        MAGIC + bytes(16) + forged,
        SegmentSigner("shop", [b"other key"]).sign(place, forged),
        SegmentSigner("payments", [b"key"]).sign(place, forged),
        KEY.sign(slice_place(1, slice_), forged, bytes(MARK_BYTES)),
        KEY.sign(slice_place(0, Slice(slice_.start_ms, 60_000)), forged, bytes(MARK_BYTES)),
        KEY.sign(place, forged, bytes(MARK_BYTES))[:-1] + b"\x01",
    )

    desk.world.now_ms += FAR_MS
    desk.tend()

    assert (desk.shard.calendar.count, len(desk.events.skipped), desk.manager.unreadable) == (1, 7, {})


def test_segments_of_an_earlier_key_are_read_while_the_file_has_it() -> None:
    desk = Desk(KEY)
    desk.take_in_far(0)
    desk.put()
    desk.manager = RedisManager(
        desk.store, WorldClock(desk.world), desk.events, Writing(SegmentSigner("shop", [b"new", b"key"]))
    )

    desk.world.now_ms += FAR_MS
    desk.tend()

    assert (desk.shard.calendar.count, desk.events.skipped) == (1, [])


def test_a_slice_that_lacks_what_was_put_there_makes_the_backlog_count_as_lost_and_never_the_records() -> None:
    desk = Desk()
    slice_ = far_slice(desk)
    desk.take_in_far(0)
    desk.put()
    desk.store.damaged = {0}
    desk.world.now_ms += FAR_MS

    with pytest.raises(BacklogMoved, match=f"counts as lost, and is filled again: slice .*{slice_.start_ms}.* lacks 1"):
        desk.tend()

    assert (desk.store.version(0), desk.store.slices(0)) == (None, {})


def test_a_wide_slice_with_schedules_of_another_ends_all_the_same() -> None:
    # Given a stranger's segment in a slice of a minute, that would spread into slices no narrower
    desk = Desk()
    due_ms = desk.world.now_ms + 3_600_000
    desk.shard.ingest([schedule(due_ms, 0)], 1, {})
    desk.put()
    (slice_,) = desk.store.slices(0)
    push(desk, slice_, encode_segment([schedule(due_ms + 90_000_000, -1)]))

    desk.world.now_ms = slice_.start_ms - 120_000
    desk.tend()

    assert (slice_.width_ms, {each.width_ms for each in desk.shard.index}) == (60_000, {1_000})
    assert len(desk.events.skipped) == 1
