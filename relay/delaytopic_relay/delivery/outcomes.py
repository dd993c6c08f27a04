"""The outcomes of one tick: one record for each schedule that it ends, in the transaction that holds the end.

All ends of a tick are kept until its deliveries are acknowledged, as an outcome says where the delivered record is.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from delaytopic_api.records import DELIVER_ID, Headers
from delaytopic_api.relay import Ending
from delaytopic_relay.core.commands import End, Record, Reject, Schedule, new_record, requested_by

LONGEST_TEXT: Final = 256
"""Bytes of an id, or of who asks, that are copied from headers which no dialect has bounded."""


class Sent(NamedTuple):
    """The topic and the source record of something that was sent; `dead` tells that it is a dead letter."""

    topic: str
    partition: int
    offset: int
    dead: bool


Places = Mapping[Sent, tuple[int, int]]
"""Partition and offset of what was sent and is acknowledged."""


class _Place(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int


class _Outcome(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True):
    """The document `Outcome` of the API, which takes too long to write for each record."""

    outcome: str
    ended_ms: int
    source: _Place
    reason: str | None = None
    id: str | None = None
    id_base64: str | None = None
    due_ms: int | None = None
    target: _Place | None = None
    ended_by: _Place | None = None
    requested_by: str | None = None


class _Ended(NamedTuple):
    end: End
    ended_ms: int
    reason: str | None = None
    topic: str | None = None
    """The topic that a delivered record or a dead letter went to."""


_encode = msgspec.json.Encoder().encode


class Outcomes:
    """The ends of the current tick, and the records that say so."""

    def __init__(self, topic: str, only: Collection[Ending], source: str, target: str, dead_letter: str) -> None:
        """`only` are the endings that are written."""
        self._topic = topic
        self._only = frozenset(only)
        self._source, self._target, self._dead_letter = source, target, dead_letter
        self._ended: dict[int, dict[int, _Ended]] = {}
        """The ends, by source partition and the offset of the schedule, or of a cancel that met nothing."""

    @property
    def topic(self) -> str:
        """The topic of outcomes."""
        return self._topic

    def ended(self, partition: int, ends: Sequence[End], ended_ms: int) -> None:
        """Note what commands have ended."""
        of_partition = self._ended.setdefault(partition, {})
        for end in ends:
            if end.ending in self._only:
                of_partition[end.offset] = _Ended(end, ended_ms)

    def sent(self, partition: int, schedules: Sequence[Schedule], rejects: Sequence[Reject], ended_ms: int) -> None:
        """Note schedules that were delivered, but for those among the rejects, which were dead-lettered."""
        of_partition, new = self._ended.setdefault(partition, {}), tuple.__new__
        if Ending.DELIVERED in self._only:
            for schedule in schedules:
                due_ms, offset, by = schedule.due_ms, schedule.offset, requested_by(schedule.headers)
                end = new(End, (Ending.DELIVERED, offset, due_ms, schedule.id, None, by))
                of_partition[offset] = new(_Ended, (end, ended_ms, None, schedule.target or self._target))
        for reject in rejects:
            of_partition.pop(reject.offset, None)
            if Ending.DEAD_LETTERED in self._only:
                by, name = requested_by(reject.headers), reject.id or _id_in(reject.headers)
                end = End(Ending.DEAD_LETTERED, reject.offset, reject.due_ms, name, None, by)
                of_partition[reject.offset] = _Ended(end, ended_ms, reject.reason.value, self._dead_letter)

    def forget(self, partitions: Collection[int]) -> None:
        """Forget what ended in these: it is not committed."""
        for partition in partitions:
            self._ended.pop(partition, None)

    def forget_all(self) -> None:
        """Begin anew: the tick has ended, or was given up."""
        self._ended.clear()

    def records(self, places: Places) -> list[Record]:
        """Return the records for all that the tick has ended; `places` tells where deliveries and dead letters are."""
        return [
            self._record(partition, ended, places)
            for partition, of_partition in self._ended.items()
            for _, ended in sorted(of_partition.items())
        ]

    def counts(self) -> dict[Ending, int]:
        """Return how many there are of each ending."""
        found: dict[Ending, int] = {}
        for of_partition in self._ended.values():
            for ended in of_partition.values():
                found[ended.end.ending] = found.get(ended.end.ending, 0) + 1
        return found

    def _record(self, partition: int, ended: _Ended, places: Places) -> Record:
        ending, offset, due_ms, name, by, requested = ended.end
        identity, identity_base64 = _text_of(name)
        outcome = _Outcome(
            ending.value,
            ended.ended_ms,
            _Place(self._source, partition, offset),
            ended.reason,
            identity,
            identity_base64,
            due_ms,
            self._place(partition, offset, ended, places),
            _Place(self._source, partition, by) if by is not None else None,
            _requested_by_text(requested),
        )
        key = name if name is not None else b"%b:%d:%d" % (self._source.encode(), partition, offset)
        return new_record(Record, (self._topic, _encode(outcome), key, [], partition))

    def _place(self, partition: int, offset: int, ended: _Ended, places: Places) -> _Place | None:
        if ended.topic is None:
            return None
        dead = ended.end.ending is Ending.DEAD_LETTERED
        place = places.get(Sent(ended.topic, partition, offset, dead))
        return _Place(ended.topic, *place) if place is not None else None


def _id_in(headers: Headers | None) -> bytes | None:
    """Return the id that a record names which was not read as a schedule; None if it cannot be one."""
    found = next((value for name, value in reversed(headers or ()) if name == DELIVER_ID), None)
    return found if found and len(found) <= LONGEST_TEXT else None


def _text_of(name: bytes | None) -> tuple[str | None, str | None]:
    if name is None:
        return None, None
    try:
        return name.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(name).decode()


def _requested_by_text(value: bytes | None) -> str | None:
    if value is None or len(value) > LONGEST_TEXT:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
