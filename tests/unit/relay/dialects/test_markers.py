"""Markers of kafka-mq-go: what protobuf writes, byte by byte, and what a reader makes of other bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay import markers

from delaytopic_relay.dialects.markers import (
    Marker,
    decode_any,
    decode_marker,
    decode_usual,
    encode_end,
    encode_varint,
    is_usual_end,
)
from delaytopic_relay.dialects.reading import RecordError

# Derived by hand from the rules of protobuf: a field's tag is its number times 8 plus its wire type, numbers have seven
# bits a byte, and zeros are left out. 08 partition 3, 10 ac02 offset 300; 20 e0d403 is 60,000 ms.
START = "1a05 0803 10ac0220 e0d4032a01 713202 6869"
END = "10011a05 0803 10ac02"
KEEPALIVE = "10021a05 0803 10ac0220 e0d403"
FIRST_OF_ALL = "1a0020 012a01 713201 00"
LARGEST = "10011a10 08 ffffffff07 10 ffffffffffffffff7f"


def read(
    kind: int, partition: int, offset: int, after_ms: int = 0, key: bytes = b"", value: bytes | None = None
) -> Marker:
    """A marker as it is read."""
    place = (markers.varint(partition), markers.varint(offset))
    return Marker(0, kind, *place, markers.varint(after_ms), key, value)


BY_HAND = {
    START: (markers.start(3, 300, 60_000, b"q", b"hi"), read(0, 3, 300, 60_000, b"q", b"hi")),
    END: (markers.end(3, 300), read(1, 3, 300)),
    KEEPALIVE: (markers.keep_alive(3, 300, 60_000), read(2, 3, 300, 60_000)),
    FIRST_OF_ALL: (markers.start(0, 0, 1, b"q", b"\x00"), read(0, 0, 0, 1, b"q", b"\x00")),
    LARGEST: (markers.end((1 << 31) - 1, (1 << 63) - 1), read(1, (1 << 31) - 1, (1 << 63) - 1)),
}


@pytest.mark.parametrize("by_hand", BY_HAND)
def test_a_marker_is_read_as_protobuf_writes_it(by_hand: str) -> None:
    written, marker = BY_HAND[by_hand]

    assert (written, decode_marker(written)) == (bytes.fromhex(by_hand), marker)


@pytest.mark.parametrize(("by_hand", "place"), [(END, (3, 300)), (LARGEST, ((1 << 31) - 1, (1 << 63) - 1))])
def test_the_marker_that_ends_a_message_is_written_as_the_go_client_does(by_hand: str, place: tuple[int, int]) -> None:
    assert encode_end(*map(markers.varint, place)) == bytes.fromhex(by_hand)


@QUICK
@given(st.integers(0, (1 << 31) - 1), st.integers(0, (1 << 63) - 1))
def test_the_end_of_a_message_names_it(partition: int, offset: int) -> None:
    place = (markers.varint(partition), markers.varint(offset))

    assert decode_marker(encode_end(*place)) == read(1, partition, offset)


@QUICK
@given(st.integers(0, (1 << 64) - 1))
def test_numbers_are_written_as_the_go_client_does(number: int) -> None:
    assert encode_varint(number) == markers.varint(number)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "it has no message_id"),
        ("80", "it ends within a number, or has one of more than 10 bytes"),
        ("1a00 20 ffffffffffffffffffff01", "it ends within a number, or has one of more than 10 bytes"),
        ("1a05 0803", "it ends within field 3"),
        ("1a02 10", "it ends within field 3"),
        ("1a02 1080", "it ends within a number, or has one of more than 10 bytes"),
        ("1a0b 08 ffffffffffffffffff01", "its message_id has a negative partition or offset"),
        ("1a0b 10 ffffffffffffffffff01", "its message_id has a negative partition or offset"),
        ("1a06 08 8080808008", "its message_id has a negative partition or offset"),
        ("1a00 4b", "field 9 has wire type 3"),
        ("1a00 0200", "field 0 has wire type 2"),
        ("1a00 2801", "field 5 has wire type 0"),
        ("1a00 49 0000", "it ends within field 9"),
        ("32 ffffffffffffffff7f 00", "it ends within field 6"),
    ],
)
def test_what_is_no_marker_says_why(data: str, why: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_marker(bytes.fromhex(data))

    assert caught.value.detail == f"the value is not the marker that this dialect reads: {why}"


def test_the_bits_beyond_a_number_of_64_are_dropped() -> None:
    assert decode_marker(bytes.fromhex("1a00 20 ffffffffffffffffff7f")).redeliver_after_ms == (1 << 64) - 1


PLACES = st.tuples(st.integers(0, (1 << 28) - 1), st.integers(0, (1 << 56) - 1), st.integers(0, (1 << 56) - 1))
TEXTS = st.binary(max_size=20), st.binary(max_size=300)


@QUICK
@given(st.integers(0, 2), PLACES, *TEXTS)
def test_what_protobuf_writes_is_read_the_short_way(
    kind: int, numbers: tuple[int, int, int], key: bytes, value: bytes
) -> None:
    written = markers.marker(kind, *numbers, key, value)

    assert decode_usual(written) == decode_any(written)


@QUICK
@given(st.integers(0, 2), PLACES)
def test_a_delay_is_the_number_that_was_written(kind: int, numbers: tuple[int, int, int]) -> None:
    assert decode_marker(markers.marker(kind, *numbers)).redeliver_after_ms == numbers[2]


@QUICK
@given(PLACES, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), max_size=2), st.binary(max_size=2))
def test_an_end_marker_that_is_seen_at_once_is_read_as_one(
    numbers: tuple[int, int, int], changes: list[tuple[int, int]], more: bytes
) -> None:
    written = bytearray(markers.end(*numbers[:2]))
    for place, byte in changes:
        written[place % len(written)] = byte
    written += more

    assert is_usual_end(markers.end(*numbers[:2]))
    if is_usual_end(bytes(written)):
        found = decode_any(bytes(written))
        assert (found.version, found.type) == (0, 1)


@QUICK
@given(PLACES, *TEXTS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), min_size=1, max_size=3))
def test_other_bytes_are_read_alike_the_short_way_or_not_at_all(
    numbers: tuple[int, int, int], key: bytes, value: bytes, changes: list[tuple[int, int]]
) -> None:
    written = bytearray(markers.marker(0, *numbers, key, value))
    for place, byte in changes:
        written[place % len(written)] = byte
    found = decode_usual(bytes(written))

    assert found is None or found == decode_any(bytes(written))
