from __future__ import annotations

from tests.support.relay.backlog.shard_run import ShardRun
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.schedules import cancel, schedule

from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.store import Slice
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.progress import Identity, Progress

NOW_MS = 1_000_000
HORIZON_MS = 10_000
FAR_MS = NOW_MS + 60_000
A = b"a"


def new_shard(progress: Progress, start: int) -> RedisShard:
    shard = redis_shard(progress, start)
    assert shard.next_load(NOW_MS, room=True) is None
    return shard


def test_nothing_read_is_the_progress_that_was_committed() -> None:
    cursor = DueKey(NOW_MS - 5, 3)
    shard = new_shard(Progress(4, 9, cursor), 4)

    assert shard.progress("me") == Progress(4, 9, cursor, "me")


def test_the_lowest_offset_that_only_memory_holds_is_where_a_successor_reads_from() -> None:
    shard = new_shard(Progress(0, 0, NOTHING_DELIVERED), 0)
    shard.ingest([schedule(NOW_MS, 0), schedule(NOW_MS + 5_000, 1), schedule(NOW_MS + 100, 2)], 3, {})

    shard.take_due(NOW_MS + 500, 10)

    assert shard.progress("me") == Progress(1, 3, DueKey(NOW_MS + 100, 2), "me")


def test_what_the_backlog_holds_does_not_keep_the_offset_back() -> None:
    shard = new_shard(Progress(0, 0, NOTHING_DELIVERED), 0)
    shard.ingest([schedule(FAR_MS, 0), schedule(NOW_MS + 5_000, 1), schedule(FAR_MS, 2)], 3, {})

    shard.acknowledged(shard.put(NOW_MS))

    assert shard.progress("me") == Progress(1, 3, NOTHING_DELIVERED, "me")


def test_what_was_loaded_from_the_backlog_does_not_keep_the_offset_back() -> None:
    run = ShardRun()
    run.source += [schedule(FAR_MS, 0), schedule(FAR_MS + 500, 1)]
    run.tick(NOW_MS)

    run.load(FAR_MS - HORIZON_MS)

    assert (run.shard.calendar.count, run.shard.progress("me")) == (2, Progress(2, 2, NOTHING_DELIVERED, "me"))


def test_while_records_are_read_again_the_position_stays_and_the_offset_follows_the_reading() -> None:
    cursor = DueKey(NOW_MS, 7)
    shard = new_shard(Progress(0, 9, cursor), 0)

    shard.ingest([schedule(NOW_MS - 1, 0), schedule(NOW_MS, 1), schedule(NOW_MS + 1, 2), schedule(NOW_MS, 3)], 4, {})

    assert shard.progress("me") == Progress(2, 9, cursor, "me")


def test_removed_records_at_the_end_of_the_source_count_as_taken_in() -> None:
    shard = new_shard(Progress(0, 0, NOTHING_DELIVERED), 0)

    shard.reached_end(12)

    assert shard.progress("me") == Progress(12, 12, NOTHING_DELIVERED, "me", identity=Identity(gap=12))


def test_the_cursor_moves_past_schedules_that_were_cancelled() -> None:
    shard = new_shard(Progress(0, 0, NOTHING_DELIVERED), 0)
    shard.ingest([schedule(NOW_MS, 0, A), cancel(1, A)], 2, {})

    assert shard.take_due(NOW_MS, 10).schedules == []
    assert shard.progress("me") == Progress(2, 2, DueKey(NOW_MS, 0), "me")


def test_what_leaves_at_once_does_not_move_the_cursor() -> None:
    shard = new_shard(Progress(1, 1, DueKey(NOW_MS, 0)), 1)

    shard.ingest([schedule(NOW_MS - 500, 1)], 2, {})

    assert shard.progress("me") == Progress(2, 2, DueKey(NOW_MS, 0), "me")


def test_a_loaded_slice_is_dropped_once_nothing_of_it_is_left_in_memory() -> None:
    # Given a second with two schedules
    second_ms = FAR_MS
    run = ShardRun()
    run.source += [schedule(second_ms, 0), schedule(second_ms + 900, 1), schedule(second_ms + 2_000, 2)]
    run.tick(NOW_MS)
    run.load(second_ms - 5_000)
    slice_ = Slice(second_ms, 1_000)

    droppable = []
    for now_ms in (second_ms - 1, second_ms + 500, second_ms + 900):
        run.deliver(now_ms)
        droppable.append(run.shard.droppable()[0])

    assert droppable == [[], [], [slice_]]


def test_a_wide_slice_is_dropped_as_soon_as_it_was_split() -> None:
    run = ShardRun()
    minute_ms = 120 * 60_000
    run.source.append(schedule(minute_ms, 0))
    run.tick(minute_ms - 3_600_000)

    run.load(minute_ms - 120_000)

    assert run.shard.droppable() == ([Slice(minute_ms, 60_000)], [])


def test_a_wide_slice_that_was_filled_again_after_it_was_split_is_not_dropped() -> None:
    # Given a minute that was split, and a clock that was set back by an hour
    run = ShardRun()
    minute_ms = 120 * 60_000
    run.source.append(schedule(minute_ms, 0))
    run.tick(minute_ms - 3_600_000)
    run.load(minute_ms - 120_000)

    # When another schedule of that minute is put
    run.source.append(schedule(minute_ms + 30_000, 1))
    run.ingest(minute_ms - 3_600_000)
    run.put(minute_ms - 3_600_000)

    # Then it stays, until it was split a second time
    before = run.shard.droppable()[0]
    run.load(minute_ms - 120_000)
    assert (before, {*run.shard.droppable()[0]}) == ([], {Slice(minute_ms, 60_000)})


def test_ids_are_forgotten_with_the_slices_of_their_last_schedules() -> None:
    run = ShardRun()
    run.source += [schedule(FAR_MS, 0, A), schedule(FAR_MS + 5_000, 1, b"b")]
    run.tick(NOW_MS)
    run.load(FAR_MS)

    run.deliver(FAR_MS)

    assert run.shard.droppable() == ([Slice(FAR_MS, 1_000)], [A])


def test_what_was_dropped_is_not_asked_for_again() -> None:
    run = ShardRun()
    run.source.append(schedule(FAR_MS, 0, A))
    run.tick(NOW_MS)
    run.load(FAR_MS)
    run.deliver(FAR_MS)
    slices, _ = run.shard.droppable()

    run.shard.dropped(slices)

    assert run.shard.droppable() == ([], [])


def test_it_wakes_for_the_first_schedule_that_is_loaded() -> None:
    shard = new_shard(Progress(0, 0, NOTHING_DELIVERED), 0)
    before = shard.wake_ms()

    shard.ingest([schedule(NOW_MS + 700, 0), schedule(NOW_MS + 300, 1)], 2, {})

    assert (before, shard.wake_ms()) == (None, NOW_MS + 300)
