from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.backlog.shards import fixed_shard
from tests.support.relay.schedules import reject, schedule

from delaytopic_relay.backlog.fixed import FixedShard
from delaytopic_relay.core.calendar import bytes_of
from delaytopic_relay.core.commands import NOTHING, NOTHING_DELIVERED, Command, DueKey, Leaving
from delaytopic_relay.core.entries import ENTRY_BYTES, HEADER_BYTES
from delaytopic_relay.core.progress import Identity, Progress, fresh_progress

NOW_MS = 1_000_000
HORIZON_MS = 10_000


def new_shard(progress: Progress | None = None, start: int = 0) -> FixedShard:
    return fixed_shard(progress or fresh_progress(start), start, horizon_ms=HORIZON_MS)


def shard_with(*commands: Command) -> FixedShard:
    """A shard that took these in, which have the offsets from 0 on."""
    shard = new_shard()
    assert shard.ingest(commands, len(commands)) == NOTHING
    return shard


def test_records_leave_in_source_order_when_they_are_due() -> None:
    shard = shard_with(*(schedule(NOW_MS + 10 * offset, offset) for offset in range(4)))

    leaving = [shard.take_due(NOW_MS + after_ms, 10) for after_ms in (-1, 10, 29, 30)]

    assert leaving == [
        NOTHING,
        Leaving([schedule(NOW_MS, 0), schedule(NOW_MS + 10, 1)], []),
        Leaving([schedule(NOW_MS + 20, 2)], []),
        Leaving([schedule(NOW_MS + 30, 3)], []),
    ]


def test_no_more_leave_at_a_time_than_the_limit() -> None:
    shard = shard_with(*(schedule(NOW_MS, offset) for offset in range(3)))

    assert [len(shard.take_due(NOW_MS, 2).schedules) for _ in range(3)] == [2, 1, 0]


def test_a_refused_record_keeps_its_place_and_leaves_with_what_was_before_it() -> None:
    shard = shard_with(schedule(NOW_MS, 0), reject(1), reject(2), schedule(NOW_MS + 5, 3))

    early, due = shard.take_due(NOW_MS - 1, 10), shard.take_due(NOW_MS, 10)

    assert (early, due) == (NOTHING, Leaving([schedule(NOW_MS, 0)], [reject(1), reject(2)]))


def test_a_refused_record_at_the_head_leaves_at_once() -> None:
    shard = shard_with(reject(0), schedule(NOW_MS + 5, 1))

    assert (shard.wake_ms(), shard.take_due(NOW_MS, 10)) == (0, Leaving([], [reject(0)]))


def test_a_record_that_is_due_before_the_one_ahead_of_it_waits_for_it() -> None:
    # Given a broker clock that went back between two records
    shard = shard_with(schedule(NOW_MS, 0), schedule(NOW_MS - 500, 1))

    early, due = shard.take_due(NOW_MS - 1, 10), shard.take_due(NOW_MS, 10)

    assert (early.schedules, due.schedules) == ([], [schedule(NOW_MS, 0), schedule(NOW_MS - 500, 1)])


def test_the_committed_offset_is_that_of_the_first_record_still_waiting() -> None:
    shard = shard_with(schedule(NOW_MS, 0), reject(1), schedule(NOW_MS + 5, 2), schedule(NOW_MS + 9, 3))
    ingested = shard.progress("me")

    shard.take_due(NOW_MS, 10)
    first_done = shard.progress("me")
    shard.take_due(NOW_MS + 9, 10)

    assert [ingested, first_done, shard.progress("me")] == [
        Progress(0, 0, NOTHING_DELIVERED, "me"),
        Progress(2, 2, DueKey(NOW_MS, 0), "me"),
        Progress(4, 4, DueKey(NOW_MS + 9, 3), "me"),
    ]


def test_the_end_of_the_source_counts_as_taken_in() -> None:
    shard = new_shard()

    shard.reached_end(12)

    assert shard.progress("") == Progress(12, 12, NOTHING_DELIVERED, "", identity=Identity(gap=12))


def test_what_a_backlog_had_delivered_before_the_delay_was_fixed_is_left_out() -> None:
    # Given a progress of a DelayTopic that had a backlog: offsets below 4 taken in, keys up to (NOW, 1) done
    shard = new_shard(Progress(0, 4, DueKey(NOW_MS, 1)))

    shard.ingest([schedule(NOW_MS - 9, 0), schedule(NOW_MS, 1), schedule(NOW_MS, 2), schedule(NOW_MS - 1, 4)], 5)

    assert shard.take_due(NOW_MS, 10).schedules == [schedule(NOW_MS, 2), schedule(NOW_MS - 1, 4)]


def test_it_is_full_when_the_queue_reaches_beyond_the_horizon() -> None:
    shard = shard_with(schedule(NOW_MS, 0), schedule(NOW_MS + HORIZON_MS, 1))

    assert [shard.full(now_ms, paused=False) for now_ms in (NOW_MS - 1, NOW_MS)] == [True, False]


def test_once_paused_it_stays_full_until_half_a_horizon_is_left() -> None:
    last_ms = NOW_MS + HORIZON_MS
    shard = shard_with(schedule(last_ms, 0))

    full = [
        shard.full(last_ms - left_ms, paused=True) for left_ms in (HORIZON_MS, HORIZON_MS // 2 + 1, HORIZON_MS // 2)
    ]

    assert full == [True, True, False]


def test_an_emptied_queue_is_not_full() -> None:
    shard = shard_with(schedule(NOW_MS + HORIZON_MS, 0))

    shard.take_due(NOW_MS + HORIZON_MS, 10)

    assert not shard.full(NOW_MS - 10**9, paused=True)


def test_it_wakes_for_the_head_of_the_queue() -> None:
    assert (new_shard().wake_ms(), shard_with(schedule(NOW_MS, 0)).wake_ms()) == (None, NOW_MS)


def leaving_count(shard: FixedShard, now_ms: int, limit: int) -> int:
    leaving = shard.take_due(now_ms, limit)
    return len(leaving.schedules) + len(leaving.rejects)


QUEUES = st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=20)


@QUICK
@given(QUEUES, st.lists(st.tuples(st.integers(0, 60), st.integers(1, 4)), max_size=10))
def test_size_and_count_follow_what_comes_and_goes(queue: list[tuple[bool, int]], takes: list[tuple[int, int]]) -> None:
    commands = [schedule(due_ms, n) if fine else reject(n) for n, (fine, due_ms) in enumerate(queue)]
    shard = shard_with(*commands)

    left = sum(leaving_count(shard, now_ms, limit) for now_ms, limit in takes)
    pending = shard.pending
    while leaving_count(shard, 100, 10):
        pass

    assert (left + pending, shard.pending, shard.size) == (len(commands), 0, 0)


def test_the_size_counts_a_refused_record_with_all_that_it_holds() -> None:
    refused = reject(0)
    refused.headers = [("a", b"1")] * 10

    assert shard_with(refused).size == bytes_of(refused) == ENTRY_BYTES + 2 + 10 * (HEADER_BYTES + 2)
