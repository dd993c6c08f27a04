"""Sets of minutes as few ranges: what Parquet's row groups are skipped by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as sf

from delaytopic_audit.model.manifest import MinuteRange
from delaytopic_audit.model.words import MINUTE_MS

MOST_RANGES = 50


def ranges_of(minutes: Iterable[int], most: int = MOST_RANGES) -> list[MinuteRange]:
    """Return ranges that cover these minutes: exact where `most` suffice, else with the narrowest gaps filled.

    To grade a closed minute again that nobody asked for costs time, and changes nothing.
    """
    ordered = sorted(set(minutes))
    if not ordered:
        return []
    gaps = sorted(
        ((later - earlier, later) for earlier, later in pairwise(ordered) if later - earlier > 1), reverse=True
    )
    starts = sorted([ordered[0], *(later for _, later in gaps[: most - 1])])
    ends = [max(minute for minute in ordered if minute < start) + 1 for start in starts[1:]]
    return [MinuteRange(*bounds) for bounds in zip(starts, [*ends, ordered[-1] + 1], strict=True)]


def deadline_within(ranges: Sequence[MinuteRange]) -> Column:
    """Return the condition that a deadline lies in one of the ranges; none holds nothing.

    Parquet skips row groups by such a condition, and by no join. What is of which minute, joins say.
    """
    deadline = sf.col("deadline_ms")
    in_ms = ((start * MINUTE_MS, end * MINUTE_MS) for start, end in ranges)
    return reduce(or_, ((deadline >= start) & (deadline < end) for start, end in in_ms), sf.lit(False))
