from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.support.relay.backlog.shard_run import ShardRun
from tests.support.relay.backlog.shards import bucket_shard, fixed_shard, redis_shard
from tests.support.relay.schedules import cancel, offsets, reject, schedule

from delaytopic_relay.backlog.kafka.bucket import BucketsCopy, WaitingBucket
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.core import partition as core_partition
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.calendar import Calendar
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Command, DueKey, Schedule
from delaytopic_relay.core.done import Done
from delaytopic_relay.core.partition import Stored
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.pending.query import PendingQuery
from delaytopic_relay.pending.snapshot import ShardCopy, copy_of, may_be_copied

NOW_MS = 1_024_000
"""A moment at which a second and a slot of the calendar begin."""
CLAIM = StoreVersion("me", 1, 0)


def shard_with(*schedules: Schedule, index: dict[Slice, int] | None = None) -> RedisShard:
    shard = redis_shard(Progress(0, 0, DueKey(9, 9)), None, CLAIM, index)
    shard.next_load(NOW_MS, room=True)
    shard.ingest(schedules, 100, {})
    return shard


def copied(shard: RedisShard, limit: int = 100, before_ms: int = NOW_MS * 2) -> tuple[list[int], int | None]:
    copy = copy_of(shard, PendingQuery(before_ms, limit))
    return offsets(copy.schedules), copy.cut_ms


def slots(calendar: Calendar) -> list[tuple[int, list[Schedule], int, bool]]:
    """All that a calendar holds, in whatever order it is."""
    return [(start_ms, list(slot.entries), slot.head, slot.in_order) for start_ms, slot in calendar.upcoming()]


def test_a_copy_says_where_memory_ends_and_what_counts_in_the_backlog() -> None:
    index = {Slice(NOW_MS + 60_000, 1_000): 1, Slice(NOW_MS + 30_000, 1_000): 2}

    copy = copy_of(shard_with(schedule(NOW_MS, 3), index=index), PendingQuery())

    assert copy == ShardCopy(0, [schedule(NOW_MS, 3)], None, Stored(NOW_MS + 30_000, CLAIM), Done(DueKey(9, 9)), 100)


def test_a_slice_that_is_being_loaded_is_still_in_the_backlog() -> None:
    slice_ = Slice(NOW_MS + 1_000, 1_000)
    shard = redis_shard(Progress(5, 5, NOTHING_DELIVERED), None, CLAIM, {slice_: 1})
    assert shard.next_load(NOW_MS, room=True) is not None

    assert copy_of(shard, PendingQuery()).stored.from_ms == slice_.start_ms


def test_memory_ends_where_the_first_unread_segment_of_a_bucket_may_begin() -> None:
    states = (BucketState(), BucketState(written=1, records=3, head_ms=NOW_MS + 20_000, last_ms=NOW_MS + 30_000))
    rules = BucketRules(10_000, 2, source_id=1)
    shard = bucket_shard(rules, state=BucketsState(0, 0, states))

    copy = copy_of(shard, PendingQuery())

    waiting = WaitingBucket(1, 0, 0, 0, 1, NOW_MS + 20_000, NOW_MS + 20_000, 3)
    assert (copy.schedules, copy.stored) == ([], Stored(NOW_MS + 20_000, BucketsCopy([waiting], {})))
    assert may_be_copied(shard)


def test_what_is_on_its_way_to_the_backlog_is_waited_for() -> None:
    run = ShardRun()
    run.source += [schedule(NOW_MS, 0, b"a"), cancel(1, b"a")]

    run.ingest(NOW_MS)
    before = may_be_copied(run.shard)
    run.put(NOW_MS)

    assert (before, may_be_copied(run.shard)) == (False, True)


def test_one_more_than_the_limit_is_copied_and_no_slot_beyond_those_it_takes() -> None:
    shard = shard_with(*(schedule(NOW_MS + 40 * number, number) for number in range(20)))

    assert copied(shard, limit=3) == ([0, 1, 2, 3], None)


def test_of_an_unordered_slot_all_is_copied() -> None:
    shard = shard_with(*(schedule(NOW_MS + 9 - number, number) for number in range(10)))

    assert copied(shard, limit=3) == (list(range(10)), None)


def test_what_is_superseded_cancelled_or_there_twice_is_left_out() -> None:
    entries: list[Command] = [
        schedule(NOW_MS, 0, b"a"),
        schedule(NOW_MS + 1, 1, b"a"),
        schedule(NOW_MS + 2, 2, b"b"),
        cancel(3, b"b"),
    ]
    shard = shard_with()
    shard.ingest([*entries, schedule(NOW_MS + 3, 4)], 100, {})
    shard.calendar.add([schedule(NOW_MS + 3, 4)], only_here=False)

    assert copied(shard) == ([1, 4], None)


def test_what_is_due_later_is_left_out() -> None:
    shard = shard_with(*(schedule(NOW_MS + 30 * number, number) for number in range(10)))

    assert copied(shard, before_ms=NOW_MS + 60) == ([0, 1], None)


@pytest.mark.parametrize("in_order", [False, True])
def test_a_burst_is_copied_only_so_far(in_order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_partition, "MOST_LOOKED_AT", 10)
    burst = [schedule(NOW_MS + 64 + number, 20 - number, b"id") for number in range(20)]
    shard = shard_with(schedule(NOW_MS, 50), *reversed(burst))
    if in_order:
        assert shard.calendar.take(NOW_MS + 1, 10)
        assert shard.calendar.next_due_ms() == burst[0].due_ms

    found, cut_ms = copied(shard)

    # Only the last of an id is in effect: the shard has seen offset 20 of it, which is due first.
    assert (found, cut_ms) == (([20], burst[10].due_ms) if in_order else ([50], NOW_MS + 64))


def test_a_burst_that_is_in_order_is_listed_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_partition, "MOST_LOOKED_AT", 10)
    shard = shard_with(*(schedule(NOW_MS, number) for number in range(20)))
    shard.calendar.next_due_ms()

    assert copied(shard, limit=5) == ([0, 1, 2, 3, 4, 5], None)


def test_copying_changes_nothing() -> None:
    shard = shard_with(*(schedule(NOW_MS + 7 * (number % 13), number, b"%d" % (number % 3)) for number in range(40)))
    shard.calendar.take(NOW_MS + 1, 1)
    before = slots(shard.calendar), shard.calendar.count, len(shard.ids), shard.ids.to_forget()

    copied(shard, limit=5)

    assert (slots(shard.calendar), shard.calendar.count, len(shard.ids), shard.ids.to_forget()) == before


@pytest.mark.parametrize(("limit", "expected"), [(0, [1]), (1, [1, 3]), (9, [1, 3, 4])])
def test_a_fixed_delay_is_a_queue(limit: int, expected: Iterable[int]) -> None:
    shard = fixed_shard(partition=2)
    shard.ingest([reject(0), schedule(5, 1), reject(2), schedule(6, 3), schedule(7, 4), schedule(8, 5)], 6)

    copy = copy_of(shard, PendingQuery(8, limit))

    assert (copy.partition, offsets(copy.schedules), copy.stored) == (2, expected, Stored())
    assert may_be_copied(shard)
