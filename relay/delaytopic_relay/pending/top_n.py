"""The first so many records of a listing, whatever the order in which they are found. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from delaytopic_relay.core.commands import Schedule

Place = tuple[int, int, int]


class Listed(NamedTuple):
    """What a listing says of a schedule. The first three fields are its place, and unique."""

    due_ms: int
    partition: int
    offset: int
    id: bytes | None
    target: str | None
    key: bytes | None
    value_bytes: int | None

    @classmethod
    def of(cls, partition: int, schedule: Schedule) -> Listed:
        """Without the value and the headers."""
        value = schedule.value
        size = None if value is None else len(value)
        return cls(schedule.due_ms, partition, schedule.offset, schedule.id, schedule.target, schedule.key, size)


class Shortlist:
    """Keeps the first `size` records by (due, partition, offset); of copies it keeps one."""

    def __init__(self, size: int) -> None:
        """`size` is at least 1."""
        self._size = size
        self._found: dict[Place, Listed] = {}
        self._last_ms: int | None = None

    def add(self, partition: int, schedules: Iterable[Schedule]) -> None:
        """Consider these schedules of a shard."""
        last_ms, found = self._last_ms, self._found
        for schedule in schedules:
            if last_ms is None or schedule.due_ms <= last_ms:
                found[schedule.due_ms, partition, schedule.offset] = Listed.of(partition, schedule)
        if len(found) > 2 * self._size or (last_ms is None and len(found) >= self._size):
            self._prune()

    def _prune(self) -> None:
        places = sorted(self._found)[: self._size]
        self._found = {place: self._found[place] for place in places}
        self._last_ms = places[-1][0]

    @property
    def last_ms(self) -> int | None:
        """What is due after this is not among the first; None while there are too few."""
        return self._last_ms

    @property
    def missing(self) -> int:
        """How many more it takes."""
        return max(0, self._size - len(self._found))

    def records(self) -> list[Listed]:
        """The first, in order."""
        return [self._found[place] for place in sorted(self._found)[: self._size]]
