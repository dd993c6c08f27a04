"""The size of a record on the wire, which a topic's limit is compared with."""

from __future__ import annotations

from collections.abc import Callable

from delaytopic_api.records import Headers

TopicLimit = Callable[[str], int | None]
"""The largest record batch a topic takes, in bytes; None for a topic that nothing can be sent to."""

BATCH_OVERHEAD_BYTES = 61
"""A batch's own header: base offset and length (12 bytes), and what stands before the records (49)."""

_RECORD_FIXED_BYTES = 3
"""Attributes, timestamp delta and offset delta of the first record: a byte each, as both deltas are 0."""

_NULL_BYTES = 1
"""A null is the length -1, without content."""


def record_batch_bytes(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """Return the exact size of an uncompressed batch, in message format v2, that holds this one record.

    A broker compares the size of the whole batch: it accepts the record in a topic whose `max.message.bytes` is at
    least this, and refuses it below. A record that does not fit in a batch of its own can never be delivered, and must
    be found out before it is sent: refused later, it aborts the whole transaction.
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
