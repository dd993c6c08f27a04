"""The durable state of a shard: three values in one committed offset and its metadata text.

`offset` (L) is where a successor starts to read; all offsets below `position` (P) have been taken
in; `cursor` (C) is the key of the last delivered schedule. Invariant at every commit: every schedule
with offset < P and key <= C is done, and nothing else is.
"""

from __future__ import annotations

from typing import NamedTuple

from delaytopic_relay.core.bucket_state import BucketsState, decode_buckets, encode_buckets, number_of
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.terms import Terms, decode_terms, encode_terms
from delaytopic_relay.errors import ProgressError

VERSION = "1"
FIELDS = 5
WITH_BUCKETS = "2"
"""The same, with the state of the buckets before the owner."""
WITH_TERMS = "3"
"""The same, with terms before the buckets, which may be empty: only where a record was refused by them."""
_FIELDS_OF = {VERSION: FIELDS - 1, WITH_BUCKETS: FIELDS, WITH_TERMS: FIELDS + 1}


class Progress(NamedTuple):
    """L, P and C, and the `transactional.id` of the relay that wrote them ("" after a hand-over).

    `buckets` is how the bucket topics stand; None with another backlog. `terms` are those by which records below P were
    taken in or refused; none if all were taken in.
    """

    offset: int
    position: int
    cursor: DueKey
    owner: str = ""
    buckets: BucketsState | None = None
    terms: tuple[Terms, ...] = ()


def fresh_progress(start: int) -> Progress:
    """The progress of a shard of which nothing was ever taken in below `start`."""
    return Progress(start, start, NOTHING_DELIVERED)


def encode_metadata(progress: Progress) -> str:
    """The metadata text to commit beside `progress.offset`: `version;P;due_ms;offset;[terms;][buckets;]owner`."""
    due_ms, offset = progress.cursor
    if progress.terms:
        buckets = encode_buckets(progress.buckets) if progress.buckets is not None else ""
        terms = encode_terms(progress.terms)
        return f"{WITH_TERMS};{progress.position};{due_ms};{offset};{terms};{buckets};{progress.owner}"
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
    wanted = _FIELDS_OF.get(version, 0)
    fields = rest.split(";", wanted - 1)
    if len(fields) != wanted:
        raise ProgressError(
            f"the metadata {metadata[:80]!r} of committed offset {offset} is not of this version of the relay; "
            "run the version that wrote it, or reset the group's offset to start from there without it"
        )
    try:
        position, due_ms, cursor_offset = map(number_of, fields[:3])
        terms = decode_terms(fields[3]) if version == WITH_TERMS else ()
        buckets = decode_buckets(fields[-2]) if version != VERSION and fields[-2] else None
    except ValueError as error:
        raise ProgressError(
            f"the metadata {metadata[:80]!r} of committed offset {offset} is damaged: {error}"
        ) from error
    return Progress(offset, position, DueKey(due_ms, cursor_offset), fields[-1], buckets, terms)
