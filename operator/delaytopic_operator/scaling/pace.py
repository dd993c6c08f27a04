"""The pace of the looks at one DelayTopic, and the times that follow from it. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

POLL_MS: Final = 15_000
"""The usual time between two looks at relays and Kafka."""
MISSED_POLLS: Final = 3
"""A rebalance explains that so many looks find something missing, and no more."""
SHORTEST_STALE_MS: Final = 45_000
BLIND_MS: Final = 300_000
LONGEST_GAP_MS: Final = 300_000
WINDOW_MS: Final = 900_000


class Pace(NamedTuple):
    """The time between two looks as it is configured, and the time by which this one is late.

    A look that waits in the queue of an operator with too much to do is late, and no gap in what is watched.
    """

    poll_ms: int = POLL_MS
    waited_ms: int = 0
    """The time for which the look has waited since it was due."""

    @property
    def stale_ms(self) -> int:
        """The time from which something that was missing at each look is missing for longer than a rebalance."""
        return max(SHORTEST_STALE_MS, MISSED_POLLS * self.poll_ms)

    @property
    def blind_ms(self) -> int:
        """The time without any answer after which the last day counts for more than the present."""
        return max(BLIND_MS, self.stale_ms)

    @property
    def longest_gap_ms(self) -> int:
        """The time between two answers from which nothing is known of what happened between them."""
        return max(LONGEST_GAP_MS, self.stale_ms) + self.waited_ms

    @property
    def window_ms(self) -> int:
        """The time for which a measured rate counts: long enough for some of them."""
        return max(WINDOW_MS, 2 * self.longest_gap_ms)

    def continues(self, before_ms: int | None, now_ms: int, longest_ms: int) -> bool:
        """Tell whether this look was asked for no longer than so after an earlier moment."""
        return before_ms is not None and now_ms - self.waited_ms - before_ms <= longest_ms


USUAL: Final = Pace()
"""A poll as usual, by a look in time."""
