"""Sets of minutes as few ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_audit.model.manifest import MinuteRange
from delaytopic_audit.tables.minutes import ranges_of


@given(st.sets(st.integers(0, 400)), st.integers(1, 5))
def test_ranges_of_minutes_cover_them_in_as_few_ranges_as_are_allowed(minutes: set[int], most: int) -> None:
    ranges = ranges_of(minutes, most)

    covered = [minute for start, end in ranges for minute in range(start, end)]
    assert minutes <= set(covered)
    assert covered == sorted(set(covered))
    assert len(ranges) <= most


def test_ranges_of_minutes_are_exact_where_there_are_enough_and_fill_the_narrowest_gaps_else() -> None:
    minutes = [1, 2, 3, 10, 12, 50]

    assert ranges_of(minutes) == [MinuteRange(1, 4), MinuteRange(10, 11), MinuteRange(12, 13), MinuteRange(50, 51)]
    assert ranges_of(minutes, 2) == [MinuteRange(1, 13), MinuteRange(50, 51)]
