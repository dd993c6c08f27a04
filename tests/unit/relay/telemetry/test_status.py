from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.backlog.shards import bucket_shard, fixed_shard, redis_shard
from tests.support.relay.schedules import cancel, reject, schedule

from delaytopic_relay.backlog.fixed import FixedShard
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.protocol import Shard as AnyShard
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.store import Slice
from delaytopic_relay.core.calendar import SLOT_BITS
from delaytopic_relay.core.commands import Command
from delaytopic_relay.telemetry.status import BacklogStats, backlog_stats, bin_edges_ms, total

NOW_MS = 1_024_000
"""A moment at which a second and a slot of the calendar begin."""
LOOK_AHEAD_MS = 60_000
EDGES_MS = (1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000)
SLOT_MS = 1 << SLOT_BITS


def histogram(**bins: int) -> tuple[int, ...]:
    """Records by upper bin edge in seconds, as in `to_5=2`."""
    return tuple(bins.get(f"to_{edge_ms // 1_000}", 0) for edge_ms in EDGES_MS)


def shard_with(*near_ms: int, index: dict[Slice, int] | None = None) -> RedisShard:
    """A shard with these due times in memory, relative to now, and these slices in the backlog."""
    shard = redis_shard(index=index)
    shard.calendar.add([schedule(NOW_MS + due_ms, n) for n, due_ms in enumerate(near_ms)], only_here=True)
    return shard


def fixed_with(*commands: Command) -> FixedShard:
    shard = fixed_shard()
    shard.ingest(commands, len(commands))
    return shard


def stats_of(shard: AnyShard) -> BacklogStats:
    return backlog_stats(shard, NOW_MS, LOOK_AHEAD_MS)


def test_bins_end_at_times_that_people_say_in_one_word_and_at_the_look_ahead() -> None:
    assert bin_edges_ms(600_000) == (
        *(1_000, 2_000, 5_000, 10_000, 20_000, 30_000),
        *(60_000, 120_000, 300_000, 600_000),
    )


def test_a_look_ahead_that_is_an_edge_by_itself_is_there_once() -> None:
    assert (bin_edges_ms(5_000), bin_edges_ms(500)) == ((1_000, 2_000, 5_000), (500,))


def test_an_empty_shard_has_nothing_to_count() -> None:
    assert stats_of(shard_with()) == BacklogStats(0, 0, None, None, histogram())


def test_schedules_in_memory_are_counted_by_when_they_are_due() -> None:
    shard = shard_with(32, 900, 1_500, 4_000, 9_000, 9_500)

    assert stats_of(shard) == BacklogStats(6, 0, None, NOW_MS + 32, histogram(to_1=2, to_2=1, to_5=1, to_10=2))


def test_what_is_overdue_is_counted_apart_with_the_oldest() -> None:
    shard = shard_with(-5_000, -100, 900)

    assert stats_of(shard) == BacklogStats(3, 2, NOW_MS - 5_000, NOW_MS - 5_000, histogram(to_1=1))


def test_what_is_due_beyond_the_look_ahead_is_pending_and_in_no_bin() -> None:
    shard = shard_with(index={Slice(NOW_MS + 3_600_000, 1_000): 7})

    assert stats_of(shard) == BacklogStats(7, 0, None, NOW_MS + 3_600_000, histogram())


def test_narrow_slices_are_counted_whole() -> None:
    shard = shard_with(index={Slice(NOW_MS + 3_000, 1_000): 4, Slice(NOW_MS + 30_000, 1_000): 5})

    assert stats_of(shard) == BacklogStats(9, 0, None, NOW_MS + 3_000, histogram(to_5=4, to_60=5))


def test_what_is_taken_in_and_not_yet_in_the_backlog_is_counted_by_when_it_is_due() -> None:
    shard = shard_with(900)

    shard.ingest([schedule(NOW_MS + 40_000, 7)], 8, {})

    assert stats_of(shard) == BacklogStats(2, 0, None, NOW_MS + 900, histogram(to_1=1, to_60=1))


def test_what_is_on_its_way_from_the_backlog_is_counted_in_its_slice() -> None:
    shard = shard_with(index={Slice(NOW_MS + 3_000, 1_000): 4})

    load = shard.next_load(NOW_MS, room=True)

    assert load is not None
    assert stats_of(shard) == BacklogStats(4, 0, None, NOW_MS + 3_000, histogram(to_5=4))


def test_what_is_on_its_way_to_a_bucket_is_counted_by_when_it_is_due() -> None:
    rules = BucketRules(horizon_ms=1_000, buckets=6, source_id=1, record_bytes=10_000, full_records=100)
    shard = bucket_shard(rules)
    shard.advance(NOW_MS)

    shard.ingest([schedule(NOW_MS + 40_000, 0)], 1, {})

    assert stats_of(shard) == BacklogStats(1, 0, None, NOW_MS + 40_000, histogram(to_60=1))


def test_a_wide_slice_is_spread_evenly_over_the_bins_it_covers() -> None:
    # Given a minute that begins in ten seconds, with ten records a second
    shard = shard_with(index={Slice(NOW_MS + 10_000, 60_000): 600})

    assert stats_of(shard) == BacklogStats(600, 0, None, NOW_MS + 10_000, histogram(to_20=100, to_30=100, to_60=300))


def test_of_a_wide_slice_that_has_begun_the_part_before_now_is_overdue_and_the_rest_spread_over_what_is_left() -> None:
    # Given a minute of which half has passed, with ten records a second
    shard = shard_with(index={Slice(NOW_MS - 30_000, 60_000): 600})

    expected = histogram(to_1=10, to_2=10, to_5=30, to_10=50, to_20=100, to_30=100)
    assert stats_of(shard) == BacklogStats(600, 300, NOW_MS - 30_000, NOW_MS - 30_000, expected)


def test_records_of_a_fixed_delay_are_counted_one_by_one() -> None:
    shard = fixed_with(*(schedule(NOW_MS + due_ms, n) for n, due_ms in enumerate((-10, 0, 1, 1_000, 1_001))))

    assert stats_of(shard) == BacklogStats(5, 1, NOW_MS - 10, NOW_MS - 10, histogram(to_1=3, to_2=1))


def test_a_refused_record_at_the_head_of_a_fixed_delay_is_not_overdue_since_1970() -> None:
    shard = fixed_with(reject(0), schedule(NOW_MS + 500, 1))

    assert stats_of(shard) == BacklogStats(2, 0, None, NOW_MS + 500, histogram(to_1=1))


@QUICK
@given(
    st.lists(st.integers(-30_000, 10_000), max_size=20),
    st.dictionaries(
        st.builds(lambda start, width: Slice(NOW_MS + start * width, width), st.integers(0, 9), st.just(1_000)),
        st.integers(1, 1_000),
    ),
)
def test_every_pending_record_is_overdue_or_in_a_bin(near_ms: list[int], index: dict[Slice, int]) -> None:
    counted = stats_of(shard_with(*near_ms, index=index))

    assert counted.overdue + sum(counted.histogram) == counted.pending == len(near_ms) + sum(index.values())


def test_shards_are_counted_together() -> None:
    of_shards = [
        BacklogStats(5, 2, NOW_MS - 9, NOW_MS - 9, (1, 2)),
        BacklogStats(0, 0, None, None, (0, 0)),
        BacklogStats(4, 0, None, NOW_MS + 3, (3, 1)),
    ]

    assert total(of_shards) == BacklogStats(9, 2, NOW_MS - 9, NOW_MS - 9, (4, 3))


def test_no_shards_have_nothing() -> None:
    assert total([]) == BacklogStats(0, 0, None, None, ())


def test_what_was_cancelled_or_replaced_is_counted_apart_and_is_not_in_the_histogram() -> None:
    shard = redis_shard()
    for offset, name in enumerate((b"cancelled", b"replaced", b"kept")):
        shard.ingest([schedule(NOW_MS + 8_000, offset, name)], offset + 1, {})
    commands: list[Command] = [cancel(3, b"cancelled"), schedule(NOW_MS + 40_000, 4, b"replaced")]
    shard.ingest(commands, 5, {})

    assert stats_of(shard) == BacklogStats(4, 0, None, NOW_MS + 8_000, histogram(to_10=1, to_60=1), withdrawn=2)


def test_counts_of_what_was_withdrawn_are_added_up() -> None:
    of_shards = [BacklogStats(5, 0, None, None, (5,), 2), BacklogStats(4, 0, None, None, (4,), 1)]

    assert total(of_shards) == BacklogStats(9, 0, None, None, (9,), 3)
