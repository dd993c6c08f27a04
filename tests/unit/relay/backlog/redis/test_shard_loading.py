from __future__ import annotations

from tests.support.relay.backlog.shard_run import ShardRun
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.schedules import offsets, schedule

from delaytopic_relay.backlog.redis.asks import Load
from delaytopic_relay.backlog.redis.shard import FIRST_PORTION, LARGEST_PORTION, PORTION_BYTES, RedisShard
from delaytopic_relay.backlog.segments import pack
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey, Schedule
from delaytopic_relay.core.progress import Progress

NOW_MS = 1_000_000_000
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
CLAIM = StoreVersion("me", 1, 0)
NEAR = Slice(NOW_MS + 5_000, SECOND_MS)


def shard_with(*slices: Slice, progress: Progress | None = None, start: int = 100) -> RedisShard:
    """A shard that finds these slices in its backlog, a record in each."""
    progress = progress or Progress(start, start, NOTHING_DELIVERED)
    return redis_shard(progress, start, CLAIM, dict.fromkeys(slices, 1))


def loaded(shard: RedisShard, *schedules: Schedule, load: Load | None = None) -> list[int]:
    """The offsets that leave in the end, when a portion brings these schedules and the slice ends."""
    load = load or shard.next_load(NOW_MS, room=True)
    assert load is not None
    shard.loaded(load, 100, schedules, {})
    shard.load_finished()
    assert shard.next_load(NOW_MS, room=True) is None
    return offsets(shard.take_due(NOW_MS + 10_000, 1_000).schedules)


def run_with(*schedules: Schedule) -> ShardRun:
    """A run that took these in, and put those in the backlog that are far."""
    run = ShardRun()
    run.source += schedules
    run.tick(NOW_MS - 60 * DAY_MS)
    return run


def test_slices_are_begun_in_the_order_of_their_time_up_to_the_second_in_which_the_horizon_ends() -> None:
    first, last, beyond = (Slice(NOW_MS + after_ms, SECOND_MS) for after_ms in (-5_000, 10_000, 11_000))
    shard = shard_with(beyond, last, first)

    begun = []
    while (load := shard.next_load(NOW_MS, room=True)) is not None:
        begun.append(load)
        shard.load_finished()

    assert begun == [Load(first, 0, FIRST_PORTION), Load(last, 0, FIRST_PORTION)]


def test_a_slice_is_loaded_in_portions_of_bounded_size() -> None:
    shard = shard_with(NEAR)

    # Given segments of a quarter of a portion each
    load = shard.next_load(NOW_MS, room=True)
    assert load is not None
    shard.loaded(load, FIRST_PORTION * PORTION_BYTES // 4, [], {})

    assert shard.next_load(NOW_MS, room=True) == Load(NEAR, FIRST_PORTION, 4)


def test_a_portion_of_small_segments_has_a_bounded_number_of_them() -> None:
    shard = shard_with(NEAR)
    load = shard.next_load(NOW_MS, room=True)
    assert load is not None

    shard.loaded(load, 10, [], {})

    assert shard.next_load(NOW_MS, room=True) == Load(NEAR, FIRST_PORTION, LARGEST_PORTION)


def test_a_portion_of_huge_segments_is_one_of_them() -> None:
    shard = shard_with(NEAR)
    load = shard.next_load(NOW_MS, room=True)
    assert load is not None

    shard.loaded(load, FIRST_PORTION * 5 * PORTION_BYTES, [], {})

    assert shard.next_load(NOW_MS, room=True) == Load(NEAR, FIRST_PORTION, 1)


def test_nothing_of_a_slice_leaves_before_it_is_loaded_whole() -> None:
    # Given two portions, of which the second brings the first schedule
    shard = shard_with(NEAR)
    load = shard.next_load(NOW_MS, room=True)
    assert load is not None
    shard.loaded(load, 100, [schedule(NEAR.start_ms + 500, 1)], {})

    early = (shard.take_due(NEAR.end_ms, 10).schedules, shard.wake_ms())
    second = shard.next_load(NEAR.end_ms, room=True)

    assert early == ([], None)
    assert loaded(shard, schedule(NEAR.start_ms, 2), load=second) == [2, 1]


def test_what_arrives_from_the_source_for_a_slice_that_is_being_loaded_stays_in_memory() -> None:
    shard = shard_with(NEAR)
    load = shard.next_load(NOW_MS, room=True)

    shard.ingest([schedule(NEAR.start_ms, 100), schedule(NEAR.end_ms, 101)], 102, {})

    put = shard.put(NOW_MS)
    shard.acknowledged(put)
    shard.load_finished()
    after = shard.next_load(NOW_MS, room=True)
    assert (load, put.segments) == (Load(NEAR, 0, FIRST_PORTION), pack([schedule(NEAR.end_ms, 101)], NOW_MS))
    assert after == Load(Slice(NEAR.end_ms, SECOND_MS), 0, FIRST_PORTION)
    assert offsets(shard.take_due(NEAR.end_ms, 10).schedules) == [100]


def test_entries_at_or_above_the_position_are_ignored_since_they_are_read_again() -> None:
    # Given a predecessor that put offsets 100 and 101 and never committed them
    shard = shard_with(NEAR, start=100)

    assert loaded(shard, *(schedule(NEAR.start_ms, offset) for offset in (99, 100, 101))) == [99]


def test_entries_at_or_below_the_cursor_are_done() -> None:
    cursor = DueKey(NEAR.start_ms + 5, 50)
    shard = shard_with(NEAR, progress=Progress(100, 100, cursor))

    remaining = loaded(
        shard,
        schedule(cursor.due_ms - 1, 99),
        schedule(cursor.due_ms, 50),
        schedule(cursor.due_ms, 51),
        schedule(cursor.due_ms + 1, 3),
    )

    assert remaining == [51, 3]


def test_copies_in_the_backlog_leave_once() -> None:
    shard = shard_with(NEAR)
    entry = schedule(NEAR.start_ms, 7)

    assert loaded(shard, entry, schedule(NEAR.start_ms, 8), entry) == [7, 8]


def test_without_room_no_new_slice_is_begun() -> None:
    shard = shard_with(NEAR)

    assert shard.next_load(NOW_MS, room=False) is None


def test_without_room_a_slice_that_was_begun_is_finished() -> None:
    shard = shard_with(NEAR)
    begun = shard.next_load(NOW_MS, room=True)

    assert shard.next_load(NOW_MS, room=False) == begun == Load(NEAR, 0, FIRST_PORTION)


def test_a_slice_that_fills_the_memory_by_itself_leaves_all_the_same() -> None:
    # Given a slice that is loaded whole, after which there is no room any more
    shard = shard_with(NEAR)
    load = shard.next_load(NOW_MS, room=True)
    assert load is not None
    shard.loaded(load, 100, [schedule(NEAR.start_ms, 7)], {})
    shard.load_finished()
    shard.next_load(NEAR.end_ms, room=False)

    leaving = shard.take_due(NEAR.end_ms, 10)

    assert offsets(leaving.schedules) == [7]


def test_nothing_is_begun_while_something_is_on_its_way_to_the_backlog() -> None:
    # Given a far schedule that could be in the very slice that comes next
    shard = shard_with(NEAR)
    shard.ingest([schedule(NEAR.start_ms, 100)], 101, {})

    before = shard.next_load(NOW_MS, room=True)
    shard.acknowledged(shard.put(NOW_MS))

    assert (before, shard.next_load(NOW_MS, room=True)) == (None, Load(NEAR, 0, FIRST_PORTION))


def test_a_minute_is_split_into_seconds_two_minutes_before_it_begins() -> None:
    # Given schedules in one minute, put more than half an hour ahead
    minute_ms = NOW_MS - NOW_MS % MINUTE_MS
    run = ShardRun()
    run.source += [schedule(minute_ms + 1_500, 0), schedule(minute_ms + 1_700, 1), schedule(minute_ms + 40_000, 2)]
    run.tick(minute_ms - HOUR_MS)
    assert run.store.slices(0) == {Slice(minute_ms, MINUTE_MS): 3}

    # When its time comes, less the horizon
    run.tick(minute_ms - 2 * MINUTE_MS - run.horizon_ms)
    run.tick(minute_ms - 2 * MINUTE_MS - run.horizon_ms)

    # Then only the seconds are left, and nothing is in memory yet
    assert run.store.slices(0) == {Slice(minute_ms + 1_000, SECOND_MS): 2, Slice(minute_ms + 40_000, SECOND_MS): 1}
    assert (run.shard.pending, run.shard.calendar.count) == (3, 0)


def test_an_hour_is_split_into_minutes_an_hour_and_a_half_before_it_begins() -> None:
    hour_ms = NOW_MS - NOW_MS % HOUR_MS
    run = ShardRun()
    run.source += [schedule(hour_ms, 0), schedule(hour_ms + HOUR_MS - 1, 1)]
    run.tick(hour_ms - 2 * DAY_MS)
    assert run.store.slices(0) == {Slice(hour_ms, HOUR_MS): 2}

    for _ in range(2):
        run.tick(hour_ms - 90 * MINUTE_MS - run.horizon_ms)

    assert run.store.slices(0) == {Slice(hour_ms, MINUTE_MS): 1, Slice(hour_ms + 59 * MINUTE_MS, MINUTE_MS): 1}


def test_a_backlog_that_was_left_alone_for_too_long_gives_everything_at_once_and_in_order() -> None:
    # Given schedules far apart, and a relay that was away until all were overdue
    dues_ms = [NOW_MS + delay_ms for delay_ms in (20_000, HOUR_MS, DAY_MS, 3 * DAY_MS, 30 * DAY_MS)]
    run = ShardRun()
    run.source += [schedule(due_ms, offset) for offset, due_ms in enumerate(dues_ms)]
    run.tick(NOW_MS)

    run.recover()
    for _ in range(3):
        run.tick(NOW_MS + 31 * DAY_MS)

    assert [key for _, key in run.outcome.delivered] == [
        DueKey(due_ms, offset) for offset, due_ms in enumerate(dues_ms)
    ]
    assert run.store.slices(0) == {}


def test_a_wide_slice_is_split_in_portions_each_with_a_write_of_its_own() -> None:
    # Given an hour with more segments than a first portion
    run = ShardRun()
    hour_ms = NOW_MS - NOW_MS % HOUR_MS
    for offset in range(FIRST_PORTION + 1):
        run.source.append(schedule(hour_ms + offset, offset))
        run.tick(hour_ms - 2 * DAY_MS)
    before = run.shard.store_version

    loads = run.load(hour_ms - 90 * MINUTE_MS)

    hour = Slice(hour_ms, HOUR_MS)
    assert loads == [Load(hour, 0, FIRST_PORTION), Load(hour, FIRST_PORTION, LARGEST_PORTION)]
    assert run.shard.store_version == before._replace(counter=before.counter + 2)


def test_packing_far_schedules_of_several_slices_indexes_each() -> None:
    shard = shard_with()
    shard.next_load(NOW_MS, room=True)
    schedules = [schedule(NOW_MS + after_ms, 100) for after_ms in (20_000, 20_500, HOUR_MS)]
    shard.ingest(schedules, 101, {})

    shard.acknowledged(shard.put(NOW_MS))

    assert shard.index == {segment.slice: segment.records for segment in pack(schedules, NOW_MS)}
