from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK

from delaytopic_operator.scaling.need import Sizes, power, useful_sizes


@pytest.mark.parametrize(
    ("partitions", "sizes"),
    [(1, (1,)), (6, (1, 2, 3, 6)), (7, (1, 2, 3, 4, 7)), (10, (1, 2, 3, 4, 5, 10)), (12, (1, 2, 3, 4, 6, 12))],
)
def test_a_size_is_useful_if_no_smaller_one_does_as_much(partitions: int, sizes: tuple[int, ...]) -> None:
    assert useful_sizes(partitions) == sizes


def test_seven_to_eleven_relays_do_no_more_than_six_with_twelve_partitions() -> None:
    assert [power(12, relays) for relays in range(13)] == [0, 1, 2, 3, 4, 4, 6, 6, 6, 6, 6, 6, 12]


@given(partitions=st.integers(1, 300))
@QUICK
def test_every_divisor_is_useful_and_each_useful_size_does_more_than_the_one_before(partitions: int) -> None:
    sizes = useful_sizes(partitions)

    assert {each for each in range(1, partitions + 1) if partitions % each == 0} <= set(sizes)
    powers = [power(partitions, size) for size in sizes]
    assert powers == sorted(set(powers))


def test_a_need_gets_the_smallest_size_that_can_do_it() -> None:
    sizes = Sizes(partitions=12, least=1, most=None)

    assert [sizes.fit(need) for need in (0, 0.3, 1, 1.01, 4.5, 6.1, 12, 100)] == [1, 1, 1, 2, 6, 12, 12, 12]


def test_the_most_useful_size_lies_below_a_limit_that_is_not_useful_itself() -> None:
    sizes = Sizes(partitions=12, least=1, most=8)

    assert (sizes.max_useful, sizes.allowed, sizes.bound_by_partitions) == (6, (1, 2, 3, 4, 6), False)


def test_a_minimum_beyond_what_is_useful_is_honoured_as_a_reserve() -> None:
    assert Sizes(partitions=1, least=2, most=None).allowed == (2,)


def test_a_minimum_that_is_not_useful_is_raised_to_the_next_useful_size() -> None:
    assert Sizes(partitions=12, least=5, most=None).allowed == (6, 12)


def test_no_size_is_above_the_limit_even_if_the_minimum_is() -> None:
    assert Sizes(partitions=12, least=5, most=5).allowed == (5,)
    assert Sizes(partitions=12, least=9, most=5).allowed == (5,)


@given(
    partitions=st.integers(1, 40),
    least=st.integers(0, 40),
    most=st.none() | st.integers(1, 40),
    relays=st.integers(0, 45),
    need=st.floats(0, 45),
)
@QUICK
def test_a_need_outgrows_relays_exactly_if_it_gets_a_larger_size(
    partitions: int, least: int, most: int | None, relays: int, need: float
) -> None:
    sizes = Sizes(partitions, least, most)

    assert (need > sizes.outgrown_by(relays)) == (sizes.fit(need) > relays)
