from __future__ import annotations

import pytest
from bench.errors import PromiseBroken
from bench.figures.tally import Tally, require_each_once, require_none_early, tally
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(0, 200).flatmap(lambda count: st.permutations(range(count))))
def test_each_record_once_in_any_order_is_as_it_should_be(arrived: list[int]) -> None:
    found = tally(arrived, len(arrived))

    assert found == Tally(lost=[], twice=[], unknown=[])


def test_what_is_missing_repeated_or_foreign_is_named() -> None:
    arrived = [0, 3, 3, 1, 3, -1, 7]

    found = tally(arrived, 5)

    assert found == Tally(lost=[2, 4], twice=[3], unknown=[-1, 7])


def test_a_record_that_is_not_yet_wanted_is_not_lost() -> None:
    found = tally([0, 2], expected=4, wanted=[0, 1])

    assert found == Tally(lost=[1], twice=[], unknown=[])


def test_a_good_run_passes() -> None:
    require_each_once("case", Tally())


def test_a_loss_and_a_duplicate_end_the_run_with_the_numbers() -> None:
    found = Tally(lost=list(range(7)), twice=[9])

    with pytest.raises(PromiseBroken) as caught:
        require_each_once("fixed delay", found)

    assert str(caught.value) == "fixed delay: 7 lost (0, 1, 2, 3, 4, ...); 1 delivered twice (9)"


def test_a_record_may_arrive_when_it_is_due() -> None:
    require_none_early("case", due_ms=[10, 20], arrived_ms=[10, 25])


def test_a_record_before_its_time_ends_the_run() -> None:
    with pytest.raises(PromiseBroken, match="case: 1 records arrived before they were due"):
        require_none_early("case", due_ms=[10, 20], arrived_ms=[10, 19])
