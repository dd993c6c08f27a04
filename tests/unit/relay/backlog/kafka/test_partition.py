"""A shard with bucket topics: what it writes where, what is too large, and when it reads."""

from __future__ import annotations

import pytest
from tests.support.relay.backlog.shards import bucket_shard

from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.kafka.segments import SegmentHead
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey, Schedule
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.errors import BucketLost

NOW_MS = 1_000_000
RULES = BucketRules(horizon_ms=1_000, buckets=6, source_id=1, record_bytes=10_000, full_records=100)
FRESH = Progress(0, 0, NOTHING_DELIVERED)
EMPTY = BucketsState(0, 0, ())


def open_shard(
    progress: Progress = FRESH, state: BucketsState = EMPTY, rules: BucketRules = RULES, later_ms: int = 0
) -> BucketShard:
    shard = bucket_shard(rules, progress, state)
    shard.advance(NOW_MS + later_ms)
    shard.renew_admission_limits(NOW_MS + later_ms, ids_share=0)
    return shard


def due_in(after_ms: int, offset: int, value: bytes = b"v") -> Schedule:
    return Schedule(NOW_MS + after_ms, offset, b"k", value, None)


def test_a_schedule_goes_to_the_farthest_bucket_whose_floor_it_is_not_due_before() -> None:
    shard = open_shard()

    shard.ingest(
        [due_in(after_ms, number) for number, after_ms in enumerate((999, 1_000, 3_999, 4_000, 99_999))], 5, {}
    )
    put = shard.put()

    assert [(segment.bucket, segment.floor_ms - NOW_MS, segment.records) for segment in put.segments] == [
        (0, 1_000, 1),
        (1, 2_000, 1),
        (2, 4_000, 1),
        (5, 32_000, 1),
    ]


def test_what_is_due_is_known_from_the_index_and_not_from_the_ranges() -> None:
    shard = open_shard()

    shard.ingest([due_in(30_000, 0), due_in(20_000, 1), due_in(25_000, 2)], 3, {})
    shard.put_done(shard.put(), NOW_MS)

    assert [*shard.waiting()] == [(NOW_MS + 20_000, 10_001, 3)]
    assert shard.pending == 3


def test_a_schedule_that_no_bucket_can_take_is_a_dead_letter_at_once() -> None:
    shard = open_shard()

    leaving = shard.ingest([due_in(5_000, 0), due_in(5_000, 1, bytes(10_000))], 2, {})

    assert [(reject.offset, reject.reason) for reject in leaving.rejects] == [(1, "too-large")]
    assert "which allows 10000 (max.message.bytes)" in leaving.rejects[0].detail
    assert shard.pending == 1


def test_a_near_schedule_is_held_to_the_same_size_as_a_far_one() -> None:
    shard = open_shard()

    leaving = shard.ingest([due_in(500, 0, bytes(10_000))], 1, {})

    assert ([reject.reason for reject in leaving.rejects], shard.pending) == (["too-large"], 0)


def test_what_leaves_at_once_may_be_as_large_as_it_likes() -> None:
    shard = open_shard(FRESH._replace(cursor=DueKey(NOW_MS, 0)))

    leaving = shard.ingest([due_in(-1, 1, bytes(10_000))], 2, {})

    assert (len(leaving.schedules), leaving.rejects, shard.pending) == (1, [], 0)


@pytest.mark.parametrize("record_bytes", [10_000, 20_000], ids=["as before", "larger records are allowed since"])
@pytest.mark.parametrize("later_ms", [0, 4_500], ids=["still far", "near by now"])
def test_what_was_rejected_before_is_neither_rejected_nor_delivered_when_it_is_read_again(
    record_bytes: int, later_ms: int
) -> None:
    before = open_shard()
    before.ingest([due_in(500, 0), due_in(5_000, 1, bytes(10_000))], 2, {})
    progress = before.progress("relay")
    shard = open_shard(progress, progress.buckets or EMPTY, RULES._replace(record_bytes=record_bytes), later_ms)

    leaving = shard.ingest([due_in(500, 0), due_in(5_000, 1, bytes(10_000))], 2, {})

    assert (progress.offset, progress.position) == (0, 2)
    assert (leaving.rejects, shard.pending) == ([], 1)


def test_what_was_taken_in_is_delivered_though_the_topic_allows_only_smaller_records_since() -> None:
    before = open_shard(rules=RULES._replace(record_bytes=20_000))
    before.ingest([due_in(500, 0, bytes(10_000))], 1, {})
    progress = before.progress("relay")
    shard = open_shard(progress, progress.buckets or EMPTY)

    leaving = shard.ingest([due_in(500, 0, bytes(10_000))], 1, {})

    assert (leaving.rejects, shard.pending) == ([], 1)


def test_what_was_in_memory_before_and_is_too_large_for_a_bucket_now_stays_in_memory() -> None:
    shard = open_shard(Progress(0, 2, NOTHING_DELIVERED), BucketsState(2, NOW_MS + 9_000, ()))

    leaving = shard.ingest([due_in(5_000, 0, bytes(10_000))], 1, {})

    assert (leaving.rejects, shard.calendar.count, shard.must_put) == ([], 1, False)
    assert shard.progress("").offset == 0


def test_a_backlog_that_comes_from_another_backend_may_hold_what_is_too_large_for_this_one() -> None:
    shard = open_shard(Progress(0, 2, NOTHING_DELIVERED))

    leaving = shard.ingest([due_in(5_000, 0, bytes(10_000))], 1, {})

    assert [reject.offset for reject in leaving.rejects] == [0]


def test_what_was_too_large_for_the_backlog_it_moved_to_is_a_dead_letter_once() -> None:
    chunk = [due_in(500, 0), *(due_in(5_000, offset, bytes(10_000)) for offset in (1, 2, 3))]
    first = open_shard(Progress(0, 4, NOTHING_DELIVERED))

    # The first relay comes as far as offset 2, and its successor reads all of it again.
    rejects = [first.ingest(chunk[:3], 3, {}).rejects]
    for _ in range(2):
        progress = first.progress("relay")
        first = open_shard(progress, progress.buckets or EMPTY)
        rejects.append(first.ingest(chunk, 4, {}).rejects)

    assert [[reject.offset for reject in each] for each in rejects] == [[1, 2], [3], []]
    assert first.pending == 1


def test_a_bucket_is_read_a_quarter_of_the_horizon_before_anything_in_it_can_be_due() -> None:
    state = BucketState(written=1, records=3, head_ms=NOW_MS + 1_000, last_ms=NOW_MS + 1_000)
    shard = open_shard(state=BucketsState(0, 0, (BucketState(), state)))

    assert [shard.to_visit(NOW_MS + later_ms, room=True) for later_ms in (749, 750)] == [[], [1]]


def test_a_bucket_that_takes_more_than_a_tick_is_read_earlier() -> None:
    state = BucketState(written=9, records=5_000, head_ms=NOW_MS + 9_000, last_ms=NOW_MS + 9_100)
    shard = open_shard(state=BucketsState(0, 0, (*[BucketState()] * 5, state)))

    assert [shard.to_visit(NOW_MS + later_ms, room=True) for later_ms in (4_999, 5_000)] == [[], [5]]


def test_without_room_in_memory_only_what_is_due_is_read() -> None:
    state = BucketState(written=1, records=3, head_ms=NOW_MS, last_ms=NOW_MS)
    shard = open_shard(state=BucketsState(0, 0, (state,)))

    assert [shard.to_visit(NOW_MS + later_ms, room=False) for later_ms in (-1, 0)] == [[], [0]]


def test_a_gap_in_the_numbers_is_a_lost_bucket() -> None:
    state = BucketState(offset=7, kept=3, read=3, written=9, records=6, head_ms=NOW_MS, last_ms=NOW_MS)
    shard = open_shard(state=BucketsState(0, 0, (state,)))

    with pytest.raises(BucketLost, match="segments 3 to 4 are missing before offset 12"):
        shard.is_next(0, SegmentHead(1, 5, NOW_MS, 1), 12, NOW_MS)


def test_what_is_far_when_a_segment_is_read_moves_to_a_nearer_bucket() -> None:
    state = BucketState(written=1, records=2, head_ms=NOW_MS, last_ms=NOW_MS)
    progress = Progress(9, 9, DueKey(0, 0))
    shard = open_shard(progress, BucketsState(9, 0, (*[BucketState()] * 4, state)))

    shard.visit(4, 0, SegmentHead(1, 0, NOW_MS, 2), [due_in(500, 1), due_in(15_000, 2)])

    assert [(segment.bucket, segment.records) for segment in shard.put().segments] == [(3, 1)]
    assert shard.calendar.count == 1


def test_buckets_that_are_no_longer_written_to_are_read_until_they_are_empty() -> None:
    state = BucketState(written=1, records=1, head_ms=NOW_MS, last_ms=NOW_MS)
    progress = Progress(9, 9, DueKey(0, 0))
    shard = open_shard(progress, BucketsState(9, 0, (*[BucketState()] * 8, state)))

    before = shard.to_visit(NOW_MS, room=True)
    shard.visit(8, 0, SegmentHead(1, 0, NOW_MS, 1), [due_in(900_000, 2)])

    assert before == [8]
    assert [(segment.bucket, segment.records) for segment in shard.put().segments] == [(5, 1)]
    assert shard.to_visit(NOW_MS, room=True) == []
