"""Parts: tables of verdicts by time, so few that it does not matter for how long an audit has been going on. Pure.

Each run adds a part of the minutes that it closed. Eight of as many runs become one, so that any number of runs has
made at most seven parts of each size, and a row is written again once for each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from delaytopic_audit.model.manifest import MinuteRange, Part

FAN_BITS: Final = 3
FAN: Final = 1 << FAN_BITS
"""The number of parts of one size that become one of the next."""


class Rewrite(NamedTuple):
    """A part that a run writes: the rows of other parts that stay as they are, and what it graded of these minutes."""

    start: int
    end: int
    runs: int
    sources: tuple[Part, ...]


def next_parts(
    parts: Sequence[Part], floor: int, closing: MinuteRange, graded: Sequence[MinuteRange]
) -> tuple[list[Part], list[Rewrite]]:
    """Return the parts that stay as they are, and those that a run writes, both by time.

    Minutes before `floor` are forgotten. The run closes the minutes of `closing`, and grades those and some earlier
    ones: `graded`.
    """
    left = [part for part in parts if part.end > floor]
    written: list[Rewrite] = []
    if closing.start < closing.end:
        new = Rewrite(*closing, runs=1, sources=())
        while len(like := _last_of_size(left, new.runs)) >= FAN - 1:
            left = left[: -len(like)]
            runs = new.runs + sum(part.runs for part in like)
            new = Rewrite(like[0].start, new.end, runs, (*like, *new.sources))
        written = [new]
    again = [part for part in left if any(_overlap(part, bounds) for bounds in graded)]
    rewritten = [Rewrite(part.start, part.end, part.runs, (part,)) for part in again]
    return [part for part in left if part not in again], [*rewritten, *written]


def _last_of_size(parts: Sequence[Part], runs: int) -> list[Part]:
    """Return the last parts that are as large as one of so many runs."""
    count = 0
    for part in reversed(parts):
        if _size(part.runs) != _size(runs):
            break
        count += 1
    return list(parts[len(parts) - count :])


def _size(runs: int) -> int:
    return (runs.bit_length() - 1) // FAN_BITS


def _overlap(part: Part, bounds: MinuteRange) -> bool:
    return part.start < bounds.end and bounds.start < part.end
