"""Records of bucket topics: what is ours, what is somebody else's, what is too new."""

from __future__ import annotations

import pytest

from delaytopic_relay.backlog.kafka.segments import (
    decode_id,
    encode_bucket_segment,
    encode_id,
    pack_parts,
    packed_bytes,
    segment_head,
    segment_schedules,
)
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import ForeignRecord, SegmentError

MARK = 1 << 63


def schedule(offset: int, value: bytes = b"v") -> Schedule:
    return Schedule(1_000 + offset, offset, b"k", value, [("h", b"1"), ("h", None)], id=b"name")


def test_a_segment_says_whose_it_is_and_holds_its_schedules() -> None:
    schedules = [schedule(1), schedule(2)]

    (part,) = pack_parts(schedules, 1 << 20)
    data = encode_bucket_segment(MARK, 7, 900, part)

    assert tuple(segment_head(data)) == (MARK, 7, 900, 2)
    assert segment_schedules(data) == schedules


def test_a_record_too_short_for_a_segment_is_a_strangers() -> None:
    with pytest.raises(ForeignRecord):
        segment_head(b"\x01short")


def test_a_segment_with_text_that_is_not_utf_8_is_a_strangers() -> None:
    (part,) = pack_parts([schedule(1)], 1 << 20)
    data = encode_bucket_segment(MARK, 7, 900, part).replace(b"\xa1h", b"\xa1\xff")

    with pytest.raises(ForeignRecord):
        segment_schedules(data)


def test_a_newer_version_is_not_taken_for_a_strangers() -> None:
    with pytest.raises(SegmentError, match="version 2, this relay reads 1: run the newer version"):
        segment_head(b"\x02")


def test_an_id_entry_says_whose_it_is() -> None:
    assert decode_id(encode_id(MARK, IdEntry(5, 1_000, 6))) == (MARK, IdEntry(5, 1_000, 6))


@pytest.mark.parametrize("value", [b"", b"1:2:3", b"1:2:3:x"])
def test_another_value_is_none_of_an_id(value: bytes) -> None:
    with pytest.raises(ForeignRecord):
        decode_id(value)


def test_what_a_segment_will_take_is_known_beforehand() -> None:
    (part,) = pack_parts([schedule(1), schedule(2)], 1 << 20)

    assert len(encode_bucket_segment(MARK, 1, 1, part)) == packed_bytes(part.schedules)


def test_segments_are_cut_by_size_and_a_large_schedule_has_one_of_its_own() -> None:
    schedules = [schedule(0), schedule(1), schedule(2, bytes(5_000)), schedule(3)]

    cut = [[one.offset for one in part.schedules] for part in pack_parts(schedules, 2_000)]

    assert cut == [[0, 1], [2], [3]]
