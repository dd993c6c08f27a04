"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def count(number: float, noun: str) -> str:
    """`1 relay`, `300,000 records`."""
    whole = round(number)
    return f"{whole:,} {noun}" if whole == 1 else f"{whole:,} {noun}s"


def length(ms: float) -> str:
    """`0.4 s`, `45 s`, `12 min`, `3.5 h`: no more digits than anybody can use."""
    seconds = ms / 1_000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_170 else f"{seconds / 3_600:.1f} h"


def clock(at_ms: int) -> str:
    """`14:00:05 UTC`."""
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%H:%M:%S} UTC"


def between(from_ms: int, to_ms: int) -> str:
    """`between 14:00:05 and 14:00:15 UTC`."""
    start, end = (f"{datetime.fromtimestamp(each / 1_000, UTC):%H:%M:%S}" for each in (from_ms, to_ms))
    return f"between {start} and {end} UTC"


def partitions(numbers: tuple[int, ...]) -> str:
    """`partition 3`, `partitions 3, 5 and 7`, `partitions 0, 1, 2 and 9 more`."""
    if len(numbers) == 1:
        return f"partition {numbers[0]}"
    shown, rest = (numbers[:-1], str(numbers[-1])) if len(numbers) <= 4 else (numbers[:3], f"{len(numbers) - 3} more")
    return f"partitions {', '.join(map(str, shown))} and {rest}"
