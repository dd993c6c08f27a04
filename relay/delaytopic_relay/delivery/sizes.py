"""How many bytes Kafka counts for a record: what a topic's `max.message.bytes` is compared with.

A broker compares the size of the whole batch. A record that does not fit in a batch of its own can
never be delivered, and must be found out before it is sent: refused later, it aborts the whole
transaction. Sizes are those of an uncompressed batch in message format v2, the only one that brokers
since 4.0 write.
"""

from __future__ import annotations

from delaytopic_api.records import Headers

BATCH_OVERHEAD_BYTES = 61
"""A batch's own header: base offset and length (12 bytes), and what stands before the records (49)."""

_RECORD_FIXED_BYTES = 3
"""Attributes, timestamp delta and offset delta of the first record: a byte each, as both deltas are 0."""

_NULL_BYTES = 1
"""A null is the length -1, without content."""


def record_batch_bytes(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """The exact size of an uncompressed batch that holds this one record.

    Kafka accepts the record in a topic whose `max.message.bytes` is at least this, and refuses it below.
    """
    fields = _RECORD_FIXED_BYTES + _nullable_bytes(key) + _nullable_bytes(value)
    fields += _varint_bytes(len(headers) if headers else 0)
    for name, content in headers or ():
        length = len(name) if name.isascii() else len(name.encode())
        fields += _varint_bytes(length) + length + _nullable_bytes(content)
    return BATCH_OVERHEAD_BYTES + _varint_bytes(fields) + fields


def _nullable_bytes(content: bytes | None) -> int:
    return _NULL_BYTES if content is None else _varint_bytes(len(content)) + len(content)


def _varint_bytes(length: int) -> int:
    # Kafka writes lengths zigzag-encoded, seven bits a byte: doubled, so 63 is the last that fits in one.
    return 1 if length < 64 else ((length << 1).bit_length() + 6) // 7
