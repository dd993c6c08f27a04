"""Kafka's own offsets of a source topic, and what they say about records that wait there with a fixed delay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

PARTS = (64, 16, 4, 1)
"""Where the look-ahead is cut when records wait in the source itself: finely where it is near. Each is a question."""


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """One partition; `committed` None means that the group has committed nothing.

    `offset_at` maps epoch milliseconds to the first offset with that timestamp or a later one (the end, if there is
    none). It is known with a fixed delay only, at `times_to_ask`.
    """

    log_start: int
    end: int
    committed: int | None = None
    offset_at: tuple[tuple[int, int], ...] = ()

    @classmethod
    def answered(cls, log_start: int, end: int, offset_at: Mapping[int, int | None]) -> Self:
        """Of a partition of which nothing is known to be unread; an offset of None is that of the end."""
        by_time = tuple((at_ms, end if offset is None else offset) for at_ms, offset in sorted(offset_at.items()))
        return cls(log_start, end, committed=end, offset_at=by_time)

    @property
    def unread(self) -> int:
        """Not committed as taken in, and still there: an upper bound of the work, as a horizon is read ahead."""
        return max(0, self.end - max(self.committed or 0, self.log_start))


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """The partitions that answered, by number, of `count` that there are."""

    as_of_ms: int
    count: int
    partitions: Mapping[int, PartitionOffsets]

    @property
    def complete(self) -> bool:
        """Whether every partition answered."""
        return all(number in self.partitions for number in range(self.count))


def times_to_ask(now_ms: int, delay_ms: int, look_ahead_ms: int) -> tuple[int, ...]:
    """Timestamps whose records fall due between now and the look-ahead's end, with a fixed delay."""
    reach_ms = min(delay_ms, look_ahead_ms)
    return (now_ms - delay_ms, *(now_ms - delay_ms + reach_ms // part for part in PARTS))


def waiting_ahead(
    offsets: PartitionOffsets, position: int, delay_ms: int, now_ms: int
) -> tuple[dict[tuple[int, int], float], int]:
    """Records that wait in the source for a fixed delay: when they fall due, and how many already should have left.

    Without offsets by time they are taken to be spread over the whole delay.
    """
    first = max(position, offsets.log_start)
    if not offsets.offset_at:
        waiting = max(0, offsets.end - first)
        return ({(now_ms, now_ms + max(1, delay_ms)): float(waiting)} if waiting else {}), 0
    at = sorted(offsets.offset_at)
    due = {
        (before_ms + delay_ms, after_ms + delay_ms): float(max(0, after - max(before, first)))
        for (before_ms, before), (after_ms, after) in pairwise(at)
    }
    return {span: records for span, records in due.items() if records}, max(0, at[0][1] - first)
