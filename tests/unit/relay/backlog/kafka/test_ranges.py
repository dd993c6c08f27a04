"""Tests of where the ranges of buckets begin, and how that adapts to how full they are."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_relay.backlog.kafka.ranges import BucketRanges, BucketRules

RULES = BucketRules(horizon_ms=1_000, buckets=6, source_id=1, full_records=100)
NOW_MS = 1_000_000
STEP_MS = 250
USUAL_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000]


def ranges_after(*portions: dict[int, int]) -> BucketRanges:
    """Each portion says how many records each bucket takes in a quarter of the horizon."""
    ranges = BucketRanges(RULES)
    ranges.adapt(NOW_MS)
    for number, portion in enumerate(portions, 1):
        for bucket, records in portion.items():
            ranges.took(bucket, records)
        ranges.adapt(NOW_MS + number * STEP_MS)
    return ranges


def test_ranges_double_from_bucket_to_bucket() -> None:
    assert ranges_after({}, {}).waits_ms == USUAL_MS


def test_a_bucket_that_took_too_much_gives_the_upper_half_of_its_range_to_the_one_above() -> None:
    ranges = ranges_after({3: 101})

    assert ranges.waits_ms == [1_000, 2_000, 4_000, 8_000, 12_000, 32_000]
    assert [ranges.is_split(number) for number in range(6)] == [False, False, False, True, False, False]


def test_what_is_still_too_full_is_split_again() -> None:
    assert ranges_after({3: 101}, {3: 101}).waits_ms == [1_000, 2_000, 4_000, 8_000, 10_000, 32_000]


def test_no_range_becomes_narrower_than_twice_what_is_read_at_once() -> None:
    assert ranges_after(*[{0: 101}] * 9).waits_ms == [1_000, 1_500, *USUAL_MS[2:]]


def test_neighbours_that_take_little_are_merged_again() -> None:
    assert ranges_after({3: 101}, {3: 101}, {3: 20}, {4: 5}).waits_ms == USUAL_MS


def test_neighbours_that_together_take_much_stay_split() -> None:
    assert ranges_after({3: 101}, {3: 60, 4: 60}).waits_ms[4] == 12_000


def test_nothing_is_decided_before_a_quarter_of_the_horizon_has_passed() -> None:
    ranges = ranges_after({})
    ranges.took(3, 1_000)

    ranges.adapt(NOW_MS + STEP_MS + 249)

    assert ranges.waits_ms == USUAL_MS


def test_a_clock_that_is_set_back_does_not_stop_it() -> None:
    ranges = ranges_after({})
    ranges.took(3, 1_000)

    ranges.adapt(NOW_MS - 3_600_000)

    assert ranges.is_split(3)


@given(st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 300)), max_size=60))
def test_ranges_never_cross_and_never_begin_later_than_retention_allows(portions: list[dict[int, int]]) -> None:
    waits_ms = ranges_after(*portions).waits_ms

    assert all(above - below >= 2 * RULES.lead_ms for below, above in pairwise(waits_ms))
    assert all(wait_ms <= usual_ms for wait_ms, usual_ms in zip(waits_ms, USUAL_MS, strict=True))
    assert waits_ms[0] == RULES.horizon_ms
