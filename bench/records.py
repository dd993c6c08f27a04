"""The records of every case: a key of 10 bytes (its sequence number), a value of 200, three user headers. Pure."""

from __future__ import annotations

import random
from array import array

from delaytopic_api.records import DELIVER_AT, Headers

PARTITIONS = 4
VALUE_BYTES = 200

_VALUES = [random.Random(seed).randbytes(VALUE_BYTES) for seed in range(64)]
_TENANT = ("tenant", b"shop")
_CONTENT_TYPE = ("content-type", b"application/json")
_TRACE = ("trace-id", bytes(range(16)))


def key_of(sequence: int) -> bytes:
    """The key of a record."""
    return b"%010d" % sequence


def sequence_of(key: bytes | None) -> int:
    """The sequence number that a key holds; -1 for a key that is none of ours."""
    return int(key) if key is not None and key.isdigit() else -1


def value_of(sequence: int) -> bytes:
    """The value of a record: random bytes, of which there are 64 different ones."""
    return _VALUES[sequence & 63]


def headers_of(due_ms: int | None) -> Headers:
    """Three user headers, and `deliver-at` if there is a due time."""
    headers: Headers = [_CONTENT_TYPE, _TRACE, _TENANT]
    if due_ms is not None:
        headers.append((DELIVER_AT, b"%d" % due_ms))
    return headers


def spread(records: int, from_ms: int, until_ms: int, seed: int) -> array[int]:
    """A due time for each record, uniform between two times; the same for the same seed."""
    draw = random.Random(seed).random
    width_ms = until_ms - from_ms
    return array("q", (from_ms + int(draw() * width_ms) for _ in range(records)))


def partition_of(sequence: int) -> int:
    """The source partition: all get equally many."""
    return sequence % PARTITIONS
