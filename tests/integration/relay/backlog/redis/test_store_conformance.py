"""Tests of what every backlog must do: each clause of `delaytopic_relay.backlog.store`, for each backlog there is."""

from __future__ import annotations

import pytest
from tests.support.relay.backlog.stores import Store, slices_of

from delaytopic_relay.backlog.redis.layout import stored_bytes
from delaytopic_relay.backlog.store import END_MS, BacklogStore, Page, Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogMoved

SHARD = 3
CLAIM = StoreVersion("relay-a", 1, 0)
FIRST = StoreVersion("relay-a", 2, 100)
SECOND = StoreVersion("relay-a", 3, 250)
OTHER_RELAY = StoreVersion("relay-b", 3, 100)
NEAR = Slice(1_795_269_686_000, 1000)
FAR = Slice(1_795_269_700_000, 60_000)
ENTRY = IdEntry(7, 1_795_269_686_270, 5)
NEWER_ENTRY = IdEntry(120, 1_795_269_700_000, 120)


def segment(slice_: Slice, data: bytes, records: int = 1) -> Segment:
    return Segment(slice_, records, data)


def load_all(backlog: BacklogStore, version: StoreVersion, slice_: Slice, partition: int = SHARD) -> list[bytes]:
    return backlog.load(partition, version, slice_, 0, 1_000_000)


def filled(backlog: BacklogStore) -> BacklogStore:
    """A backlog at FIRST, with segments in two slices and an id."""
    backlog.put(SHARD, None, CLAIM, [], {})
    backlog.put(SHARD, CLAIM, FIRST, [segment(NEAR, b"n1", 10), segment(FAR, b"f1", 2)], {b"id-1": ENTRY})
    return backlog


# --- forgetting a shard


def test_a_shard_that_was_reset_is_as_one_that_was_never_claimed_and_the_others_stay(backlog: BacklogStore) -> None:
    filled(backlog)
    backlog.put(SHARD + 1, None, CLAIM, [segment(NEAR, b"n1", 10)], {})

    backlog.reset(SHARD, [NEAR])

    assert (backlog.version(SHARD), slices_of(backlog, SHARD)) == (None, {})
    assert (backlog.version(SHARD + 1), slices_of(backlog, SHARD + 1)) == (CLAIM, {NEAR: 10})
    backlog.put(SHARD, None, CLAIM, [], {})
    assert slices_of(backlog, SHARD) == {}
    assert (load_all(backlog, CLAIM, NEAR), load_all(backlog, CLAIM, FAR)) == ([], [])
    assert backlog.ids(SHARD, CLAIM, [b"id-1"]) == [None]


def test_who_owned_a_shard_that_was_reset_is_told_with_the_next_write(backlog: BacklogStore) -> None:
    filled(backlog)
    backlog.reset(SHARD, [])

    with pytest.raises(BacklogMoved):
        backlog.put(SHARD, FIRST, SECOND, [], {})


# --- versions and claims


def test_a_shard_that_was_never_claimed_has_no_version_and_nothing_else(backlog: BacklogStore) -> None:
    assert (backlog.version(SHARD), slices_of(backlog, SHARD)) == (None, {})


def test_a_claim_without_segments_sets_the_version(backlog: BacklogStore) -> None:
    backlog.put(SHARD, None, CLAIM, [], {})

    assert backlog.version(SHARD) == CLAIM


def test_a_claim_may_move_the_offset_back(backlog: BacklogStore) -> None:
    filled(backlog)

    backlog.put(SHARD, FIRST, StoreVersion("relay-b", 3, 40), [], {})

    assert backlog.version(SHARD) == StoreVersion("relay-b", 3, 40)


def test_a_claim_keeps_what_is_in_the_backlog(backlog: BacklogStore) -> None:
    filled(backlog)

    backlog.put(SHARD, FIRST, OTHER_RELAY, [], {})

    assert slices_of(backlog, SHARD) == {NEAR: 10, FAR: 2}
    assert load_all(backlog, OTHER_RELAY, NEAR) == [b"n1"]
    assert backlog.ids(SHARD, OTHER_RELAY, [b"id-1"]) == [ENTRY]


def test_a_put_may_be_the_first_write(backlog: BacklogStore) -> None:
    backlog.put(SHARD, None, FIRST, [segment(NEAR, b"n1")], {})

    assert (backlog.version(SHARD), load_all(backlog, FIRST, NEAR)) == (FIRST, [b"n1"])


def test_a_claimed_shard_cannot_be_claimed_as_if_it_were_new(backlog: BacklogStore) -> None:
    backlog.put(SHARD, None, CLAIM, [], {})

    with pytest.raises(BacklogMoved):
        backlog.put(SHARD, None, OTHER_RELAY, [], {})

    assert backlog.version(SHARD) == CLAIM


@pytest.mark.parametrize("owner", ["", "a:b:c", "relay/ä ü", "x" * 300, "relay-a+1"])
def test_an_owner_token_may_be_any_text(backlog: BacklogStore, owner: str) -> None:
    backlog.put(SHARD, None, StoreVersion(owner, 1, 2**53), [], {})

    assert backlog.version(SHARD) == StoreVersion(owner, 1, 2**53)


def test_another_relay_sees_the_same_backlog(store: Store) -> None:
    filled(store.open())

    successor = store.open()

    assert (successor.version(SHARD), load_all(successor, FIRST, FAR)) == (FIRST, [b"f1"])


def test_what_was_put_outlives_the_backlog_that_put_it(store: Store) -> None:
    backlog = filled(store.open())

    backlog.close()

    assert slices_of(store.open(), SHARD) == {NEAR: 10, FAR: 2}


# --- put


def test_segments_of_a_slice_keep_their_order_within_and_across_puts(backlog: BacklogStore) -> None:
    backlog.put(SHARD, None, FIRST, [segment(NEAR, b"1"), segment(FAR, b"x"), segment(NEAR, b"2")], {})
    backlog.put(SHARD, FIRST, SECOND, [segment(NEAR, b"3"), segment(NEAR, b"2")], {})

    assert load_all(backlog, SECOND, NEAR) == [b"1", b"2", b"3", b"2"]


def test_slices_tell_the_records_put_into_each_copies_included(backlog: BacklogStore) -> None:
    backlog.put(SHARD, None, FIRST, [segment(NEAR, b"1", 10), segment(FAR, b"2", 3), segment(NEAR, b"3", 5)], {})
    backlog.put(SHARD, FIRST, SECOND, [segment(NEAR, b"1", 10)], {})

    assert slices_of(backlog, SHARD) == {NEAR: 25, FAR: 3}


def test_slices_with_one_start_and_two_widths_are_two_slices(backlog: BacklogStore) -> None:
    wider = Slice(NEAR.start_ms, 60_000)

    backlog.put(SHARD, None, FIRST, [segment(NEAR, b"n", 1), segment(wider, b"w", 2)], {})

    assert slices_of(backlog, SHARD) == {NEAR: 1, wider: 2}
    assert (load_all(backlog, FIRST, NEAR), load_all(backlog, FIRST, wider)) == ([b"n"], [b"w"])


@pytest.mark.parametrize("data", [b"", b"\x00", b"\r\n$3\r\n", bytes(range(256)), b"\xff" * 100_000])
def test_segments_come_back_byte_for_byte(backlog: BacklogStore, data: bytes) -> None:
    backlog.put(SHARD, None, FIRST, [segment(NEAR, data)], {})

    assert load_all(backlog, FIRST, NEAR) == [data]


@pytest.mark.parametrize("slice_", [Slice(0, 1), Slice(-60_000, 60_000), Slice(253_402_300_799_000, 86_400_000)])
def test_a_slice_may_begin_anywhere(backlog: BacklogStore, slice_: Slice) -> None:
    backlog.put(SHARD, None, FIRST, [segment(slice_, b"s", 4)], {})

    assert (slices_of(backlog, SHARD), load_all(backlog, FIRST, slice_)) == ({slice_: 4}, [b"s"])


def test_a_put_from_a_version_that_is_not_the_shards_changes_nothing(backlog: BacklogStore) -> None:
    filled(backlog)

    with pytest.raises(BacklogMoved):
        backlog.put(SHARD, CLAIM, SECOND, [segment(NEAR, b"n2", 9)], {b"id-1": NEWER_ENTRY, b"id-2": ENTRY})

    assert (backlog.version(SHARD), slices_of(backlog, SHARD)) == (FIRST, {NEAR: 10, FAR: 2})
    assert load_all(backlog, FIRST, NEAR) == [b"n1"]
    assert backlog.ids(SHARD, FIRST, [b"id-1", b"id-2"]) == [ENTRY, None]


def test_a_put_repeated_has_no_second_effect(backlog: BacklogStore) -> None:
    filled(backlog)

    backlog.put(SHARD, CLAIM, FIRST, [segment(NEAR, b"n1", 10), segment(FAR, b"f1", 2)], {b"id-1": ENTRY})

    assert (backlog.version(SHARD), slices_of(backlog, SHARD)) == (FIRST, {NEAR: 10, FAR: 2})
    assert load_all(backlog, FIRST, NEAR) == [b"n1"]


def test_a_claim_repeated_has_no_second_effect(backlog: BacklogStore) -> None:
    backlog.put(SHARD, None, CLAIM, [], {})
    backlog.put(SHARD, None, CLAIM, [], {})

    assert backlog.version(SHARD) == CLAIM


def test_a_put_of_many_segments_and_ids_is_whole_and_in_order(backlog: BacklogStore) -> None:
    slices = [Slice(start_ms, 1000) for start_ms in range(0, 40_000, 1000)]
    segments = [Segment(slices[number % 40], 1, b"%d" % number) for number in range(4_321)]
    ids = {b"id-%d" % number: IdEntry(number, number, number) for number in range(2_345)}

    backlog.put(SHARD, None, CLAIM, [], {})
    backlog.put(SHARD, CLAIM, FIRST, segments, ids)

    assert backlog.version(SHARD) == FIRST
    assert sum(slices_of(backlog, SHARD).values()) == 4_321
    assert load_all(backlog, FIRST, slices[7]) == [b"%d" % number for number in range(7, 4_321, 40)]
    assert backlog.ids(SHARD, FIRST, list(ids)) == list(ids.values())


def test_a_put_of_many_bytes_is_whole_and_in_order(backlog: BacklogStore) -> None:
    megabytes = [bytes([number]) * (1 << 20) for number in range(9)]
    one_large = b"\xee" * (5 << 20)

    backlog.put(SHARD, None, FIRST, [segment(NEAR, data) for data in [*megabytes, one_large]], {})

    assert load_all(backlog, FIRST, NEAR) == [*megabytes, one_large]


def test_a_large_put_repeated_has_no_second_effect(backlog: BacklogStore) -> None:
    segments = [segment(NEAR, b"%d" % number) for number in range(2_500)]
    backlog.put(SHARD, None, FIRST, segments, {})

    backlog.put(SHARD, None, FIRST, segments, {})

    assert slices_of(backlog, SHARD) == {NEAR: 2_500}


def test_a_large_put_from_a_version_that_is_not_the_shards_changes_nothing(backlog: BacklogStore) -> None:
    filled(backlog)

    with pytest.raises(BacklogMoved):
        backlog.put(SHARD, CLAIM, SECOND, [segment(NEAR, b"%d" % number) for number in range(2_500)], {})

    assert (backlog.version(SHARD), slices_of(backlog, SHARD)) == (FIRST, {NEAR: 10, FAR: 2})


# --- sizes


def test_every_write_tells_how_much_the_shard_takes(backlog: BacklogStore) -> None:
    # A claim, a put, a cascade's copies into narrower slices, and drops until nothing is left
    narrow = [segment(Slice(FAR.start_ms + ms, 1_000), b"f" * 30) for ms in (0, 5_000)]
    puts = [
        backlog.put(SHARD, None, CLAIM, [], {}),
        backlog.put(SHARD, CLAIM, FIRST, [segment(NEAR, b"n" * 100), segment(FAR, b"f" * 60)], {b"id-1": ENTRY}),
        backlog.put(SHARD, CLAIM, FIRST, [segment(NEAR, b"n" * 100), segment(FAR, b"f" * 60)], {b"id-1": ENTRY}),
        backlog.put(SHARD, FIRST, SECOND, narrow, {b"id-1": NEWER_ENTRY}),
    ]
    drops = [
        backlog.drop(SHARD, SECOND, [FAR, FAR], []),
        backlog.drop(SHARD, SECOND, [NEAR, Slice(0, 1_000)], [b"id-1", b"id-1", b"?"]),
        backlog.drop(SHARD, SECOND, [each.slice for each in narrow], []),
    ]

    assert puts == [0, *[stored_bytes(160, 2, 1)] * 2, stored_bytes(220, 4, 1)]
    assert drops == [stored_bytes(160, 3, 1), stored_bytes(60, 2, 0), 0]


def test_the_size_is_known_to_who_takes_a_shard_over_and_nothing_after_a_reset(store: Store) -> None:
    filled(store.open())
    successor = store.open()

    claimed = successor.put(SHARD, FIRST, OTHER_RELAY, [], {})
    successor.reset(SHARD, [])
    refilled = [
        successor.put(SHARD, None, CLAIM, [], {}),
        successor.put(SHARD, CLAIM, FIRST, [segment(NEAR, b"again")], {}),
    ]

    assert (claimed, refilled) == (stored_bytes(4, 2, 1), [0, stored_bytes(5, 1, 0)])


def test_a_large_put_tells_the_size_of_all_its_parts(backlog: BacklogStore) -> None:
    segments = [segment(NEAR, b"%04d" % number) for number in range(2_500)]

    assert backlog.put(SHARD, None, FIRST, segments, {}) == stored_bytes(10_000, 1, 0)


# --- pages


SECONDS = [Slice(start_ms, 1_000) for start_ms in range(0, 20_000, 1_000)]


@pytest.mark.parametrize(
    ("from_ms", "page"),
    [
        (-5_000, Page(dict.fromkeys(SECONDS[:3], 1), 3_000)),
        (0, Page(dict.fromkeys(SECONDS[:3], 1), 3_000)),
        (1, Page(dict.fromkeys(SECONDS[1:4], 1), 4_000)),
        (3_000, Page(dict.fromkeys(SECONDS[3:6], 1), 6_000)),
        (17_000, Page(dict.fromkeys(SECONDS[17:], 1), END_MS)),
        (20_000, Page({}, END_MS)),
    ],
)
def test_a_page_has_the_first_slices_from_a_time_on_and_tells_where_the_next_begins(
    backlog: BacklogStore, from_ms: int, page: Page
) -> None:
    backlog.put(SHARD, None, FIRST, [segment(slice_, b"s") for slice_ in reversed(SECONDS)], {})

    assert backlog.page(SHARD, FIRST, from_ms, 4) == page


def test_no_page_ends_between_slices_that_begin_together(backlog: BacklogStore) -> None:
    wide = [Slice(3_000, width_ms) for width_ms in (60_000, 3_600_000)]
    backlog.put(SHARD, None, FIRST, [segment(slice_, b"s") for slice_ in [*SECONDS[:6], *wide]], {})

    pages = [backlog.page(SHARD, FIRST, from_ms, 5) for from_ms in (0, 3_000, 5_000)]

    assert pages == [
        Page(dict.fromkeys(SECONDS[:3], 1), 3_000),
        Page(dict.fromkeys([*SECONDS[3:5], *wide], 1), 5_000),
        Page({SECONDS[5]: 1}, END_MS),
    ]


def test_a_page_is_refused_where_the_version_is_not_the_expected_one(backlog: BacklogStore) -> None:
    filled(backlog)

    with pytest.raises(BacklogMoved):
        backlog.page(SHARD, CLAIM, 0, 4)


# --- load


@pytest.mark.parametrize(
    ("first", "count", "numbers"),
    [(0, 4, "0123"), (4, 4, "4567"), (8, 4, "89"), (10, 4, ""), (99, 1, ""), (0, 0, ""), (3, 0, ""), (9, 1, "9")],
)
def test_a_slice_is_loaded_in_portions(backlog: BacklogStore, first: int, count: int, numbers: str) -> None:
    backlog.put(SHARD, None, FIRST, [segment(NEAR, b"%d" % number) for number in range(10)], {})

    loaded = backlog.load(SHARD, FIRST, NEAR, first, count)

    assert loaded == [number.encode() for number in numbers]


def test_the_first_segments_of_several_slices_come_in_the_order_asked_for(backlog: BacklogStore) -> None:
    empty = Slice(0, 1_000)
    segments = [segment(slice_, b"%d" % number) for number in range(4) for slice_ in (NEAR, FAR)]
    backlog.put(SHARD, None, FIRST, segments, {})

    loaded = backlog.load_first(SHARD, FIRST, [FAR, empty, NEAR], 3)

    assert loaded == [[b"0", b"1", b"2"], [], [b"0", b"1", b"2"]]


def test_a_slice_that_holds_nothing_loads_as_nothing(backlog: BacklogStore) -> None:
    filled(backlog)

    assert load_all(backlog, FIRST, Slice(0, 1000)) == []


def test_loading_leaves_the_slice_where_it_is(backlog: BacklogStore) -> None:
    filled(backlog)

    assert load_all(backlog, FIRST, NEAR) == load_all(backlog, FIRST, NEAR) == [b"n1"]


# --- ids


def test_ids_are_answered_in_the_order_asked_for_with_none_for_the_unknown(backlog: BacklogStore) -> None:
    backlog.put(SHARD, None, FIRST, [], {b"a": ENTRY, b"b": NEWER_ENTRY})

    assert backlog.ids(SHARD, FIRST, [b"b", b"?", b"a", b"b"]) == [NEWER_ENTRY, None, ENTRY, NEWER_ENTRY]


def test_asking_for_no_ids_answers_none(backlog: BacklogStore) -> None:
    filled(backlog)

    assert backlog.ids(SHARD, FIRST, []) == []


def test_a_later_put_replaces_an_ids_entry(backlog: BacklogStore) -> None:
    filled(backlog)

    backlog.put(SHARD, FIRST, SECOND, [], {b"id-1": NEWER_ENTRY})

    assert backlog.ids(SHARD, SECOND, [b"id-1"]) == [NEWER_ENTRY]


@pytest.mark.parametrize("name", [b"", b"\x00", b"\r\n", bytes(range(256)), "größe".encode(), b"x" * 5000])
def test_an_id_may_be_any_bytes(backlog: BacklogStore, name: bytes) -> None:
    backlog.put(SHARD, None, FIRST, [], {name: ENTRY})

    assert backlog.ids(SHARD, FIRST, [name, name + b"!"]) == [ENTRY, None]


def test_many_ids_are_answered_at_once(backlog: BacklogStore) -> None:
    backlog.put(SHARD, None, FIRST, [], {b"known": ENTRY})

    answers = backlog.ids(SHARD, FIRST, [b"id-%d" % number for number in range(12_000)] + [b"known"])

    assert answers == [None] * 12_000 + [ENTRY]


# --- drop


def test_dropped_slices_and_ids_are_gone_and_others_stay(backlog: BacklogStore) -> None:
    filled(backlog)
    backlog.put(SHARD, FIRST, SECOND, [], {b"id-2": NEWER_ENTRY})

    backlog.drop(SHARD, SECOND, [NEAR], [b"id-1"])

    assert slices_of(backlog, SHARD) == {FAR: 2}
    assert (load_all(backlog, SECOND, NEAR), load_all(backlog, SECOND, FAR)) == ([], [b"f1"])
    assert backlog.ids(SHARD, SECOND, [b"id-1", b"id-2"]) == [None, NEWER_ENTRY]


def test_dropping_leaves_the_version(backlog: BacklogStore) -> None:
    filled(backlog)

    backlog.drop(SHARD, FIRST, [NEAR, FAR], [b"id-1"])

    assert (backlog.version(SHARD), slices_of(backlog, SHARD)) == (FIRST, {})


def test_dropping_what_is_not_there_is_not_missed(backlog: BacklogStore) -> None:
    filled(backlog)

    backlog.drop(SHARD, FIRST, [Slice(0, 1000), NEAR, NEAR], [b"?", b"id-1", b"id-1"])
    backlog.drop(SHARD, FIRST, [NEAR], [b"id-1"])
    backlog.drop(SHARD, FIRST, [], [])

    assert slices_of(backlog, SHARD) == {FAR: 2}


def test_a_dropped_slice_begins_anew_when_it_is_filled_again(backlog: BacklogStore) -> None:
    filled(backlog)
    backlog.drop(SHARD, FIRST, [NEAR], [])

    backlog.put(SHARD, FIRST, SECOND, [segment(NEAR, b"n2", 4)], {})

    assert (slices_of(backlog, SHARD), load_all(backlog, SECOND, NEAR)) == ({NEAR: 4, FAR: 2}, [b"n2"])


def test_many_slices_and_ids_are_dropped_at_once(backlog: BacklogStore) -> None:
    slices = [Slice(start_ms, 10) for start_ms in range(0, 25_000, 10)]
    names = {b"id-%d" % number: ENTRY for number in range(3_000)}
    backlog.put(SHARD, None, FIRST, [segment(slice_, b"s") for slice_ in slices], names)

    backlog.drop(SHARD, FIRST, slices[:-1], list(names)[:-1])

    assert slices_of(backlog, SHARD) == {slices[-1]: 1}
    assert backlog.ids(SHARD, FIRST, list(names)[-2:]) == [None, ENTRY]


# --- shards


def test_shards_are_independent(backlog: BacklogStore) -> None:
    filled(backlog)
    other = StoreVersion("relay-b", 9, 9)
    backlog.put(33, None, other, [segment(NEAR, b"other", 5)], {b"id-1": NEWER_ENTRY})

    backlog.drop(SHARD, FIRST, [NEAR, FAR], [b"id-1"])

    assert (backlog.version(33), slices_of(backlog, 33)) == (other, {NEAR: 5})
    assert load_all(backlog, other, NEAR, partition=33) == [b"other"]
    assert backlog.ids(33, other, [b"id-1"]) == [NEWER_ENTRY]
    with pytest.raises(BacklogMoved):
        backlog.load(33, FIRST, NEAR, 0, 1)
