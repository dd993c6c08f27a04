"""The committed state of a shard's buckets, as one text beside (L, P, C). Pure.

It travels in the metadata of the source partition's committed offset, so that it can never disagree with the rest of
the progress, and does not expire as offsets of topics do that the group is not subscribed to.
"""

from __future__ import annotations

from typing import NamedTuple

FIELDS = 9
FIELDS_OF_EMPTY = 4
LARGEST = 2**63 - 1
"""Offsets and times have 64 bits: what is larger is no relay's, and no float holds it."""
MOST_SEGMENTS = 2**62
"""Leaves room to count on: no relay wrote so many."""


class BucketState(NamedTuple):
    """One bucket of one shard. Segments are numbered from 0 on, without gaps, in the order they were written.

    Those in `[kept, read)` were read, but have schedules that only memory holds; those in `[read, written)` wait, and
    `records` counts their schedules. `offset` is a lower bound of where number `kept` lies. Nothing that waits is due
    before `head_ms`, nor what is written from now on before `last_ms`. What waits is due from
    `first_due_ms` to `last_due_ms`.
    """

    offset: int = 0
    kept: int = 0
    read: int = 0
    written: int = 0
    head_ms: int = 0
    last_ms: int = 0
    records: int = 0
    first_due_ms: int = 0
    last_due_ms: int = 0


class BucketsState(NamedTuple):
    """All buckets of a shard, the nearest first.

    Every schedule with a source offset below `filled` that is due at or after `reach_ms` was written to a bucket.
    """

    filled: int
    reach_ms: int
    buckets: tuple[BucketState, ...]
    key: str = ""
    """Names the key that signs what is written; "" without one."""


def encode_buckets(state: BucketsState) -> str:
    """The text: numbers, each bucket's relative to each other, so that it stays far below 4,096 characters."""
    key = f":{state.key}" if state.key else ""
    return ",".join([f"{state.filled}:{state.reach_ms}{key}", *map(_encode, state.buckets)])


def _encode(bucket: BucketState) -> str:
    offset, kept, read, written, head_ms, last_ms, records, first_due_ms, last_due_ms = bucket
    text = f"{offset}:{kept}:{read - kept}:{written - read}"
    if read == written:
        return text
    dues = f"{first_due_ms - head_ms}:{last_due_ms - first_due_ms}"
    return f"{text}:{last_ms}:{last_ms - head_ms}:{records}:{dues}"


def decode_buckets(text: str) -> BucketsState:
    """Read it back; raises `ValueError` for another text."""
    first, *buckets = text.split(",")
    filled, reach_ms, *key = first.split(":", 2)
    return BucketsState(number_of(filled), number_of(reach_ms), tuple(map(_decode, buckets)), *key)


def number_of(text: str | bytes, least: int = -LARGEST) -> int:
    """Read an offset, a time or a count. Raises `ValueError` for less than `least`, and for more than 64 bits."""
    number = int(text)
    if number < least:
        raise ValueError(f"{text[:80]!r} is less than an offset, a time or a count can be")
    if number > LARGEST:
        raise ValueError(f"{text[:80]!r} is larger than an offset or a time can be")
    return number


def _decode(text: str) -> BucketState:
    fields = [*map(number_of, text.split(":"))]
    if len(fields) not in (FIELDS, FIELDS_OF_EMPTY):
        raise ValueError(f"{text!r} is not the state of a bucket")
    offset, kept, read, written, *waiting = fields
    numbers = (offset, kept, kept + read, kept + read + written)
    if not 0 <= kept <= numbers[2] <= numbers[3] <= MOST_SEGMENTS:
        raise ValueError(f"{text!r} counts segments as no relay does")
    if not waiting:
        return BucketState(*numbers)
    last_ms, behind_ms, records, ahead_ms, width_ms = waiting
    first_due_ms = last_ms - behind_ms + ahead_ms
    return BucketState(*numbers, last_ms - behind_ms, last_ms, records, first_due_ms, first_due_ms + width_ms)
