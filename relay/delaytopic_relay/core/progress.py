"""The durable state of a shard: three values in one committed offset and its metadata text.

`offset` (L) is where a successor starts to read; all offsets below `position` (P) have been taken
in; `cursor` (C) is the key of the last delivered schedule. Invariant at every commit: every schedule
with offset < P and key <= C is done, and nothing else is.

Two more things make this true of records for ever: the rules by which they were read, and the topic that they are of.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import NamedTuple, Self

from delaytopic_relay.core.admission_limits import AdmissionLimits, decode_admission_limits, encode_admission_limits
from delaytopic_relay.core.bucket_state import BucketsState, decode_buckets, encode_buckets, number_of
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.done import Ahead, Done, decode_ahead, encode_ahead
from delaytopic_relay.core.rules import Generation, decode_generations, encode_generations
from delaytopic_relay.errors import ProgressError

VERSION = "5"
FIELDS = 10
"""The number of fields beside the version, separated by semicolons; the owner comes last, as it may contain anything.
"""
MARK_CHARACTERS = 8
"""The length of the marks of cluster and topic ids: 48 bits, that two of them do not happen to have in common."""


_KAFKA_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_NO_ID = "A" * 22
"""The id that brokers tell of a topic without one."""


class Identity(NamedTuple):
    """The cluster and the topic that offsets are of, by the first characters of their ids, "" where not known."""

    cluster: str = ""
    topic: str = ""
    epoch: int = -1
    """The leader epoch of the last record below the position; -1 where none is known."""
    gap: int = 0
    """The number of offsets from behind that record to the position: of aborted records and of markers. Where none is
    known, they are those from which on nothing was found."""

    @classmethod
    def of(cls, cluster_id: str, topic_id: str) -> Self:
        """Return the identity of a topic of which nothing was read yet."""
        return cls(mark_of(cluster_id), mark_of(topic_id))


UNKNOWN = Identity()


def usual_id(kafka_id: str) -> str:
    """Return an id of Kafka's as its own tools print it: the client library writes two of the characters otherwise."""
    return kafka_id.replace("+", "-").replace("/", "_") if kafka_id != _NO_ID else ""


def mark_of(kafka_id: str) -> str:
    """Return the mark of an id of Kafka's; "" for none.

    What is no such id, as other brokers name their clusters, is told apart by its digest: these ids may begin alike.
    """
    if not kafka_id:
        return ""
    known = _KAFKA_ID.fullmatch(kafka_id) is not None
    return (kafka_id if known else sha256(kafka_id.encode()).hexdigest())[:MARK_CHARACTERS]


class Progress(NamedTuple):
    """L, P and C, and the `transactional.id` of the relay that wrote them ("" after a hand-over).

    `buckets` is how the bucket topics stand; None with another backlog. `admission_limits` are those by which records
    below P were taken in or refused; none if all were taken in. `generations` are the rules by which records are read
    that may still wait, and `floor` is the offset below which all is done, by whatever rules. `ahead` is what a clock
    that was ahead has delivered above the cursor.
    """

    offset: int
    position: int
    cursor: DueKey
    owner: str = ""
    buckets: BucketsState | None = None
    admission_limits: tuple[AdmissionLimits, ...] = ()
    generations: tuple[Generation, ...] = ()
    floor: int = 0
    identity: Identity = UNKNOWN
    ahead: Ahead | None = None
    takeovers: int = 0
    """The number of relays that took over one after another since `position` was last moved, although there was
    something to read."""
    on_their_way: int = 0
    """The number of records that relays have written at or above `position`, and that count before they are read."""

    @property
    def done(self) -> Done:
        """The schedules below the position that are done."""
        return Done(self.cursor, self.ahead)


def fresh_progress(start: int) -> Progress:
    """The progress of a shard of which nothing was ever taken in below `start`."""
    return Progress(start, start, NOTHING_DELIVERED)


def encode_metadata(progress: Progress) -> str:
    """The metadata text to commit beside `progress.offset`.

    `version;P;due_ms;offset;floor;ahead;identity;generations;limits;buckets;owner`, each but the numbers empty where
    there is nothing to say. P is followed by `+` and the number of takeovers if there were any, the floor by that
    of commands that are on their way, the epoch by that of offsets behind the last record.
    """
    due_ms, offset = progress.cursor
    identity = progress.identity
    fields = (
        VERSION,
        _counted(progress.position, progress.takeovers),
        str(due_ms),
        str(offset),
        _counted(progress.floor, progress.on_their_way),
        encode_ahead(progress.ahead),
        "" if identity == UNKNOWN else f"{identity.cluster}:{identity.topic}:{_counted(identity.epoch, identity.gap)}",
        encode_generations(progress.generations),
        encode_admission_limits(progress.admission_limits),
        encode_buckets(progress.buckets) if progress.buckets is not None else "",
        progress.owner,
    )
    return ";".join(fields)


def decode_progress(offset: int, metadata: str | None) -> Progress:
    """Read a committed offset with its metadata back.

    An offset without metadata was set from outside (a group reset by hand): reading starts there and
    nothing above it counts as delivered. Raises `ProgressError` for a text that is not ours.
    """
    if not metadata:
        return fresh_progress(offset)
    version, _, rest = metadata.partition(";")
    fields = rest.split(";", FIELDS - 1)
    if version != VERSION or len(fields) != FIELDS:
        raise ProgressError(
            f"the metadata {metadata[:80]!r} of committed offset {offset} is not of this version of the relay; "
            "run the version that wrote it, or reset the group's offset to start from there without it"
        )
    taken, *numbers, below, ahead, identity, generations, admission_limits, buckets, owner = fields
    try:
        position, takeovers = _decode_counted(taken)
        due_ms, cursor_offset = map(number_of, numbers)
        floor, on_their_way = _decode_counted(below)
        return Progress(
            offset,
            position,
            DueKey(due_ms, cursor_offset),
            owner,
            decode_buckets(buckets) if buckets else None,
            decode_admission_limits(admission_limits) if admission_limits else (),
            decode_generations(generations),
            floor,
            _decode_identity(identity),
            decode_ahead(ahead),
            takeovers,
            on_their_way,
        )
    except ValueError as error:
        raise ProgressError(
            f"the metadata {metadata[:80]!r} of committed offset {offset} is damaged: {error}"
        ) from error


def _counted(number: int, count: int) -> str:
    return f"{number}+{count}" if count else str(number)


def _decode_counted(text: str, least: int = 0) -> tuple[int, int]:
    number, counted, count = text.partition("+")
    return number_of(number, least), number_of(count, 1) if counted else 0


def _decode_identity(text: str) -> Identity:
    if not text:
        return UNKNOWN
    cluster, topic, epoch = text.split(":")
    return Identity(cluster, topic, *_decode_counted(epoch, -1))
