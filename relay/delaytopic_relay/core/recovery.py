"""The plan of a new owner: where it starts, from what is committed, what the backlog holds, and what the source still
has. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from delaytopic_relay.core.progress import Progress, fresh_progress


class Bounds(NamedTuple):
    """The first offset that the source still has, and the one after its last."""

    low: int
    end: int


class Plan(NamedTuple):
    """`progress` is to be committed first, then the backlog is opened, then reading begins at `progress.offset`."""

    progress: Progress
    missing_offsets: int = 0
    """Source offsets that should have been read again, and are no more on the source."""
    source_truncated: bool = False
    """The source ends before the committed position: it was truncated or created anew."""
    backend_changed: bool = False
    """The backlog is on another backend, from which it moves here by being read again."""
    rules_wait: str | None = None
    """The reason why the relay's own rules are not yet in force for what comes; None if they are."""

    @property
    def replay(self) -> int:
        """The number of source offsets that are read again."""
        return self.progress.position - self.progress.offset


def plan_recovery(
    committed: Progress | None, filled: int | None, bounds: Bounds, owner: str, *, offset_reset: bool = False
) -> Plan:
    """Start at the lower of the committed offset and `filled`; never deliver again what is done.

    The backlog holds what is not done below the source offset `filled`; None stands for a backlog that holds nothing.
    An offset that was reset from outside (it has no metadata of ours) is where somebody wants reading to start,
    whatever the backlog holds.
    """
    was = committed or fresh_progress(bounds.low)
    # The lower offset is committed before the backlog is claimed: otherwise a crash in between would let a successor
    # believe that the backlog holds what only this memory held. Below the floor all is done.
    wished = was.offset if offset_reset else max(min(was.offset, filled or 0), was.floor)
    start = max(wished, bounds.low)
    taken = max(was.position, start)
    truncated = taken > bounds.end
    if truncated:
        start, taken = min(start, bounds.end), bounds.end
        # Of a topic that was made anew, other records have these offsets.
        was = was._replace(terms=(), generations=(), floor=0)
    needed = was.offset if filled is None else wished
    missing = max(0, start - needed) if committed is not None and not truncated else 0
    return Plan(was._replace(offset=start, position=taken, owner=owner, buckets=None), missing, truncated)
