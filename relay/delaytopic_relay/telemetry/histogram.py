"""A histogram of milliseconds that is filled by the batch: a call per record would cost more than sending it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

INFINITY = "+Inf"


class MillisecondHistogram:
    """Counts integers up to fixed edges, an edge included; not safe for threads."""

    def __init__(self, edges_ms: Sequence[int]) -> None:
        """`edges_ms` ascends; what lies above the last is counted too."""
        self.edges_ms = tuple(edges_ms)
        self._up_to = [0] * len(self.edges_ms)
        self.count = 0
        self.sum_ms = 0

    def add(self, value_ms: int) -> None:
        """Count one value."""
        for place in range(bisect_left(self.edges_ms, value_ms), len(self.edges_ms)):
            self._up_to[place] += 1
        self.count += 1
        self.sum_ms += value_ms

    def add_lateness(self, due_times_ms: Iterable[int], sent_ms: int) -> None:
        """Count, for each due time, how long after it `sent_ms` was; fastest if they come in order."""
        due = sorted(due_times_ms)
        first = len(due)
        for place, edge_ms in enumerate(self.edges_ms):
            # All from here on were due at most an edge ago; the next, longer edge reaches further back.
            first = bisect_left(due, sent_ms - edge_ms, 0, first)
            self._up_to[place] += len(due) - first
        self.count += len(due)
        self.sum_ms += len(due) * sent_ms - sum(due)

    def buckets(self) -> list[tuple[str, int]]:
        """Prometheus' buckets: the edge in seconds, and how many were at most that."""
        edges = [(str(edge_ms / 1000), count) for edge_ms, count in zip(self.edges_ms, self._up_to, strict=True)]
        return [*edges, (INFINITY, self.count)]
