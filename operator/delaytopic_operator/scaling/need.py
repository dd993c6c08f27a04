"""How many relays the work asks for, in units of one relay at full power; each need knows its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from delaytopic_operator.scaling.due_curve import Piece

CATCH_UP_MS = 30_000
"""Within this, what is overdue shall have left."""
READ_UP_MS = 60_000
"""Within this, what has not been taken in shall be."""


class NeedKind(StrEnum):
    """What the relays are needed for."""

    DUE = "Due"
    OVERDUE = "Overdue"
    INGEST = "Ingest"


@dataclass(frozen=True, slots=True)
class Need:
    """So many relays for so many records, between two times (epoch milliseconds)."""

    kind: NeedKind
    relays: float
    records: int
    from_ms: int
    to_ms: int
    pressing_ms: int
    """From when on relays can do something about it."""


def needs_of_due(
    pieces: Sequence[Piece], overdue: int, per_second: float, precision_ms: int, now_ms: int
) -> tuple[Need, ...]:
    """The smallest relay count that delivers each burst within its own width plus precision.

    For each piece the worst interval that ends with it. Nothing leaves before its time, so relays for that interval are
    of use when its last piece begins, and not before: until then, the intervals that end earlier ask for what they
    need. What is overdue joins the work from now on, over intervals long enough to catch up.
    """
    upto = [0.0, *accumulate(piece.records for piece in pieces)]
    needs: list[Need] = []
    for last, piece in enumerate(pieces):
        worst, records, first = 0.0, 0.0, 0
        for start in range(last + 1):
            width_ms = piece.end_ms - pieces[start].start_ms
            due = upto[last + 1] - upto[start]
            if start == 0 and width_ms >= CATCH_UP_MS:
                due += overdue
            rate = due / (width_ms + precision_ms)
            if rate > worst:
                worst, records, first = rate, due, start
        if worst > 0:
            relays, start_ms = worst * 1_000 / per_second, pieces[first].start_ms
            needs.append(Need(NeedKind.DUE, relays, round(records), start_ms, piece.known_to_ms, piece.start_ms))
    return (*needs, *((need_of_overdue(overdue, per_second, now_ms),) if overdue else ()))


def need_of_overdue(overdue: int, per_second: float, now_ms: int) -> Need:
    """What is late already."""
    relays = overdue * 1_000 / (per_second * CATCH_UP_MS)
    return Need(NeedKind.OVERDUE, relays, overdue, now_ms, now_ms + CATCH_UP_MS, now_ms)


def need_of_ingest(arriving_per_second: float, lag: int, ingest_per_second: float, now_ms: int) -> Need:
    """What arrives, and what has not been taken in yet."""
    relays = (arriving_per_second + lag * 1_000 / READ_UP_MS) / ingest_per_second
    records = lag + round(arriving_per_second * READ_UP_MS / 1_000)
    return Need(NeedKind.INGEST, relays, records, now_ms, now_ms + READ_UP_MS, now_ms)
