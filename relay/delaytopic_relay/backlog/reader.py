"""What a listing asks of a shelf: to be read by another thread than the loop's, and changed in nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from delaytopic_relay.backlog.store import IdEntry, Position, Slice
from delaytopic_relay.core.commands import Schedule


class Portion(NamedTuple):
    """Some schedules of the slices that were asked for, and how many bytes they took to read."""

    schedules: Sequence[Schedule]
    data_bytes: int


class PendingReader(Protocol):
    """Reads a shelf over a connection of its own while the loop goes on changing it.

    The reader takes no part in ownership: it only compares (`still_at`). A shelf that moves schedules from one slice
    to others writes the copies first and forgets the original last, so whoever finds a slice gone finds its
    schedules in the slices as they are then. All methods raise `ShelfUnavailable` and `CorruptState`.
    """

    def slices(self, shard: int, from_ms: int, before_ms: int) -> Mapping[Slice, int]:
        """Return the slices that begin at `from_ms` or later and before `before_ms`, with the records put into each.

        Copies are counted, too. Slices that begin outside may be among them.
        """
        ...

    def expect(self, shard: int, slices: Sequence[Slice]) -> None:
        """These are the next to be read: what takes its time may begin."""
        ...

    def read(self, shard: int, slices: Sequence[Slice], before_ms: Callable[[], int]) -> Iterator[Portion]:
        """All schedules of these slices in portions of bounded size, in any order. Raises `SliceGone`.

        What is due at or after `before_ms()`, which falls while more is found, may be left out.
        """
        ...

    def ids(self, shard: int, names: Sequence[bytes]) -> Sequence[IdEntry | None]:
        """The entries of these ids, None where there is none, in the order asked for."""
        ...

    def still_at(self, shard: int, position: Position) -> bool:
        """Whether the shelf is that of the owner of this position, and has lost none of the writes up to it."""
        ...

    def close(self) -> None:
        """Give back the connection."""
        ...


class SliceGone(Exception):
    """A slice was forgotten while it was read: its schedules are done, or in other slices."""
