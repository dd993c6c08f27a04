"""The leader epochs of what is read of a partition, up to the one to commit with a position. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple


class EpochStart(NamedTuple):
    """The offset of the first of some records of one leader epoch, and that epoch."""

    offset: int
    epoch: int


class Epochs:
    """Knows the epoch of the last record below a position, also where more was read than is to be committed."""

    def __init__(self, committed: int, replay_until: int) -> None:
        """`committed` is the epoch of the last record below the committed position, `replay_until`; -1 if it is not
        known.
        """
        self._below = committed
        self._replay_until = replay_until
        self._starts: deque[EpochStart] = deque()
        """Those of records that were not below the last position that was asked about."""
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

    def below(self, position: int, read_until: int) -> int:
        """Return the epoch of the last record below a position, at or above the committed one; -1 if it is not known.

        What is read again tells it only when reading has come to the position.
        """
        while read_until >= position and self._starts and self._starts[0].offset < position:
            self._below = max(self._below, self._starts.popleft().epoch)
        return self._below
