"""The memory of a ledger: of earlier runs, the tables that can still matter to a minute. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from delaytopic_audit.model.manifest import Asked, Run


def remembered(runs: Sequence[Run], floor: int) -> list[Run]:
    """Return the runs, in their order, with what they still have that is of use: minutes before `floor` are forgotten.

    Records are kept for as long as one of them counts. Commands are kept longer than their own run's records, as they
    may withdraw schedules of any run before theirs.
    """
    found, awaited = [], False
    for run in runs:
        has_records = run.last_minute is not None and run.last_minute >= floor
        awaited = awaited or (has_records and run.commands > 0)
        kept = run.model_copy(
            update={
                **({} if has_records else _WITHOUT_RECORDS),
                "commands": run.commands if awaited else 0,
            }
        )
        if kept.tables:
            found.append(kept)
    return found


def forgotten_asks(runs: Iterable[Run], floor: int, number: int, before: Iterable[Asked]) -> list[Asked]:
    """Return the offsets of forgotten source records of a DelayTopic: those from `before`, and of the runs that lose
    theirs. `number` is the DelayTopic's.
    """
    gone = (run for run in runs if run.last_minute is not None and run.last_minute < floor)
    return joined_ranges((*before, *(piece for run in gone for piece in run.asks.get(number, []))))


def joined_ranges(pieces: Iterable[Asked]) -> list[Asked]:
    """Return offsets of a source in their order, with those put together that follow upon each other."""
    found: list[Asked] = []
    for piece in sorted(piece for piece in pieces if piece.end > piece.start):
        if found and (found[-1].partition, found[-1].end) == piece[:2]:
            found[-1] = found[-1]._replace(end=piece.end)
        else:
            found.append(piece)
    return found


_WITHOUT_RECORDS: dict[str, Any] = {"first_minute": None, "last_minute": None, "overdue": 0, "asks": {}, "rows": 0}
