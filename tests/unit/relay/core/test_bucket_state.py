"""Tests of what is committed of buckets, as text; and one bucket as its owner keeps it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_relay.backlog.kafka.bucket import Bucket
from delaytopic_relay.core.bucket_state import LARGEST, BucketsState, BucketState, decode_buckets, number_of
from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.progress import Progress, decode_progress, encode_metadata

OFFSETS_LIMIT = 4_096
"""The broker's default for `offset.metadata.max.bytes`."""


@st.composite
def bucket_states(draw: st.DrawFn) -> BucketState:
    kept, read, written = sorted(draw(st.tuples(*[st.integers(0, 10**12)] * 3)))
    head_ms, last_ms = sorted(draw(st.tuples(*[st.integers(0, 10**13)] * 2)))
    offset, records = draw(st.integers(0, 10**12)), draw(st.integers(0, 10**10))
    if read == written:
        return BucketState(offset, kept, read, written)
    first_due_ms, last_due_ms = sorted(draw(st.tuples(*[st.integers(head_ms, 10**14)] * 2)))
    return BucketState(offset, kept, read, written, head_ms, last_ms, records, first_due_ms, last_due_ms)


@given(st.lists(bucket_states(), min_size=1, max_size=32), st.integers(0, 10**12), st.integers(0, 10**14))
def test_progress_with_buckets_survives_its_text(buckets: list[BucketState], filled: int, reach_ms: int) -> None:
    progress = Progress(3, 7, DueKey(5, 2), "owner;with:strange,signs", BucketsState(filled, reach_ms, tuple(buckets)))

    assert decode_progress(3, encode_metadata(progress)) == progress


@pytest.mark.parametrize(
    ("text", "least", "why"),
    [(str(LARGEST + 1), 0, "larger"), (b"%d" % (-LARGEST - 1), -LARGEST, "less"), ("-1", 0, "less")],
)
def test_a_number_beyond_64_bits_or_below_what_it_can_be_is_refused(text: str | bytes, least: int, why: str) -> None:
    with pytest.raises(ValueError, match=f"is {why} than an offset"):
        number_of(text, least)


@pytest.mark.parametrize("counts", ["-1:0:0", "0:-1:0", "0:0:-1", f"{LARGEST}:{LARGEST}:{LARGEST}"])
def test_segments_that_no_relay_counts_so_are_refused(counts: str) -> None:
    with pytest.raises(ValueError, match="counts segments as no relay does"):
        decode_buckets(f"5:1000,0:{counts}")


def test_the_text_of_thirty_two_large_buckets_is_small_enough_for_kafka() -> None:
    times_ms = (2 * 10**12, 2 * 10**12 + 10**10)
    large = BucketState(10**12, 10**11, 10**11 + 1_000, 10**11 + 10**9, *times_ms, 10**10, *times_ms)

    text = encode_metadata(Progress(1, 1, DueKey(0, 0), "x" * 400, BucketsState(10**12, 10**13, (large,) * 32)))

    assert len(text) < OFFSETS_LIMIT


def test_nothing_unread_is_due_before_the_first_floor_and_a_later_floor_never_lies_below_it() -> None:
    bucket = Bucket(BucketState())
    bucket.wrote(1_000, 1_100, 1_900, 3)
    bucket.wrote(2_000, 2_500, 2_500, 2)

    assert (bucket.bound_ms, bucket.floor_ms(500), bucket.floor_ms(3_000)) == (1_000, 2_000, 3_000)


def test_an_empty_bucket_bounds_nothing_and_takes_any_floor() -> None:
    bucket = Bucket(BucketState(offset=9, kept=4, read=4, written=4))

    assert (bucket.waits, bucket.bound_ms, bucket.floor_ms(500)) == (False, None, 500)


def test_a_segment_is_kept_until_the_last_of_its_schedules_in_memory_is_done() -> None:
    bucket = Bucket(BucketState())
    for _ in range(3):
        bucket.wrote(1_000, 1_200, 1_400, 1)
    bucket.visited(10, 1_000, 1, DueKey(1_500, 1))
    bucket.visited(12, 1_000, 1, DueKey(1_200, 2))

    assert bucket.state(DueKey(1_300, 0)) == BucketState(10, 0, 2, 3, 1_000, 1_000, 1, 1_200, 1_400)
    assert bucket.state(DueKey(1_500, 1)) == BucketState(13, 2, 2, 3, 1_000, 1_000, 1, 1_200, 1_400)


def test_what_is_kept_is_read_again_by_a_successor_and_bounds_everything_until_then() -> None:
    state = BucketState(10, 0, 2, 3, 1_000, 1_000, 1, 1_200, 1_400)

    bucket = Bucket(state)

    assert (bucket.again, bucket.bound_ms) == (True, 0)
    bucket.visited(10, 900, 1, None)
    bucket.visited(12, 900, 1, None)
    assert (bucket.again, bucket.bound_ms, bucket.records) == (False, 1_000, 1)
