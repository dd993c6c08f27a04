"""Asks of a shard to its backlog: writes, of which one is under way at a time, and portions of slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from delaytopic_relay.backlog.slices import NARROW_MS
from delaytopic_relay.backlog.store import Segment, Slice, StoreVersion
from delaytopic_relay.core.calendar import bytes_of
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.entries import sizes
from delaytopic_relay.core.id_states import IdEntry

_due_ms = attrgetter("due_ms")


class Write(StrEnum):
    """The kinds of writes. Each moves the backlog's version on, and what is acknowledged is in the backlog for good.

    | write     | takes along                   | acknowledged               | refused by a full backlog       |
    | --------- | ----------------------------- | -------------------------- | ------------------------------- |
    | `PUT`     | all that is far, and ids      | the tick may commit        | it is held in memory            |
    | `EARLY`   | what is far, without ids      | the next put has the rest  | it is held in memory            |
    | `TOUCH`   | what was refused, or nothing  | other writes may be asked  | the same, under another version |
    | `CASCADE` | a portion of a wide slice     | the next portion is loaded | the slice waits as it is        |

    After a refusal, and until it is acknowledged, a touch goes before any other write. A write without an answer is
    asked for again as it was: it may have happened.
    """

    PUT = "put"
    EARLY = "early"
    TOUCH = "touch"
    CASCADE = "cascade"


class Load(NamedTuple):
    """A portion of a slice to read: so many segments, from `first` on."""

    slice: Slice
    first: int
    segments: int


class Portion(NamedTuple):
    """A portion that came, with the bytes of its segments and the number of schedules in them."""

    load: Load
    data_bytes: int
    records: int


class Put(NamedTuple):
    """A write to the backlog; a cascade's is made of a portion."""

    expected: StoreVersion
    new: StoreVersion
    segments: list[Segment]
    ids: dict[bytes, IdEntry]
    kind: Write
    portion: Portion | None = None


class Part:
    """The part of a wide slice that goes to memory: what is due from some time on, and as much of it as there is room.

    It ends between narrow slices, at `until_ms`, and has all that is due before `least_ms`.
    """

    def __init__(self, from_ms: int, least_ms: int, until_ms: int, most_bytes: int) -> None:
        self._from_ms = from_ms
        self.least_ms = least_ms
        self.until_ms = until_ms
        self._most_bytes = most_bytes
        self._kept: list[Schedule] = []
        self._bytes = 0

    def add(self, schedules: Iterable[Schedule]) -> None:
        """Keep what belongs to it as far as it reaches now."""
        more = [schedule for schedule in schedules if self._from_ms <= schedule.due_ms < self.until_ms]
        self._kept += more
        self._bytes += sizes(more).total
        if self._bytes > 2 * self._most_bytes:
            self.cut()

    def cut(self) -> Sequence[Schedule]:
        """Let it end where there is no more room, and return it."""
        if self._bytes > self._most_bytes and self.until_ms > self.least_ms:
            size = 0
            for schedule in sorted(self._kept, key=_due_ms):
                size += bytes_of(schedule)
                if size > self._most_bytes:
                    self.until_ms = max(self.least_ms, schedule.due_ms // NARROW_MS * NARROW_MS)
                    break
            self._kept = [schedule for schedule in self._kept if schedule.due_ms < self.until_ms]
            self._bytes = sizes(self._kept).total
        return self._kept
