"""When what waits in a bucket is due: an index of its segments, bounded in size, never a scan of the topic. Pure."""

from __future__ import annotations

from collections.abc import Iterator

MOST_SPANS = 64
"""In one bucket; beyond, neighbours are taken together."""


class Span:
    """Some consecutive segments: their schedules are due from `first_ms` to `last_ms`, both included."""

    __slots__ = ("first_ms", "last_ms", "records", "until")

    def __init__(self, until: int, first_ms: int, last_ms: int, records: int) -> None:
        """`until` is the number after the last segment's."""
        self.until = until
        self.first_ms = first_ms
        self.last_ms = last_ms
        self.records = records


class BucketSpans:
    """The spans of one bucket in the order of its segments."""

    def __init__(self, until: int, first_ms: int, last_ms: int, records: int) -> None:
        """What a successor knows of all that waits."""
        self._spans = [Span(until, first_ms, last_ms, records)] if records else []

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    @property
    def first_ms(self) -> int:
        """Nothing that waits is due before; 0 when nothing waits."""
        return min((span.first_ms for span in self._spans), default=0)

    @property
    def last_ms(self) -> int:
        """Nothing that waits is due after; 0 when nothing waits."""
        return max((span.last_ms for span in self._spans), default=0)

    def wrote(self, until: int, first_ms: int, last_ms: int, records: int) -> None:
        """A segment was written."""
        self._spans.append(Span(until, first_ms, last_ms, records))
        if len(self._spans) > MOST_SPANS:
            self._spans = [*map(_together, self._spans[::2], self._spans[1::2]), *self._spans[len(self._spans) & ~1 :]]

    def visited(self, until: int, records: int) -> None:
        """The first segment was read; `until` is the number after it."""
        if self._spans:
            self._spans[0].records -= records
            if self._spans[0].until <= until:
                del self._spans[0]


def _together(a: Span, b: Span) -> Span:
    return Span(b.until, min(a.first_ms, b.first_ms), max(a.last_ms, b.last_ms), a.records + b.records)
