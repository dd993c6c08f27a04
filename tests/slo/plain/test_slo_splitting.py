"""Shares of ranges for parallel tasks, and ranges of minutes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_slo.model.manifest import MinuteRange, Range, Role
from delaytopic_slo.reading.planning import shares
from delaytopic_slo.tables.minutes import minutes_in, ranges_of

RANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1_000), st.integers(0, 300_000)), max_size=8)


@given(RANGES, st.integers(1, 6))
def test_shares_cover_every_offset_once_and_no_task_reads_a_partition_twice(
    given_ranges: list[tuple[int, int, int]], tasks: int
) -> None:
    unique = {partition: (start, length) for partition, start, length in given_ranges}
    ranges = [
        Range(topic="a", role=Role.SOURCE, partition=partition, start=start, end=start + length)
        for partition, (start, length) in unique.items()
    ]

    loads = shares(ranges, tasks)

    pieces = sorted((r.partition, r.start, r.end) for load in loads for r in load)
    joined: dict[int, list[int]] = {}
    for partition, start, end in pieces:
        bounds = joined.setdefault(partition, [start, start])
        assert bounds[1] == start
        bounds[1] = end
    assert joined == {r.partition: [r.start, r.end] for r in ranges if r.end > r.start}
    assert all(len({r.partition for r in load}) == len(load) for load in loads)


@given(st.sets(st.integers(0, 400)), st.integers(1, 5))
def test_ranges_of_minutes_cover_them_in_as_few_ranges_as_are_allowed(minutes: set[int], most: int) -> None:
    ranges = ranges_of(minutes, most)

    covered = list(minutes_in(ranges))
    assert minutes <= set(covered)
    assert covered == sorted(set(covered))
    assert len(ranges) <= most


def test_ranges_of_minutes_are_exact_where_there_are_enough_and_fill_the_narrowest_gaps_else() -> None:
    minutes = [1, 2, 3, 10, 12, 50]

    assert ranges_of(minutes) == [MinuteRange(1, 4), MinuteRange(10, 11), MinuteRange(12, 13), MinuteRange(50, 51)]
    assert ranges_of(minutes, 2) == [MinuteRange(1, 13), MinuteRange(50, 51)]
