"""The pace of ticks, and how long to sleep: pure decisions over the clock's readings."""

from __future__ import annotations

from typing import NamedTuple

LONGEST_TICK_MS = 100
SHORTEST_TICK_MS = 5
PLAIN_TICK_MS = 500
"""Without transactions nobody waits for the commit, which keeps the loop from what is due: it only bounds the tail
that a crash repeats."""
MOST_SENT = 20_000
"""Records in a tick."""
QUIET_TICK_MS = 500
"""The longest tick in which only the position moved."""
BRIEF_TICK_MS = 12
"""A third of the precision may be less: then half of it, up to this. Still shorter ticks are mostly markers."""
CROWD = 1_500
"""Records sent from which on a tick collects for the whole precision: a third as many commits, each of which keeps the
loop for 8 ms, and all of the crowd is out sooner."""
BURST = 2_000
"""Records taken in by a tick that ends once no more come: nothing is left to collect, and whoever watches the lag, as
autoscaling does, sees the burst settled."""
SETTLED_MS = 25
"""The time without a record after which such a burst is over where a commit keeps the loop from what is due."""
LARGEST_FAR_BYTES = 16 << 20
LONGEST_SLEEP_MS = 50
COMMIT_SHARE = 1
"""A tick collects for at least this many times what the last commit took, within the precision: half of the time."""


MARKERS_MS = 8
"""The time for which the broker writes a transaction's markers after the commit was answered, and answers no to the
next one's first partition: the client then waits for 20 ms before it asks again."""


class Pace(NamedTuple):
    """The length of ticks: transactional ones keep within the precision, the others do not matter to a reader."""

    precision_ms: int
    transactional: bool

    def tick_ms(self, last_commit_ms: int, *, crowded: bool = False) -> int:
        """Return how long to collect before a commit, given how long the last one took."""
        if not self.transactional:
            return PLAIN_TICK_MS
        brief_ms = max(self.precision_ms // 3, min(self.precision_ms // 2, BRIEF_TICK_MS))
        wished = max(self.precision_ms if crowded else brief_ms, SHORTEST_TICK_MS, COMMIT_SHARE * last_commit_ms)
        return min(wished, max(self.precision_ms, SHORTEST_TICK_MS), LONGEST_TICK_MS)

    def hold_ms(self) -> int:
        """Return how long nothing is sent after a commit, within half of the shortest tick."""
        return min(MARKERS_MS, self.tick_ms(0) // 2) if self.transactional else 0


class TickState(NamedTuple):
    """The work that is open since the last commit; times are monotonic, `sent` and `taken` count records.

    `idle` says that none came when some were last asked for, `came_ms` when the last ones did.
    """

    started_ms: int
    sent: int
    moved: bool
    far_bytes: int
    taken: int = 0
    idle: bool = False
    came_ms: int = 0


def closes_at_ms(tick: TickState, pace: Pace, last_commit_ms: int) -> int | None:
    """Return when the open tick is to be committed; None when there is nothing to commit."""
    if tick.far_bytes > LARGEST_FAR_BYTES or tick.sent >= MOST_SENT:
        return tick.started_ms
    if tick.sent:
        closes_ms = tick.started_ms + pace.tick_ms(last_commit_ms, crowded=tick.sent >= CROWD)
        over_ms = tick.came_ms + SETTLED_MS
        return closes_ms if pace.transactional or tick.taken < BURST else min(closes_ms, over_ms)
    if tick.moved:
        return tick.started_ms + (0 if tick.idle and tick.taken >= BURST else QUIET_TICK_MS)
    return None


def sleep_ms(now_ms: int, wake_ms: int | None, monotonic_ms: int, close_ms: int | None) -> int:
    """Return how long to wait for records: until something is due or the tick is to be closed."""
    longest = LONGEST_SLEEP_MS
    if wake_ms is not None:
        longest = min(longest, wake_ms - now_ms)
    if close_ms is not None:
        longest = min(longest, close_ms - monotonic_ms)
    return max(0, longest)
