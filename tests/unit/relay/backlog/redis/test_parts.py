from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_relay.backlog.redis.parts import MAX_BYTES, MAX_ITEMS, Part, split, versions_between
from delaytopic_relay.backlog.store import Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry

NEAR = Slice(1000, 1000)
ENTRY = IdEntry(1, 2, 3)
BLOBS = {size: bytes(size) for size in (0, 1, 1 << 18, MAX_BYTES - 1, MAX_BYTES, MAX_BYTES + 1)}


def segments_of(sizes: list[int]) -> list[Segment]:
    return [Segment(NEAR, number, BLOBS[size]) for number, size in enumerate(sizes)]


def test_a_put_of_nothing_is_one_empty_part() -> None:
    assert split([], {}) == [Part([], ())]


def test_a_small_put_is_one_part() -> None:
    segments = segments_of([1] * (MAX_ITEMS - 1))

    assert split(segments, {b"id": ENTRY}) == [Part(segments, ((b"id", ENTRY),))]


def test_too_many_items_are_cut_into_parts_ids_last() -> None:
    segments = segments_of([1] * (MAX_ITEMS + 1))

    assert split(segments, {b"id": ENTRY}) == [
        Part(segments[:MAX_ITEMS], ()),
        Part(segments[MAX_ITEMS:], ()),
        Part((), ((b"id", ENTRY),)),
    ]


@given(sizes=st.lists(st.sampled_from(sorted(BLOBS)), max_size=30), ids=st.integers(0, 2 * MAX_ITEMS + 1))
def test_the_parts_are_the_whole_in_order_and_bounded(sizes: list[int], ids: int) -> None:
    segments, entries = segments_of(sizes), {b"%d" % number: ENTRY for number in range(ids)}

    parts = split(segments, entries)

    assert [segment for part in parts for segment in part.segments] == segments
    assert [item for part in parts for item in part.ids] == list(entries.items())
    assert all(len(part.segments) + len(part.ids) <= MAX_ITEMS for part in parts)
    assert all(len(part.segments) == 1 or sum(len(s.data) for s in part.segments) <= MAX_BYTES for part in parts)
    assert len(parts) == 1 or all(part.segments or part.ids for part in parts)


def test_one_part_goes_straight_from_expected_to_new() -> None:
    expected, new = StoreVersion("a", 1, 10), StoreVersion("a", 2, 20)

    assert versions_between(expected, new, 1) == [expected, new]


def test_versions_between_carry_the_offset_from_before_and_a_marked_owner() -> None:
    expected, new = StoreVersion("a", 1, 10), StoreVersion("a", 2, 20)

    assert versions_between(expected, new, 3) == [expected, StoreVersion("a+1", 2, 10), StoreVersion("a+2", 2, 10), new]


def test_versions_between_promise_nothing_where_nothing_was() -> None:
    new = StoreVersion("a", 2, 20)

    assert versions_between(None, new, 2) == [None, StoreVersion("a+1", 2, 0), new]


def test_versions_between_never_pass_the_lower_of_the_two_offsets() -> None:
    new = StoreVersion("a", 2, 5)

    assert versions_between(StoreVersion("b", 1, 10), new, 2) == [
        StoreVersion("b", 1, 10),
        StoreVersion("a+1", 2, 5),
        new,
    ]
