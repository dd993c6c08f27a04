"""The last record that was read below a position: its leader epoch and its place, to commit with the position. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from delaytopic_relay.core.progress import Identity, Progress


class EpochStart(NamedTuple):
    """The offset of the first of some records of one leader epoch, and that epoch."""

    offset: int
    epoch: int


class Epochs:
    """Knows the last record below a position, also where more was read than is to be committed."""

    def __init__(self, progress: Progress, start: int) -> None:
        """`progress` is what is committed, `start` where reading begins."""
        self._committed = progress.identity
        self._replay_until = progress.position
        self._below = progress.identity.epoch
        """The epoch of the last record below the last position that was asked about; -1 if it is not known."""
        known = progress.identity.epoch >= 0 or progress.identity.gap > 0
        self._behind = progress.position - progress.identity.gap if known else start
        """The offset behind the last record that was taken in. No other record lies between it and what was read."""
        self._starts: deque[EpochStart] = deque()
        """The starts of epochs of records that were not below the last position that was asked about."""
        self._last = -1
        """The epoch of what was read last."""

    def note(self, starts: Sequence[EpochStart]) -> int | None:
        """Take note of what was read.

        Epochs never go back in one log: return the one that was known if those behind the committed position do.
        """
        for start in starts:
            known = max(self._last, self._below)
            if start.epoch < known and start.offset >= self._replay_until:
                return known
            if start.epoch > self._last:
                self._starts.append(start)
                self._last = start.epoch
        return None

    def passed(self, behind: int) -> None:
        """Take note that the record in front of this offset is below what is to be committed next."""
        self._behind = max(self._behind, behind)

    def identity(self, position: int, read_until: int) -> Identity:
        """Return the identity to commit with a position, at or above the committed one.

        What is read again tells more than was committed only when reading has come to the position.
        """
        if read_until < position:
            return self._committed
        while self._starts and self._starts[0].offset < position:
            self._below = max(self._below, self._starts.popleft().epoch)
        return self._committed._replace(epoch=self._below, gap=max(0, position - self._behind))
