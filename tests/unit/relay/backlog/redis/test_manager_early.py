"""Tests of writes into Redis that begin before a commit asks for them."""

from __future__ import annotations

import pytest
from tests.support.relay.background import Background
from tests.support.relay.backlog.flaky_store import FlakyStore
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.schedules import cancel, schedule
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.backlog.redis.manager import CHECK_MS, RedisManager, Writing
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.signing import UNSIGNED
from delaytopic_relay.backlog.store import StoreVersion
from delaytopic_relay.errors import BacklogMoved

CLAIM = StoreVersion("me", 1, 0)
PLENTY = 1 << 30
FAR_MS = 60_000
WHEN_NEEDED = 1_000
"""Times that a write is asked about before it is done: nobody asks that often."""


class Desk:
    """Two shards that have claimed their backlogs, and writes that are carried out when they were `asks` times asked
    about.
    """

    def __init__(self, asks: int = WHEN_NEEDED, early_bytes: int = 1) -> None:
        self.world = World()
        self.store = FlakyStore(self.world)
        self.events = QuietEvents()
        self.manager = RedisManager(
            self.store, WorldClock(self.world), self.events, Writing(UNSIGNED, Background(asks), early_bytes)
        )
        self.shards = [redis_shard(partition=partition, claim=CLAIM) for partition in range(2)]
        for partition in range(2):
            self.store.put(partition, None, CLAIM, [], {})
        self.shard = self.shards[0]

    def take_in_far(self, *offsets: int, partition: int = 0, name: bytes | None = None) -> None:
        for offset in offsets:
            self.shards[partition].ingest([schedule(self.world.now_ms + FAR_MS, offset, name)], offset + 1, {})

    def begin(self) -> None:
        self.manager.put_early(self.shards)

    def put(self) -> None:
        self.manager.put_all(self.shards)

    def tend(self) -> None:
        self.manager.list_next(self.shards)
        self.manager.load_next(self.shards, PLENTY)

    def stored(self, partition: int = 0) -> int:
        """Return how many records the backlog has of a shard."""
        return sum(self.store.slices(partition).values())

    def comes_out(self) -> list[int]:
        """Return the offsets of the first shard's records when all of them are due."""
        self.world.now_ms += FAR_MS + 1_000
        self.tend()
        return sorted(each.offset for each in self.shard.take_due(self.world.now_ms, 100).schedules)


def test_what_is_far_is_written_while_more_is_taken_in() -> None:
    desk = Desk(asks=1)
    desk.take_in_far(0, 1)
    desk.begin()
    desk.take_in_far(2)
    before = (desk.stored(), desk.shard.pending, desk.shard.must_put)

    desk.begin()
    after = (desk.stored(), desk.shard.pending, desk.shard.must_put)

    assert (before, after) == ((0, 3, True), (2, 3, True))


def test_a_commit_waits_for_what_has_begun_and_for_what_came_since() -> None:
    desk = Desk()
    desk.take_in_far(0, 1)
    desk.begin()
    desk.take_in_far(2)

    desk.put()

    assert (desk.stored(), desk.shard.must_put, desk.shard.far_bytes) == (3, False, 0)
    assert desk.comes_out() == [0, 1, 2]


def test_one_write_is_under_way_and_it_is_that_of_the_shard_with_most() -> None:
    desk = Desk(asks=1)
    desk.take_in_far(0)
    desk.take_in_far(0, 1, partition=1)
    desk.begin()
    desk.begin()
    first = (desk.stored(0), desk.stored(1))

    desk.begin()

    assert (first, (desk.stored(0), desk.stored(1))) == ((0, 2), (1, 2))


def test_a_little_waits_for_the_commit() -> None:
    desk = Desk(asks=0, early_bytes=PLENTY)
    desk.take_in_far(0)

    desk.begin()

    assert (desk.stored(), desk.shard.must_put) == (0, True)


def test_what_waits_is_shown_while_it_is_being_written() -> None:
    desk = Desk()
    desk.take_in_far(0, 1)
    spans = [*desk.shard.waiting()]

    desk.begin()

    assert [*desk.shard.waiting()] == spans
    assert desk.shard.next_due_ms() == desk.world.now_ms + FAR_MS


def test_nothing_is_asked_of_a_backlog_that_is_being_written() -> None:
    # Given a version that changes with a write of which nobody has heard, and is old enough to be asked for
    desk = Desk()
    desk.take_in_far(0)
    desk.begin()
    desk.shard.committed_offset = 1
    desk.world.now_ms += CHECK_MS

    desk.tend()

    assert (desk.stored(), desk.shard.store_version) == (0, CLAIM)


def test_an_id_is_looked_up_when_the_write_is_done() -> None:
    desk = Desk()
    desk.take_in_far(0, name=b"a")
    desk.put()
    desk.take_in_far(1)
    desk.begin()

    found = desk.manager.look_up(desk.shard, desk.shard.ids.unknown([cancel(2, b"a")]))

    assert ({name: state.offset for name, state in found.items()}, desk.stored()) == ({b"a": 0}, 2)


def test_what_is_cancelled_while_it_is_being_written_does_not_come_out() -> None:
    desk = Desk()
    desk.take_in_far(0, name=b"a")
    desk.take_in_far(1)
    desk.begin()
    desk.shard.ingest([cancel(2, b"a")], 3, {})
    desk.put()

    assert desk.comes_out() == [1]


def test_a_slice_that_has_begun_to_be_loaded_goes_on_behind_the_write() -> None:
    # Given a slice of more segments than come at first
    desk = Desk()
    for offset in range(40):
        desk.take_in_far(offset)
        desk.put()
    desk.world.now_ms += FAR_MS
    desk.store.load_ms = 1_000
    desk.tend()
    some = desk.shard.calendar.count
    desk.take_in_far(40)
    desk.begin()

    for _ in range(3):
        desk.tend()

    assert (0 < some < 40, desk.shard.calendar.count, desk.stored()) == (True, 40, 41)


def test_a_write_that_goes_unanswered_is_repeated_when_the_answer_is_needed() -> None:
    desk = Desk()
    desk.take_in_far(0)
    desk.store.deaf_puts = 2
    desk.begin()

    desk.put()

    assert (desk.stored(), [str(error) for error in desk.events.errors]) == (1, ["timed out"] * 2)


def test_a_write_into_a_backlog_that_is_somebody_elses_puts_the_tick_in_doubt() -> None:
    desk = Desk()
    desk.take_in_far(0)
    desk.begin()
    desk.store.put(0, CLAIM, StoreVersion("somebody else", 2, 0), [], {})

    with pytest.raises(BacklogMoved):
        desk.put()


def test_a_write_of_a_shard_that_has_left_disturbs_nobody() -> None:
    desk = Desk()
    desk.take_in_far(0)
    desk.begin()
    desk.take_in_far(0, partition=1)
    desk.store.put(0, CLAIM, StoreVersion("somebody else", 2, 0), [], {})
    left: RedisShard = desk.shards.pop(0)

    desk.put()

    assert (desk.stored(0), desk.stored(1), left.must_put) == (0, 1, True)


def test_a_shard_is_planned_again_when_its_write_has_ended() -> None:
    desk = Desk()
    desk.take_in_far(0)
    desk.begin()

    desk.manager.abandon(1)
    before = desk.stored()
    desk.manager.abandon(0)

    assert (before, desk.stored(), desk.store.version(0)) == (0, 1, StoreVersion("me", 2, 0))
