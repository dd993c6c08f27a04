from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.schedules import schedule

from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.pending.search import Listed, Shortlist

PLACES = st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 9))


@QUICK
@given(st.lists(st.lists(PLACES, max_size=8), max_size=12), st.integers(1, 7))
def test_it_keeps_the_first_places_once_whatever_the_order_of_arrival(
    portions: list[list[tuple[int, int, int]]], size: int
) -> None:
    shortlist = Shortlist(size)

    for portion in portions:
        for due_ms, partition, offset in portion:
            shortlist.add(partition, [schedule(due_ms, offset)])

    found = sorted({place for portion in portions for place in portion})[:size]
    assert [record[:3] for record in shortlist.records()] == found
    assert shortlist.missing == max(0, size - len(found))
    assert (shortlist.last_ms is None) == (len(found) < size)
    assert shortlist.last_ms is None or shortlist.last_ms >= found[-1][0]


def test_a_record_is_told_without_value_and_headers() -> None:
    shortlist = Shortlist(3)

    shortlist.add(
        2, [Schedule(7, 5, b"k", b"secret", [("h", b"secret")], id=b"i", target="t"), schedule(8, 6, value=None)]
    )

    assert shortlist.records() == [Listed(7, 2, 5, b"i", "t", b"k", 6), Listed(8, 2, 6, None, None, b"k", None)]
