"""What is asked of the shelf between ticks, and what happens when it does not answer."""

from __future__ import annotations

import pytest
from tests.support.flaky_shelf import FlakyShelf
from tests.support.quiet_journal import QuietJournal
from tests.support.schedules import cancel, schedule
from tests.support.world import World, WorldClock

from delaytopic_relay.errors import ShelfMoved, ShelfUnavailable, TransactionAborted
from delaytopic_relay.progress import Progress
from delaytopic_relay.schedule import NOTHING_DELIVERED
from delaytopic_relay.shard import Shard
from delaytopic_relay.shelves.protocol import Position, Slice
from delaytopic_relay.shelving import CHECK_MS, PATIENCE_MS, PAUSE_MS, Shelving

CLAIM = Position("me", 1, 0)
PLENTY = 1 << 30
FAR_MS = 60_000


class Desk:
    """A shard that has claimed its shelf, and the shelving between them."""

    def __init__(self) -> None:
        self.world = World()
        self.shelf = FlakyShelf(self.world)
        self.shelf.put(0, None, CLAIM, [], {})
        self.journal = QuietJournal()
        self.shelving = Shelving(self.shelf, WorldClock(self.world), self.journal)
        self.shard = Shard(0, Progress(0, 0, NOTHING_DELIVERED), 0, CLAIM, {}, 10_000)

    def take_in_far(self, offset: int, name: bytes | None = None) -> None:
        self.shard.take_in([schedule(self.world.now_ms + FAR_MS, offset, name)], offset + 1, {})

    def tend(self) -> None:
        self.shelving.load_next([self.shard], PLENTY)

    def put(self) -> None:
        self.shelving.put_all([self.shard])

    @property
    def on_shelf(self) -> int:
        """How many records the shelf has."""
        return sum(self.shelf.slices(0).values())


def test_what_is_far_is_on_the_shelf_before_the_commit() -> None:
    desk = Desk()
    desk.take_in_far(0)

    desk.put()

    assert (desk.on_shelf, desk.shard.must_put, desk.shelf.position(0)) == (1, False, Position("me", 2, 0))


def test_with_nothing_far_the_shelf_is_not_asked() -> None:
    desk = Desk()
    desk.shelf.away = True

    desk.put()

    assert desk.journal.errors == []


def test_a_put_is_repeated_until_it_is_answered() -> None:
    desk = Desk()
    desk.take_in_far(0)
    desk.shelf.deaf_puts = 3
    started_ms = desk.world.now_ms

    desk.put()

    assert (desk.on_shelf, desk.world.now_ms - started_ms) == (1, 3 * PAUSE_MS)
    assert [str(error) for error in desk.journal.errors] == ["timed out"] * 3


def test_a_tick_is_given_up_when_a_put_stays_unanswered() -> None:
    desk = Desk()
    desk.take_in_far(0)
    desk.shelf.away = True
    started_ms = desk.world.now_ms

    with pytest.raises(TransactionAborted, match="the shelf has not answered for 10000 ms: connection refused"):
        desk.put()

    assert desk.world.now_ms - started_ms == PATIENCE_MS


def test_the_position_follows_the_committed_offset_within_a_second() -> None:
    desk = Desk()
    desk.tend()
    desk.shard.committed_offset = 7

    desk.world.now_ms += CHECK_MS - 1
    desk.tend()
    before = desk.shelf.position(0)
    desk.world.now_ms += 1
    desk.tend()

    assert (before, desk.shelf.position(0), desk.shard.shelf_position) == (CLAIM, *[Position("me", 2, 7)] * 2)


def test_a_move_of_the_position_that_goes_unanswered_is_settled_before_the_next_put() -> None:
    # Given that the shelf moved on, and the shard does not know it
    desk = Desk()
    desk.shard.committed_offset = 7
    desk.shelf.deaf_puts = 1
    desk.tend()
    assert (desk.shelf.position(0), desk.shard.shelf_position) == (Position("me", 2, 7), CLAIM)

    # When a put would lead to the same position
    desk.take_in_far(8)
    desk.put()

    # Then it is not taken for a repetition of the move
    assert (desk.on_shelf, desk.shelf.position(0)) == (1, Position("me", 3, 7))


def test_a_move_of_the_position_that_goes_unanswered_is_settled_before_ids_are_looked_up() -> None:
    desk = Desk()
    desk.take_in_far(0, b"a")
    desk.put()
    desk.shard.committed_offset = 1
    desk.shelf.deaf_puts = 1
    desk.world.now_ms += CHECK_MS
    desk.tend()

    found = desk.shelving.look_up(desk.shard, desk.shard.ids.unknown([cancel(1, b"a"), cancel(2, b"b")]))

    assert {name: state.offset for name, state in found.items()} == {b"a": 0}


def test_without_names_nothing_is_looked_up() -> None:
    desk = Desk()
    desk.shelf.away = True

    assert desk.shelving.look_up(desk.shard, []) == {}


def test_another_owner_is_noticed_within_a_second() -> None:
    desk = Desk()
    desk.tend()
    desk.shelf.put(0, CLAIM, Position("somebody else", 2, 0), [], {})
    desk.tend()

    desk.world.now_ms += CHECK_MS

    with pytest.raises(ShelfMoved):
        desk.tend()


def test_a_shelf_that_is_away_is_left_alone_for_a_moment() -> None:
    desk = Desk()
    desk.shelf.away = True
    for _ in range(5):
        desk.tend()
    at_first = len(desk.journal.errors)

    desk.world.now_ms += 2 * PAUSE_MS
    desk.tend()

    assert (at_first, len(desk.journal.errors)) == (1, 2)
    assert {type(error) for error in desk.journal.errors} == {ShelfUnavailable}


def test_what_cannot_be_dropped_now_is_dropped_after_a_later_commit() -> None:
    # Given a record that came back from the shelf and left
    desk = Desk()
    desk.take_in_far(0)
    desk.put()
    desk.world.now_ms += FAR_MS
    desk.tend()
    desk.shard.take_due(desk.world.now_ms, 10)

    desk.shelf.away = True
    desk.shelving.drop_done([desk.shard])
    desk.shelf.away = False
    kept = desk.on_shelf
    desk.shelving.drop_done([desk.shard])

    assert (kept, desk.on_shelf) == (1, 0)


def test_a_slice_that_cannot_be_read_is_named_and_read_again_later() -> None:
    desk = Desk()
    desk.take_in_far(0)
    start_ms = desk.world.now_ms + FAR_MS
    desk.put()
    desk.shelf.damaged = {0}
    desk.world.now_ms = start_ms
    desk.tend()
    said = desk.shelving.unreadable[0]
    desk.world.now_ms += 1_000
    desk.tend()
    tries = len(desk.journal.errors)

    desk.shelf.damaged = set()
    desk.world.now_ms += 60_000
    desk.tend()

    assert said.startswith(f"slice {Slice(start_ms - start_ms % 1_000, 1_000)}: a segment of 8 bytes is damaged")
    assert (tries, desk.shelving.unreadable, desk.shard.calendar.count) == (1, {}, 1)
