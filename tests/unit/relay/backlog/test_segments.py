from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.schedules import schedule

from delaytopic_relay.backlog.segments import LARGEST_SEGMENT, decode_segment, encode_segment, pack
from delaytopic_relay.backlog.store import Segment, Slice
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.errors import ForeignRecord, SegmentError

NOW_MS = 1_795_269_600_000
MINUTE_MS, DAY_MS = 60_000, 86_400_000

BYTES = st.none() | st.binary(max_size=20)
SCHEDULES = st.builds(
    Schedule,
    due_ms=st.integers(NOW_MS - 5_000, NOW_MS + 40 * DAY_MS) | st.integers(NOW_MS, NOW_MS + 3_000),
    offset=st.integers(0, 2**53),
    key=BYTES,
    value=BYTES,
    headers=st.none() | st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3),
    control=st.integers(-2, 5),
    id=BYTES,
    target=st.none() | st.text(max_size=9),
    expires_ms=st.none() | st.integers(0, 10**14),
    rank=st.none() | st.integers(0, 2**53),
)


@QUICK
@given(st.lists(SCHEDULES, max_size=5))
def test_schedules_come_back_from_a_segment_as_they_were(schedules: list[Schedule]) -> None:
    assert decode_segment(encode_segment(schedules)) == schedules


def test_the_wire_format_is_a_version_byte_and_a_msgpack_array_of_arrays() -> None:
    # Given a schedule that has every field
    entry = Schedule(5, 7, b"k", None, [("a", b"1"), ("b", None)], 0, b"id", "t", 9, 3, 6)

    data = encode_segment([entry])

    assert data == bytes.fromhex("01 91 9b 05 07 c4016b c0 92 92 a161 c40131 92 a162 c0 00 c4026964 a174 09 03 06")


@pytest.mark.parametrize(("count", "tail", "fields"), [("99", "", ()), ("9a", "03", (3,))])
def test_an_entry_without_the_last_fields_is_read_as_relays_of_before_wrote_it(
    count: str, tail: str, fields: tuple[int, ...]
) -> None:
    data = bytes.fromhex(f"01 91 {count} 05 07 c4016b c0 92 92 a161 c40131 92 a162 c0 00 c4026964 a174 09 {tail}")

    assert decode_segment(data) == [Schedule(5, 7, b"k", None, [("a", b"1"), ("b", None)], 0, b"id", "t", 9, *fields)]


def test_a_segment_of_another_version_names_both_versions_and_says_what_to_do() -> None:
    with pytest.raises(SegmentError) as caught:
        decode_segment(b"\x02\x90")

    message = str(caught.value)
    assert message.startswith("a segment starts with version byte 02, this relay reads 01: ")
    assert "run the version that wrote it" in message
    assert "source topic" in message


def test_an_empty_segment_has_no_version() -> None:
    with pytest.raises(SegmentError, match=r"^a segment starts with version byte nothing, this relay reads 01: "):
        decode_segment(b"")


DAMAGED = [
    pytest.param(encode_segment([schedule(1, 2)])[:-1], id="cut-off"),
    pytest.param(encode_segment([schedule(1, 2)]) + b"\x00", id="too-long"),
    pytest.param(b"\x01\x91\x91\xa1x", id="not-a-schedule"),
    pytest.param(b"\x01", id="only-a-version"),
    pytest.param(encode_segment([schedule(1, 2)]).replace(b"\xc0\xc0\xc0", b"\xc0\xa1\xff\xc0"), id="not-utf-8"),
]


@pytest.mark.parametrize("data", DAMAGED)
def test_the_error_of_a_damaged_segment_names_its_size_and_the_damage(data: bytes) -> None:
    with pytest.raises(ForeignRecord, match=rf"^{len(data)} bytes are no segment"):
        decode_segment(data)


@QUICK
@given(st.binary(max_size=40))
def test_no_bytes_do_more_than_to_be_told_apart(data: bytes) -> None:
    try:
        decoded = decode_segment(b"\x01" + data)
    except ForeignRecord:
        return

    assert decode_segment(encode_segment(decoded)) == decoded


@QUICK
@given(st.lists(SCHEDULES, max_size=40))
def test_packing_keeps_every_schedule_in_its_slice_and_in_the_order_given(schedules: list[Schedule]) -> None:
    segments = pack(schedules, NOW_MS)

    by_slice: dict[Slice, list[Schedule]] = {}
    for segment in segments:
        by_slice.setdefault(segment.slice, []).extend(decode_segment(segment.data))
    assert by_slice == {slice_: [entry for entry in schedules if entry in kept] for slice_, kept in by_slice.items()}
    assert sum(segment.records for segment in segments) == len(schedules)


@QUICK
@given(st.lists(SCHEDULES, max_size=40))
def test_a_segment_never_crosses_a_slice(schedules: list[Schedule]) -> None:
    segments = pack(schedules, NOW_MS)

    for slice_, records, data in segments:
        entries = decode_segment(data)
        assert len(entries) == records
        assert all(slice_.start_ms <= entry.due_ms < slice_.end_ms for entry in entries)


def test_slices_are_wider_the_longer_there_is_to_wait() -> None:
    # Given one schedule each due in a minute, an hour and two days
    delays_ms = (MINUTE_MS, 60 * MINUTE_MS, 2 * DAY_MS)
    schedules = [schedule(NOW_MS + delay_ms, offset) for offset, delay_ms in enumerate(delays_ms)]

    segments = pack(schedules, NOW_MS)

    assert [segment.slice for segment in segments] == [
        Slice(NOW_MS + MINUTE_MS, 1_000),
        Slice(NOW_MS + 60 * MINUTE_MS, MINUTE_MS),
        Slice(NOW_MS + 2 * DAY_MS, 60 * MINUTE_MS),
    ]


def test_a_crowded_slice_is_stored_in_segments_of_bounded_length() -> None:
    schedules = [schedule(NOW_MS + 5, offset) for offset in range(2 * LARGEST_SEGMENT + 1)]

    segments = pack(schedules, NOW_MS)

    assert segments == [
        Segment(Slice(NOW_MS, 1_000), len(part), encode_segment(part))
        for part in (schedules[:LARGEST_SEGMENT], schedules[LARGEST_SEGMENT:-1], schedules[-1:])
    ]


def test_nothing_packs_into_no_segments() -> None:
    assert pack([], NOW_MS) == []
