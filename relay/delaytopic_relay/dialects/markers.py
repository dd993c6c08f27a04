"""The markers of kafka-mq-go, as protobuf writes them (`kafka_mq_v1.proto`).

Read by hand: a message of six fields needs forty lines, and a library for them would be the relay's largest dependency.
What protobuf lets a reader do with what it does not know is done here: unknown fields are skipped, of a repeated field
the last counts, an absent one has its type's zero.

Protobuf's own writers write each field once, in the order of their numbers: markers of that form are read by a pattern,
which takes a third of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.dialects.reading import RecordError

START: Final = 0
END: Final = 1
KEEPALIVE: Final = 2
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_FIXED_LENGTHS: Final = {_FIXED_64: 8, _FIXED_32: 4}
_VERSION, _TYPE, _MESSAGE_ID, _REDELIVER_AFTER, _KEY, _VALUE = range(1, 7)
_PARTITION, _OFFSET = 1, 2
_WIRE_TYPES: Final = {_VERSION: 0, _TYPE: 0, _MESSAGE_ID: 2, _REDELIVER_AFTER: 0, _KEY: 2, _VALUE: 2}
_ID_WIRE_TYPES: Final = {_PARTITION: 0, _OFFSET: 0}
_LONGEST_VARINT: Final = 10
_PLACE: Final = rb"\x1a([\x00-\x7f])((?:\x08([\x80-\xff]{0,3}[\x01-\x7f]))?(?:\x10([\x80-\xff]{0,7}[\x01-\x7f]))?)"
_USUAL: Final = re.compile(
    rb"(?:\x10([\x00-\x7f]))?" + _PLACE + rb"(?:\x20([\x80-\xff]{0,7}[\x01-\x7f]))?(?:\x2a([\x00-\x7f]))?"
)
"""A marker's fields in the order of their numbers, up to the length of its key; numbers of 28 and 56 bits at most.

Zeros are left out, and no number has more bytes than it needs.
"""
_USUAL_END: Final = re.compile(rb"\x10\x01" + _PLACE)
_VALUE_TAG: Final = 0x32
_SHORTEST_VALUE: Final = len(b"\x32\x01v")
_ZERO: Final = b"\x00"
_PARTITION_TAG: Final = bytes([_PARTITION << 3])
_OFFSET_TAG: Final = bytes([_OFFSET << 3])
_END_TAGS: Final = bytes([_TYPE << 3, END, _MESSAGE_ID << 3 | _BYTES])
_ONE_BYTE: Final = tuple(bytes([number]) for number in range(0x80))
_LARGEST_PARTITION: Final = (1 << 31) - 1
_LARGEST_OFFSET: Final = (1 << 63) - 1


class Marker(msgspec.Struct, gc=False):
    """A marker; `value` is None where it has none, or an empty one, which protobuf does not tell apart.

    Larger numbers stay the varints that they are written as, of as many bytes as they need: those of a place are
    written again, and never calculated with.
    """

    version: int = 0
    type: int = START
    partition: bytes = _ZERO
    offset: bytes = _ZERO
    redeliver_after: bytes = _ZERO
    key: bytes = b""
    value: bytes | None = None

    @property
    def redeliver_after_ms(self) -> int:
        """The delay, as a number."""
        number = 0
        for byte in reversed(self.redeliver_after):
            number = number << 7 | byte & 0x7F
        return number


def decode_marker(data: bytes) -> Marker:
    """Read a marker. Raises `RecordError` for what is none, and for one that names no message."""
    return decode_usual(data) or decode_any(data)


def decode_usual(data: bytes) -> Marker | None:
    """Read a marker in the form that protobuf's writers give it; None for any other."""
    match = _USUAL.match(data)
    if match is None:
        return None
    type_, place_bytes, place, partition, offset, after, key_bytes = match.groups()
    at, end = match.end(), len(data)
    if place_bytes[0] != len(place):
        return None
    key = b""
    if key_bytes is not None:
        begin, at = at, at + key_bytes[0]
        key = data[begin:at]
    value = None
    if at != end:
        # The last field: a tag, a length of one or two bytes, and all that is left.
        if end - at < _SHORTEST_VALUE or data[at] != _VALUE_TAG:
            return None
        length, at = data[at + 1], at + 2
        if length >= 0x80:
            if data[at] >= 0x80:
                return None
            length, at = length & 0x7F | data[at] << 7, at + 1
        if end - at != length or length == 0:
            return None
        value = data[at:]
    return Marker(
        0,
        type_[0] if type_ is not None else START,
        partition or _ZERO,
        offset or _ZERO,
        after or _ZERO,
        key,
        value,
    )


def is_usual_end(data: bytes) -> bool:
    """Return whether a marker is an END marker in that form, for half of what it takes to read one."""
    match = _USUAL_END.fullmatch(data)
    return match is not None and match[1][0] == len(match[2])


def decode_any(data: bytes) -> Marker:
    """Read a marker in any form, field by field; raises as `decode_marker` does."""
    marker, identity = Marker(), None
    for field, value in _fields(data, _WIRE_TYPES):
        if isinstance(value, bytes):
            if field == _MESSAGE_ID:
                # Of a repeated message protobuf merges the fields, which is what both one after the other say.
                identity = (identity or b"") + value
            elif field == _KEY:
                marker.key = value
            else:
                marker.value = value or None
        elif field == _VERSION:
            marker.version = value
        elif field == _TYPE:
            marker.type = value
        else:
            marker.redeliver_after = encode_varint(value)
    if identity is None:
        raise _malformed("it has no message_id")
    found = dict(_fields(identity, _ID_WIRE_TYPES))
    partition, offset = found.get(_PARTITION, 0), found.get(_OFFSET, 0)
    assert isinstance(partition, int)
    assert isinstance(offset, int)
    if partition > _LARGEST_PARTITION or offset > _LARGEST_OFFSET:
        raise _malformed("its message_id has a negative partition or offset")
    marker.partition, marker.offset = encode_varint(partition), encode_varint(offset)
    return marker


def _fields(data: bytes, wire_types: dict[int, int]) -> Iterator[tuple[int, int | bytes]]:
    """Yield the known fields of a message, in their order."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        field, wire_type = tag >> 3, tag & 7
        value: int | bytes
        if wire_type == _VARINT:
            value, at = _varint(data, at)
        elif wire_type == _BYTES or wire_type in _FIXED_LENGTHS:
            length = _FIXED_LENGTHS.get(wire_type)
            if length is None:
                length, at = _varint(data, at)
            if length > end - at:
                raise _malformed(f"it ends within field {field}")
            value, at = data[at : at + length], at + length
        else:
            raise _malformed(f"field {field} has wire type {wire_type}")
        expected = wire_types.get(field)
        if field == 0 or (expected is not None and expected != wire_type):
            raise _malformed(f"field {field} has wire type {wire_type}")
        if expected is not None:
            yield field, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a place, and the place behind it."""
    number = 0
    for length, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << (7 * length)
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at + length + 1
    raise _malformed("it ends within a number, or has one of more than 10 bytes")


def _malformed(why: str) -> RecordError:
    detail = f"the value is not the marker that this dialect reads: {why}"
    return RecordError(DeadLetterReason.MALFORMED_VALUE, detail)


def encode_varint(number: int) -> bytes:
    """Write a number from 0 on."""
    if number < 0x80:
        return _ONE_BYTE[number]
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def encode_end(partition: bytes, offset: bytes) -> bytes:
    """Write the marker that ends the message at a place, two varints, as its Go client does: zeros are left out."""
    identity = _PARTITION_TAG + partition if partition != _ZERO else b""
    if offset != _ZERO:
        identity += _OFFSET_TAG + offset
    return _END_TAGS + _ONE_BYTE[len(identity)] + identity
