"""Segments in a bucket topic, and entries in the topic of ids. Pure.

A segment is one record: a version byte, then the source's id, number, floor and count (three 8-byte and one 4-byte
big-endian integers), then a msgpack array of schedules as in every backlog. Nothing in this or any later segment of the
bucket is due before the floor. `signing` puts a tag in front where the backend has a key.
An id's record has the id as its key, and as its value the source's id, a colon, and the entry. No value forgets the id.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.entries import pack, unpack
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import ForeignRecord, SegmentError

VERSION = 1
LARGEST_RECORDS = 500

_head = struct.Struct(">BQQQI")


class Part(NamedTuple):
    """Schedules that fit into one segment, and how they stand there."""

    schedules: Sequence[Schedule]
    packed: bytes


class SegmentHead(NamedTuple):
    """The head of a segment: its source, number and floor, and how many schedules it has."""

    source_id: int
    number: int
    floor_ms: int
    records: int


def encode_bucket_segment(source_id: int, number: int, floor_ms: int, part: Part) -> bytes:
    """A segment of schedules that are all due at or after the floor."""
    return _head.pack(VERSION, source_id, number, floor_ms, len(part.schedules)) + part.packed


def segment_head(data: bytes) -> SegmentHead:
    """Return what can be told without unpacking it; raises `ForeignRecord`, and `SegmentError` for a newer version."""
    if data[0] != VERSION:
        raise SegmentError(f"it is a segment of version {data[0]}, this relay reads {VERSION}: run the newer version")
    if len(data) <= _head.size:
        raise ForeignRecord("it is too short for a segment")
    return SegmentHead(*_head.unpack_from(data)[1:])


def segment_schedules(data: bytes) -> list[Schedule]:
    """Unpack it; raises `ForeignRecord` if what follows the head is none of ours."""
    try:
        return unpack(memoryview(data)[_head.size :])
    except ValueError as error:
        raise ForeignRecord(f"it is no segment ({error})") from error


def packed_bytes(schedules: Sequence[Schedule]) -> int:
    """Return how large a segment of them would be."""
    return _head.size + len(pack(schedules))


def pack_parts(schedules: Sequence[Schedule], largest_bytes: int) -> Iterator[Part]:
    """Cut schedules into segments: neither too many nor too large, at least one in each."""
    for first in range(0, len(schedules), LARGEST_RECORDS):
        yield from _halved(schedules[first : first + LARGEST_RECORDS], largest_bytes)


def _halved(schedules: Sequence[Schedule], largest_bytes: int) -> Iterator[Part]:
    """Packing and looking is several times cheaper than counting beforehand."""
    packed = pack(schedules)
    if len(packed) <= largest_bytes or len(schedules) == 1:
        yield Part(schedules, packed)
        return
    middle = len(schedules) // 2
    yield from _halved(schedules[:middle], largest_bytes)
    yield from _halved(schedules[middle:], largest_bytes)


def encode_id(source_id: int, entry: IdEntry) -> bytes:
    """The value of an id's record."""
    return b"%d:%b" % (source_id, entry.encode())


def decode_id(value: bytes) -> tuple[int, IdEntry]:
    """Read it back, the source's id first; raises `ForeignRecord`."""
    try:
        source_id, _, entry = value.partition(b":")
        return int(source_id), IdEntry.decode(entry)
    except ValueError as error:
        raise ForeignRecord(f"its value {value[:80]!r} is none of an id") from error
