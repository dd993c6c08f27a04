"""The schedules that still wait and will not be delivered, as a later command of their id has ended them: a count.

It is a lower bound: a relay that takes a partition over does not know all that was ended before. What never leaves is
forgotten at its due time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

MOST_SPANS: Final = 4_096
"""The most spans of one shard; beyond that, spans become wider."""


class Withdrawn:
    """Counts by spans of due times, in bounded memory."""

    def __init__(self) -> None:
        """Begins with none."""
        self._width_ms = 1
        self._records: dict[int, int] = {}

    def add(self, due_ms: int) -> None:
        """Count a schedule that was in effect and waits on."""
        span = due_ms // self._width_ms
        self._records[span] = self._records.get(span, 0) + 1
        while len(self._records) > MOST_SPANS:
            self._widen()

    def left(self, due_ms: int) -> None:
        """Count a schedule no more that has left, if one of its time is counted."""
        span = due_ms // self._width_ms
        records = self._records.pop(span, 0)
        if records > 1:
            self._records[span] = records - 1

    def spans(self, from_ms: int) -> Iterator[tuple[int, int, int]]:
        """Yield start, width and number of those due from a time on, and forget those before: they have left."""
        width_ms = self._width_ms
        first = from_ms // width_ms
        self._records = {span: records for span, records in self._records.items() if span >= first}
        yield from ((span * width_ms, width_ms, records) for span, records in self._records.items())

    def _widen(self) -> None:
        self._width_ms *= 2
        former, self._records = self._records, {}
        for span, records in former.items():
            self._records[span // 2] = self._records.get(span // 2, 0) + records
