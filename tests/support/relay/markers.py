"""Markers as the Go client of kafka-mq-go writes them: fields in order, zeros left out, the message always named."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit tells that more follow."""
    if number < 1 << 7:
        return bytes([number])
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def number(field: int, value: int) -> bytes:
    """A number; a zero is not written."""
    return varint(field << 3) + varint(value) if value else b""


def length_delimited(field: int, value: bytes) -> bytes:
    """Bytes, or a message."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def marker(kind: int, partition: int, offset: int, after_ms: int = 0, key: bytes = b"", value: bytes = b"") -> bytes:
    """A marker: START is 0, END is 1, KEEPALIVE is 2."""
    message_id = number(1, partition) + number(2, offset)
    payload = [length_delimited(field, part) for field, part in ((5, key), (6, value)) if part]
    return b"".join([number(2, kind), length_delimited(3, message_id), number(4, after_ms), *payload])


def start(partition: int, offset: int, after_ms: int, key: bytes, value: bytes) -> bytes:
    """Processing of a message has begun."""
    return marker(0, partition, offset, after_ms, key, value)


def end(partition: int, offset: int) -> bytes:
    """Processing of a message has ended."""
    return marker(1, partition, offset)


def keep_alive(partition: int, offset: int, after_ms: int) -> bytes:
    """Processing of a message goes on."""
    return marker(2, partition, offset, after_ms)
