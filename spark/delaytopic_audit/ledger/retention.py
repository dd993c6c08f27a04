"""The memory of a ledger: of earlier runs, the tables that can still matter to a minute. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from delaytopic_audit.model.manifest import Range, Run


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


def forgotten_asks(runs: Iterable[Run], floor: int, before: Iterable[Range]) -> list[Range]:
    """Return the source's offsets of forgotten records: those from `before`, and of the runs that lose theirs."""
    gone = [piece for run in runs if run.last_minute is not None and run.last_minute < floor for piece in run.asks]
    return joined_ranges((*before, *gone))


def joined_ranges(pieces: Iterable[Range]) -> list[Range]:
    """Return ranges of the source in their order, with those put together that follow upon each other."""
    ordered = sorted((piece for piece in pieces if piece.end > piece.start), key=_place)
    return [piece for _, found in groupby(ordered, lambda piece: piece.partition) for piece in _joined(found)]


_WITHOUT_RECORDS: dict[str, Any] = {"first_minute": None, "last_minute": None, "overdue": 0, "asks": [], "rows": 0}


def _joined(pieces: Iterable[Range]) -> list[Range]:
    """Return ranges of one partition, in order, with those put together that follow upon each other."""
    found: list[Range] = []
    for piece in pieces:
        if found and found[-1].end == piece.start:
            found[-1] = found[-1].model_copy(update={"end": piece.end})
        else:
            found.append(piece)
    return found


def _place(piece: Range) -> tuple[int, int]:
    return piece.partition, piece.start
