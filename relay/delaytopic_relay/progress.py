"""The durable state of a shard: three values in one committed offset and its metadata text.

`offset` (L) is where a successor starts to read; all offsets below `position` (P) have been taken
in; `cursor` (C) is the key of the last delivered schedule. Invariant at every commit: every schedule
with offset < P and key <= C is done, and nothing else is.
"""

from __future__ import annotations

from typing import NamedTuple

from delaytopic_relay.bucket_state import BucketsState, decode_buckets, encode_buckets
from delaytopic_relay.errors import ProgressError
from delaytopic_relay.schedule import NOTHING_DELIVERED, Key

VERSION = "1"
FIELDS = 5
WITH_BUCKETS = "2"
"""The same, with the state of the buckets before the owner."""


class Progress(NamedTuple):
    """L, P and C, and the `transactional.id` of the relay that wrote them ("" after a hand-over).

    `buckets` is how the bucket topics stand; None with another shelf.
    """

    offset: int
    position: int
    cursor: Key
    owner: str = ""
    buckets: BucketsState | None = None


def fresh_progress(start: int) -> Progress:
    """The progress of a shard of which nothing was ever taken in below `start`."""
    return Progress(start, start, NOTHING_DELIVERED)


def encode_metadata(progress: Progress) -> str:
    """The metadata text to commit beside `progress.offset`: `version;P;due_ms;offset;[buckets;]owner`."""
    due_ms, offset = progress.cursor
    if progress.buckets is not None:
        buckets = encode_buckets(progress.buckets)
        return f"{WITH_BUCKETS};{progress.position};{due_ms};{offset};{buckets};{progress.owner}"
    return f"{VERSION};{progress.position};{due_ms};{offset};{progress.owner}"


def decode_progress(offset: int, metadata: str | None) -> Progress:
    """Read a committed offset with its metadata back.

    An offset without metadata was set from outside (a group reset by hand): reading starts there and
    nothing above it counts as delivered. Raises `ProgressError` for a text that is not ours.
    """
    if not metadata:
        return fresh_progress(offset)
    version, _, rest = metadata.partition(";")
    fields = rest.split(";", FIELDS - 1 if version == WITH_BUCKETS else FIELDS - 2)
    if version not in (VERSION, WITH_BUCKETS) or len(fields) != (FIELDS if version == WITH_BUCKETS else FIELDS - 1):
        raise ProgressError(
            f"the metadata {metadata[:80]!r} of committed offset {offset} is not of this version of the relay; "
            "run the version that wrote it, or reset the group's offset to start from there without it"
        )
    try:
        position, due_ms, cursor_offset = (int(field) for field in fields[:3])
        buckets = decode_buckets(fields[3]) if version == WITH_BUCKETS else None
    except ValueError as error:
        raise ProgressError(
            f"the metadata {metadata[:80]!r} of committed offset {offset} is damaged: {error}"
        ) from error
    return Progress(offset, position, Key(due_ms, cursor_offset), fields[-1], buckets)
