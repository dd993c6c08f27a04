"""The schedules that were sent since the last commit, kept where no transaction takes them back."""

from __future__ import annotations

from collections.abc import Sequence

from delaytopic_relay.core.commands import Schedule

SHARE = 16
"""The share of the batches to forget that goes in a turn: one in so many, and one at least."""


class SentBatches:
    """Schedules in the order in which they were sent, by partition: one that Kafka refuses becomes a dead letter then.

    Those of a tick that has ended are forgotten little by little: all at once takes 3 us a record, for which what is
    due would have to wait.
    """

    def __init__(self) -> None:
        self.batches: list[tuple[int, Sequence[Schedule]]] = []
        self._settled: list[tuple[int, Sequence[Schedule]]] = []

    def add(self, partition: int, schedules: Sequence[Schedule]) -> None:
        """One more batch was sent."""
        self.batches.append((partition, schedules))

    def settle(self) -> None:
        """Forget what a tick has sent, of which nothing will be asked for; what an earlier tick has left goes at once,
        so that it never adds up.
        """
        self._settled, self.batches = self.batches, []

    @property
    def settled(self) -> int:
        """Return how many batches are still to be forgotten."""
        return len(self._settled)

    def forget_some(self) -> None:
        """Forget a part of what is settled."""
        if self._settled:
            del self._settled[-1 - len(self._settled) // SHARE :]
