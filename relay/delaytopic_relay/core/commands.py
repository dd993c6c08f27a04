"""The commands that every dialect turns source records into, and what leaves a shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, final

import msgspec

from delaytopic_api.records import DELIVER_REQUESTED_BY, DeadLetterReason, Headers
from delaytopic_api.relay import Ending
from delaytopic_relay.core.entries import NO_CONTROL_HEADER, SEVERAL_CONTROL_HEADERS, Schedule

__all__ = [
    "ANY_PARTITION",
    "MAX_HEADERS",
    "NOTHING",
    "NOTHING_DELIVERED",
    "NO_CONTROL_HEADER",
    "OCCURRENCE",
    "SEVERAL_CONTROL_HEADERS",
    "TO_BE_RESOLVED",
    "Cancel",
    "Command",
    "Dialect",
    "DueKey",
    "End",
    "Ignore",
    "Leaving",
    "Postpone",
    "Record",
    "Reject",
    "Rewritten",
    "Schedule",
    "SourceMessage",
    "goes_on",
    "new_record",
    "rank_of",
    "requested_by",
    "requested_by_of",
]

MAX_HEADERS = 256
"""The most headers of a record; far more than records have. The shortest is two bytes on the wire and a hundred in
memory: a record of a megabyte could take fifty. Their size needs no bound beside the record's own, and is charged."""
TO_BE_RESOLVED: Final = -11
"""`Schedule.control` of a record whose due time does not follow from it alone. It is due at once, and not delivered:
its dialect computes its first occurrence, which is written into the source."""
OCCURRENCE: Final = -12
"""`Schedule.control` of an occurrence of such a record, as a relay has written it into the source: when it leaves, the
next one is written there."""
ANY_PARTITION = -1
"""The partition of a record where the producer chooses by key."""


class SourceMessage(Protocol):
    """A record as the Kafka client hands it over; the methods are those of `confluent_kafka.Message`."""

    def topic(self) -> str | None:
        """The source topic."""
        ...

    def partition(self) -> int | None:
        """The source partition."""
        ...

    def offset(self) -> int | None:
        """The source offset."""
        ...

    def timestamp(self) -> tuple[int, int]:
        """Its kind, and epoch milliseconds."""
        ...

    def key(self) -> bytes | None:
        """The record's key."""
        ...

    def value(self) -> bytes | None:
        """The record's value."""
        ...

    def headers(self) -> Headers | None:
        """All headers in their order; names may repeat."""
        ...


class DueKey(NamedTuple):
    """The order of delivery within a shard; unique, and the same each time the record is read."""

    due_ms: int
    offset: int


NOTHING_DELIVERED = DueKey(-1, -1)


class Cancel(msgspec.Struct, gc=False):
    """Withdraw the pending schedules that carry this id and were produced before this record.

    `rank` is the offset that it counts as, where that is not its own: a relay has written it. `requested_by` is what
    its record says of who asks for it.
    """

    offset: int
    id: bytes
    rank: int | None = None
    requested_by: bytes | None = None


class Postpone(msgspec.Struct, gc=False):
    """Put off the pending schedule that carries this id: it is not due before `due_ms`.

    Nothing pending is put off to an earlier time. Key, value and headers are for its dead letter.
    """

    offset: int
    id: bytes
    due_ms: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers | None = None
    timestamp_ms: int | None = None


@final
class Reject(msgspec.Struct, gc=False):
    """A record for the dead-letter topic, untouched; `detail` is one sentence for its producer.

    `id` and `due_ms` are the schedule's, where it was read as one. `rank` is that of one that a relay has written.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    reason: DeadLetterReason
    detail: str
    timestamp_ms: int | None = None
    id: bytes | None = None
    due_ms: int | None = None
    rank: int | None = None


class Ignore(msgspec.Struct, gc=False):
    """A record that asks for nothing: one that a relay itself has written into the source."""

    offset: int


Command = Schedule | Cancel | Postpone | Reject | Ignore


def written_again(command: Command) -> Schedule | Cancel | None:
    """Return what a relay has written into the source; None for a record of an application.

    What is refused by later rules is a schedule, too, until it is read: commands in front of it may end it.
    """
    if isinstance(command, Reject) and command.rank is not None and command.due_ms is not None:
        control, name = OCCURRENCE, command.id
        return Schedule(command.due_ms, command.offset, None, None, None, control, name, rank=command.rank)
    return command if isinstance(command, Schedule | Cancel) and command.rank is not None else None


def rank_of(command: Schedule | Cancel) -> int:
    """Return the source offset that a command counts as among those of its id."""
    return command.offset if command.rank is None else command.rank


def goes_on(command: Schedule | Cancel) -> bool:
    """Return whether another record is written into the source when a schedule leaves, by its own rule."""
    return isinstance(command, Schedule) and OCCURRENCE <= command.control <= TO_BE_RESOLVED


class End(NamedTuple):
    """The end of a schedule, or `NotPending` of a cancel, by a command that was taken in.

    `offset` and `due_ms` are the schedule's; of `NotPending` they are the cancel's, and None. `by` is the offset of the
    command.
    """

    ending: Ending
    offset: int
    due_ms: int | None
    id: bytes | None
    by: int | None = None
    requested_by: bytes | None = None


def requested_by_of(command: Schedule | Cancel) -> bytes | None:
    """Return what a command's record says of who asks for it; of a repeated header the last counts."""
    if isinstance(command, Cancel):
        return command.requested_by
    return requested_by(command.headers)


def requested_by(headers: Headers | None) -> bytes | None:
    """Return what a record says of who asks for it; of a repeated header the last counts."""
    for name, value in reversed(headers or ()):
        if name == DELIVER_REQUESTED_BY:
            return value
    return None


class Dialect(Protocol):
    """A reader of records that say when they are due. Pure: the same record always gives the same command."""

    def read(self, message: SourceMessage) -> Command:
        """Turn one record into a command; never raises on bad input, but returns a `Reject`."""
        ...

    def read_all(self, messages: Sequence[SourceMessage]) -> list[Command]:
        """Turn records into commands, in their order."""
        ...


class Rewritten(NamedTuple):
    """A command that the relay writes into the source, in the transaction that moves past the one it stands for.

    With `due_ms` it is the schedule, put off to that time. With `goes_on` it is what its own rule has after it, which
    its dialect computes. Without either the schedule was written so, and is withdrawn by what came in front of it. Each
    counts as the command at `rank`.
    """

    schedule: Schedule
    rank: int
    due_ms: int | None = None
    goes_on: bool = False


class Record(NamedTuple):
    """One record to produce."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: Headers
    partition: int = ANY_PARTITION


new_record: Final = tuple.__new__
"""Makes a `Record` of all its fields in a third of the time that the named tuple's own constructor takes."""


class Leaving(NamedTuple):
    """Schedules to deliver and rejects to dead-letter, in order, and how often an id took effect."""

    schedules: list[Schedule]
    rejects: list[Reject]
    superseded: int = 0
    cancelled: int = 0
    too_late: int = 0
    rewritten: Sequence[Rewritten] = ()
    ends: Sequence[End] = ()
    """Schedules that commands have ended, and cancels that met nothing; none of them is delivered."""


NOTHING = Leaving([], [])
