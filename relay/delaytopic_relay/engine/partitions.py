"""The partitions that the group gave to a relay. Each waits to be recovered, or is at work; never both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from delaytopic_relay.backlog.protocol import Shard
from delaytopic_relay.core.commands import Command
from delaytopic_relay.core.progress import Progress

ASSIGNED: Final = "assigned"
"""The reason for which a partition waits that came to us; others were ours until something happened."""

T = TypeVar("T")


@dataclass(slots=True)
class Owned:
    """A partition at work: all that the loop knows of it. It goes as a whole, whatever was under way."""

    shard: Shard
    committed: Progress
    moving: bool = False
    """True if its backlog was on another backend."""
    rules_wait: str | None = None
    """The reason for which it is read by former rules alone; None if the relay's own are in force."""
    look_ahead_until: int | None = None
    """The offset up to which it is looked through, before it is read from where it stands; None once it was."""
    looked_ahead: bool = False
    """True between the last record that is looked at and the seek back."""
    deferred: Sequence[Command] | None = None
    """Commands that were read and may not be taken in yet; nothing is read behind them. None without any."""
    paused: bool = False
    """True while it is not read."""


class Partitions:
    """The table of them: `owned` are at work, `waiting` are not, each for its reason."""

    def __init__(self) -> None:
        self.owned: dict[int, Owned] = {}
        self.waiting: dict[int, str] = {}

    @property
    def shards(self) -> dict[int, Shard]:
        """The shards at work."""
        return {partition: each.shard for partition, each in self.owned.items()}

    def having(self, what: Callable[[Owned], T | None]) -> dict[int, T]:
        """Return what partitions at work have, without those for which it is None."""
        return {partition: found for partition, each in self.owned.items() if (found := what(each)) is not None}

    def wait(self, partitions: Iterable[int], cause: str) -> None:
        """Have partitions wait to be recovered; nothing of what they did stays."""
        for partition in partitions:
            self.owned.pop(partition, None)
            self.waiting[partition] = cause

    def recovered(self, partition: int, owned: Owned) -> str:
        """Put a partition to work that waited, and return for what."""
        self.owned[partition] = owned
        return self.waiting.pop(partition)

    def forget(self, partitions: Iterable[int]) -> None:
        """Forget partitions that are somebody else's."""
        for partition in partitions:
            self.owned.pop(partition, None)
            self.waiting.pop(partition, None)

    def __contains__(self, partition: int) -> bool:
        return partition in self.owned or partition in self.waiting
