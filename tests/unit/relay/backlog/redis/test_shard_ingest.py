from __future__ import annotations

import pytest
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.schedules import cancel, offsets, reject, schedule

from delaytopic_api.relay import Ending
from delaytopic_relay.backlog.redis.asks import Put, Write
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.segments import encode_segment
from delaytopic_relay.backlog.store import Segment, Slice, StoreVersion
from delaytopic_relay.core.commands import NOTHING, NOTHING_DELIVERED, Command, DueKey, End, Leaving
from delaytopic_relay.core.progress import Progress

NOW_MS = 1_000_500
HORIZON_MS = 10_000
FRONTIER_MS = 1_011_000
"""The end of the second in which the horizon ends."""
CLAIM = StoreVersion("me", 3, 0)
A = b"a"


def shard_at(progress: Progress, start: int = 0) -> RedisShard:
    """A shard whose backlog is empty, with all within the horizon loaded."""
    shard = redis_shard(progress, start, CLAIM)
    assert shard.next_load(NOW_MS, room=True) is None
    return shard


def new_shard() -> RedisShard:
    return shard_at(Progress(0, 0, NOTHING_DELIVERED))


def put_of(shard: RedisShard) -> Put:
    put = shard.put(NOW_MS)
    shard.acknowledged(put)
    return put


def test_what_is_due_within_the_horizon_waits_in_memory_and_the_rest_for_the_backlog() -> None:
    # Given a schedule just before the frontier, and one at it
    near, far = schedule(FRONTIER_MS - 1, 0), schedule(FRONTIER_MS, 1)
    shard = new_shard()

    leaving = shard.ingest([near, far], 2, {})

    assert (leaving, shard.calendar.count, shard.must_put, shard.pending) == (NOTHING, 1, True, 2)
    assert put_of(shard).segments == [Segment(Slice(FRONTIER_MS, 1_000), 1, encode_segment([far]))]


def test_before_the_backlog_was_looked_at_everything_goes_there() -> None:
    shard = redis_shard(claim=CLAIM)

    shard.ingest([schedule(NOW_MS, 0), schedule(FRONTIER_MS, 1)], 2, {})

    assert (shard.calendar.count, [segment.records for segment in put_of(shard).segments]) == (0, [1, 1])


def test_what_is_due_leaves_in_order_and_moves_the_cursor() -> None:
    shard = new_shard()
    shard.ingest([schedule(NOW_MS, 0), schedule(NOW_MS - 5, 1), schedule(NOW_MS + 1, 2), schedule(NOW_MS, 3)], 4, {})

    leaving = shard.take_due(NOW_MS, 10)

    assert leaving == Leaving([schedule(NOW_MS - 5, 1), schedule(NOW_MS, 0), schedule(NOW_MS, 3)], [])
    assert shard.cursor == DueKey(NOW_MS, 3)


def test_what_was_due_before_the_cursor_leaves_at_once_and_in_order() -> None:
    # Given a cursor
    shard = shard_at(Progress(5, 5, DueKey(NOW_MS, 3)), 5)

    # When a chunk brings schedules before it in any order, and one after it
    chunk: list[Command] = [
        schedule(NOW_MS - 1, 5),
        schedule(NOW_MS, 6),
        schedule(NOW_MS - 9, 7),
        schedule(NOW_MS - 1, 8),
    ]
    leaving = shard.ingest(chunk, 9, {})

    # Then those before it leave, and the cursor stays
    assert (offsets(leaving.schedules), shard.cursor, shard.calendar.count) == ([7, 5, 8], DueKey(NOW_MS, 3), 1)


def test_of_equal_due_times_with_the_cursor_only_the_lower_offsets_are_past() -> None:
    shard = shard_at(Progress(0, 0, DueKey(NOW_MS, 1)), 0)

    leaving = shard.ingest([schedule(NOW_MS, offset) for offset in range(4)], 4, {})

    assert (offsets(leaving.schedules), shard.calendar.count) == ([0, 1], 2)


def test_rejects_leave_at_once() -> None:
    shard = new_shard()

    leaving = shard.ingest([reject(0), schedule(NOW_MS, 1), reject(2)], 3, {})

    assert leaving == Leaving([], [reject(0), reject(2)])


def test_nothing_leaves_while_records_are_read_again() -> None:
    # Given a successor that starts at 0, where 3 were taken in
    shard = shard_at(Progress(0, 3, NOTHING_DELIVERED))
    shard.ingest([schedule(NOW_MS, 0), schedule(NOW_MS, 1)], 2, {})

    during = (shard.replaying, shard.take_due(NOW_MS, 10), shard.wake_ms())
    shard.ingest([schedule(NOW_MS, 2)], 3, {})

    assert during == (True, NOTHING, None)
    assert (shard.replaying, shard.wake_ms(), offsets(shard.take_due(NOW_MS, 10).schedules)) == (
        False,
        NOW_MS,
        [0, 1, 2],
    )


def test_the_end_of_the_source_ends_the_reading_again() -> None:
    # Given that the last records before the position are markers, or were removed
    shard = shard_at(Progress(0, 5, NOTHING_DELIVERED))
    shard.ingest([schedule(NOW_MS, 0)], 1, {})

    shard.reached_end(5)

    assert (shard.replaying, offsets(shard.take_due(NOW_MS, 10).schedules)) == (False, [0])


def test_what_is_read_again_and_was_done_does_not_leave_again() -> None:
    # Given offsets below 4 taken in, and all up to offset 1 at that time delivered
    shard = shard_at(Progress(0, 4, DueKey(NOW_MS, 1)))

    chunk: list[Command] = [
        schedule(NOW_MS, 0),
        schedule(NOW_MS, 1),
        reject(2),
        schedule(NOW_MS, 3),
        schedule(NOW_MS, 4),
        reject(5),
    ]
    leaving = shard.ingest(chunk, 6, {})

    assert leaving == Leaving([], [reject(5)])
    assert offsets(shard.take_due(NOW_MS, 10).schedules) == [3, 4]


def test_commands_that_are_read_again_are_not_counted_again() -> None:
    shard = shard_at(Progress(0, 4, NOTHING_DELIVERED))

    leaving = shard.ingest([schedule(NOW_MS, 0, A), schedule(NOW_MS, 1, A), cancel(2, A), cancel(3, A)], 4, {})

    assert leaving == NOTHING


def test_replacements_cancels_and_cancels_that_are_too_late_are_counted() -> None:
    shard = new_shard()
    shard.tells_ends = True
    chunk: list[Command] = [schedule(NOW_MS, 0, A), schedule(NOW_MS, 1, A), cancel(2, A), cancel(3, A), cancel(4, b"b")]

    leaving = shard.ingest(chunk, 5, {})

    due_ms, ends = NOW_MS, leaving.ends
    assert leaving == Leaving([], [], superseded=1, cancelled=1, too_late=2, ends=ends)
    assert ends == (
        End(Ending.REPLACED, 0, due_ms, A, 1),
        End(Ending.CANCELLED, 1, due_ms, A, 2),
        End(Ending.NOT_PENDING, 3, None, A),
        End(Ending.NOT_PENDING, 4, None, b"b"),
    )
    assert shard.take_due(NOW_MS, 10) == NOTHING


def test_a_schedule_that_leaves_at_once_replaces_the_pending_one_and_that_is_counted() -> None:
    # Given a pending schedule and a cursor
    shard = shard_at(Progress(1, 1, DueKey(NOW_MS, 0)), 1)
    shard.ingest([schedule(NOW_MS + 50, 1, A)], 2, {})

    leaving = shard.ingest([schedule(NOW_MS - 1, 2, A)], 3, {})

    assert leaving == Leaving([schedule(NOW_MS - 1, 2, A)], [], superseded=1)
    assert shard.take_due(NOW_MS + 50, 10).schedules == []


@pytest.mark.parametrize("late", [cancel(2, A), schedule(NOW_MS + 60, 2, A)])
def test_a_delivered_schedule_can_be_neither_cancelled_nor_superseded_while_an_older_one_of_its_id_waits(
    late: Command,
) -> None:
    # Given a schedule that was replaced by an earlier one, which was delivered
    shard = new_shard()
    shard.ingest([schedule(NOW_MS + 90, 0, A), schedule(NOW_MS, 1, A)], 2, {})
    assert offsets(shard.take_due(NOW_MS, 10).schedules) == [1]

    leaving = shard.ingest([late], 3, {})

    assert (leaving.superseded, leaving.cancelled) == (0, 0)


def test_a_put_carries_what_is_far_and_the_ids_of_it() -> None:
    # Given a far schedule with an id between near ones
    far = schedule(FRONTIER_MS + 5, 1, A)
    shard = new_shard()
    shard.ingest([schedule(NOW_MS, 0), far, schedule(NOW_MS, 2)], 3, {})

    put = put_of(shard)

    segment = Segment(Slice(FRONTIER_MS, 1_000), 1, encode_segment([far]))
    assert (put.expected, put.new, put.segments) == (CLAIM, StoreVersion("me", 4, 0), [segment])
    assert [*put.ids] == [A]
    assert (shard.must_put, shard.far_bytes, shard.index) == (False, 0, {Slice(FRONTIER_MS, 1_000): 1})


def test_each_put_expects_what_the_last_one_left_and_names_the_committed_offset() -> None:
    # Given that each put is followed by a commit
    shard = new_shard()
    versions = []

    for offset in range(3):
        shard.ingest([schedule(FRONTIER_MS, offset)], offset + 1, {})
        put = put_of(shard)
        versions.append((put.expected, put.new))
        shard.committed_offset = offset + 1

    assert versions == [
        (CLAIM, StoreVersion("me", 4, 0)),
        (StoreVersion("me", 4, 0), StoreVersion("me", 5, 1)),
        (StoreVersion("me", 5, 1), StoreVersion("me", 6, 2)),
    ]


def test_a_touch_moves_the_backlog_to_the_committed_offset_and_stays_the_same_until_it_is_acknowledged() -> None:
    # Given a shard that has committed more than its backlog knows of
    shard = new_shard()
    shard.committed_offset = 7
    first = shard.touch()

    # When it goes unanswered, while more is committed
    shard.committed_offset = 9
    repeated, waiting = shard.touch(), shard.touching
    shard.acknowledged(repeated)

    # Then the same one is tried again, and only the next names the newer offset
    assert first == repeated == Put(CLAIM, StoreVersion("me", 4, 7), [], {}, Write.TOUCH)
    assert (waiting, shard.touching, shard.store_version) == (True, False, StoreVersion("me", 4, 7))
    assert shard.touch() == Put(StoreVersion("me", 4, 7), StoreVersion("me", 5, 9), [], {}, Write.TOUCH)


def test_a_put_never_takes_the_version_back() -> None:
    # Given a backlog that a predecessor had filled further than this shard has read again
    shard = redis_shard(claim=StoreVersion("me", 3, 50))
    shard.ingest([schedule(FRONTIER_MS, 0)], 1, {})

    assert shard.put(NOW_MS).new == StoreVersion("me", 4, 50)


def test_the_size_counts_what_waits_in_memory_and_for_the_backlog() -> None:
    shard = new_shard()
    shard.ingest([schedule(NOW_MS, 0)], 1, {})
    near_bytes = shard.size
    shard.ingest([schedule(FRONTIER_MS, 1)], 2, {})

    both_bytes = shard.size
    put_of(shard)

    assert (both_bytes, shard.size, shard.far_bytes) == (2 * near_bytes, near_bytes, 0)


def test_a_shard_with_a_backlog_is_never_full() -> None:
    shard = new_shard()
    shard.ingest([schedule(FRONTIER_MS + 10**9, 0)], 1, {})

    assert not shard.full(NOW_MS, paused=False)
