"""The words that all tables of the audit share: what a row is, and in which minute it is counted."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

MINUTE_MS: Final = 60_000


class Kind(IntEnum):
    """What a row speaks of. Asks are on the source topic, outcomes on the others."""

    SCHEDULE = 0
    """An ask: deliver this record."""
    REJECT = 1
    """An ask that cannot be met: the record belongs to the dead-letter topic."""
    CANCEL = 2
    """Withdraws an ask by its id."""
    DELIVERED = 3
    """An outcome: a record on a target topic, with its receipt."""
    DEAD_LETTER = 4
    """An outcome: a record on the dead-letter topic."""
    FOREIGN = 5
    """A record on a target or dead-letter topic that no relay of this source wrote."""


class Outcome(StrEnum):
    """What became of one ask."""

    DELIVERED = "delivered"
    MISDIRECTED = "misdirected"
    DEAD_LETTERED = "dead-lettered"
    CANCELLED = "cancelled"
    REPLACED = "replaced"
    LOST = "lost"
    UNKNOWN = "unknown"
    """Nothing was asked: an outcome without a source record."""


class Finding(StrEnum):
    """What is said of a single record; the first seven are faults, the others only explain why it did not arrive."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    EARLY = "early"
    LATE = "late"
    MISDIRECTED = "misdirected"
    UNWANTED = "unwanted"
    """Delivered although it was withdrawn in good time, or could not be scheduled."""
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    REPLACED = "replaced"
    DEAD_LETTERED = "dead-lettered"


FAULTS: Final = tuple(Finding)[:7]


def minute_of(moment_ms: int) -> int:
    """The minute, counted from 1970, that a moment falls in."""
    return moment_ms // MINUTE_MS
