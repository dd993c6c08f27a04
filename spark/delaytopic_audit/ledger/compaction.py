"""Compaction: runs that become one, so few that it does not matter how often an audit runs. Pure.

Eight runs of a size become one of the next, as long as they are small: a row is written again once for each size, and
what is large enough to be read by itself stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from delaytopic_audit.ledger.parts import FAN, FAN_BITS
from delaytopic_audit.ledger.retention import joined_ranges
from delaytopic_audit.model.manifest import Asked, Run

MOST_ROWS: Final = 8_000_000
"""Rows of a run that was put together, at the most: some files, which a task each writes in seconds."""


def last_to_compact(runs: Sequence[Run]) -> int:
    """Return how many of the last runs become one; 0 when none do."""
    found = rows = size = 0
    while True:
        like, more = _last_of_size(runs[: len(runs) - found], size, MOST_ROWS - rows)
        # What is put together of the size below is one more of this.
        if like + (found > 0) < FAN:
            return found
        found, rows, size = found + like, rows + more, size + 1


def put_together(runs: Sequence[Run], folder: str) -> Run:
    """Return the run that these become, with its tables in a folder; buckets are known once they are written."""
    first = [run.first_minute for run in runs if run.first_minute is not None]
    last = [run.last_minute for run in runs if run.last_minute is not None]
    return Run(
        sequence=runs[-1].sequence,
        folder=folder,
        first_minute=min(first, default=None),
        last_minute=max(last, default=None),
        commands=sum(run.commands for run in runs),
        overdue=sum(run.overdue for run in runs),
        asks={number: joined_ranges(_asks_of(number, runs)) for number in {n for run in runs for n in run.asks}},
        rows=sum(run.rows for run in runs),
        runs=sum(run.runs for run in runs),
    )


def _asks_of(number: int, runs: Sequence[Run]) -> Iterator[Asked]:
    return (piece for run in runs for piece in run.asks.get(number, []))


def _last_of_size(runs: Sequence[Run], size: int, most_rows: int) -> tuple[int, int]:
    """Return how many of the last runs are of a size and have no more rows together, and these rows."""
    found = rows = 0
    for run in reversed(runs):
        if _size(run) != size or rows + run.rows + run.commands > most_rows:
            break
        found += 1
        rows += run.rows + run.commands
    return found, rows


def _size(run: Run) -> int:
    return (run.runs.bit_length() - 1) // FAN_BITS
