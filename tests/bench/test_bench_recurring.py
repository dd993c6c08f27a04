from __future__ import annotations

from array import array

import pytest
from bench.cases.recurring import numbered, recurring_speech, slots
from bench.errors import PromiseBroken
from bench.records import headers_of, key_of, value_of
from bench.selection import Recurring

LOAD = Recurring(records=3, interval_ms=900, rounds=2)


def test_each_record_has_a_slot_of_its_own_in_every_round() -> None:
    assert [*slots(LOAD, 10_000)] == [10_000, 10_300, 10_600, 10_900, 11_200, 11_500]


def test_a_record_that_recurs_names_its_interval_its_first_slot_and_its_rounds() -> None:
    rule = [("deliver-id", key_of(1)), ("deliver-from", b"10300"), ("deliver-every", b"900"), ("deliver-count", b"2")]

    assert recurring_speech(LOAD).write(1, 10_300, "target") == (key_of(1), value_of(1), [*headers_of(None), *rule])


def test_the_next_arrival_of_a_record_is_its_next_occurrence() -> None:
    assert numbered(LOAD, array("q", [0, 1, 0, 2, 1, 2]), recurs=True) == [0, 1, 3, 2, 4, 5]


def test_an_occurrence_that_comes_twice_breaks_a_promise() -> None:
    with pytest.raises(PromiseBroken, match="7 deliveries of 6"):
        numbered(LOAD, array("q", [0, 1, 0, 2, 1, 2, 2]), recurs=True)
