"""Parts: tables of verdicts by time, so few that it does not matter for how long an audit has been going on. Pure.

Each run adds a part of the minutes that it closed. Eight of as many runs become one, so that any number of runs has
made at most seven parts of each size, and a row is written again once for each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from delaytopic_audit.model.manifest import Part

FAN_BITS: Final = 3
FAN: Final = 1 << FAN_BITS
"""The number of parts of one size that become one of the next."""


class Rewrite(NamedTuple):
    """A part that a run writes, with the rows of other parts that stay as they are."""

    start: int
    end: int
    runs: int
    sources: tuple[Part, ...]


def next_parts(
    parts: Sequence[Part], floor: int, closed: Sequence[int], again: Sequence[int]
) -> tuple[list[Part], list[Rewrite], Rewrite | None]:
    """Return the parts that stay as they are, those to write again, and the new one, if any.

    Minutes before `floor` are forgotten by every DelayTopic. `closed` are the minutes that the run grades for the first
    time, and `again` those that it grades again. What is graded again stays in a part that has its minute; without any,
    it is of the new one.
    """
    left = [part for part in parts if part.end > floor]
    news = [*closed, *(minute for minute in again if not any(_has(part, minute) for part in left))]
    new = None
    if news:
        new = Rewrite(min(news), max(news) + 1, runs=1, sources=())
        while len(like := _last_of_size(left, new.runs)) >= FAN - 1:
            left = left[: -len(like)]
            runs, sources = new.runs + sum(part.runs for part in like), (*like, *new.sources)
            bounds = (*(part.start for part in like), new.start), (*(part.end for part in like), new.end)
            new = Rewrite(min(bounds[0]), max(bounds[1]), runs, sources)
    stay = [part for part in left if not any(_has(part, minute) for minute in again)]
    rewritten = [Rewrite(part.start, part.end, part.runs, (part,)) for part in left if part not in stay]
    return stay, rewritten, new


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


def _has(part: Part, minute: int) -> bool:
    return part.start <= minute < part.end
