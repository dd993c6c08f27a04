"""The words that all tables of the audit share: kinds of rows, their minutes, and buckets of lateness.

Buckets are logarithmic: counts stay exact, add up, and give every percentile within 2 %.
"""

from __future__ import annotations

import math
from enum import IntEnum, StrEnum
from typing import Final

MINUTE_MS: Final = 60_000
BUCKET_BASE: Final = 1.02
LOG_BASE: Final = math.log(BUCKET_BASE)
"""Bucket 0 holds records that were not late; each further one is 2 % wider: see `verdicts.bucket_of`."""


FOLLOWS: Final = "occurrence"
"""The reason of an ask that a relay has written for a record that recurs."""


class Kind(IntEnum):
    """The kind of a row. Asks are on the source topic, outcomes on the others, but for `PUT_OFF` and `RESOLVED`."""

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
    POSTPONE = 6
    """Puts an ask off by its id."""
    PUT_OFF = 7
    """An outcome: the ask was written into the source again, with its new time. There it is an ask of its own."""
    IGNORED = 8
    """A record on the source topic that asks for nothing, as a relay wrote it beside a delivery; or that nobody here
    can read."""
    UNREAD = 9
    """No record: a range that Kafka did not let be read. `reason` says why."""
    RULE = 10
    """An ask: write the first occurrence of this record into the source, where it is an ask of its own."""
    RESOLVED = 11
    """An outcome: the occurrence that follows was written into the source."""
    TOLD = 12
    """The words of relays on the topic of outcomes about the end of a source record; `reason` has their word for it."""


class Outcome(StrEnum):
    """The fate of one ask."""

    DELIVERED = "delivered"
    MISDIRECTED = "misdirected"
    DEAD_LETTERED = "dead-lettered"
    CANCELLED = "cancelled"
    REPLACED = "replaced"
    LOST = "lost"
    UNKNOWN = "unknown"
    """The verdict of an outcome without a source record: nothing was asked."""


class Finding(StrEnum):
    """A remark on a single record; all before `CANCELLED` are faults, the others only explain why it did not arrive, or
    what did not follow it.
    """

    LOST = "lost"
    DUPLICATED = "duplicated"
    EARLY = "early"
    LATE = "late"
    MISDIRECTED = "misdirected"
    UNWANTED = "unwanted"
    """Delivered although it was withdrawn in good time, or could not be scheduled."""
    UNKNOWN = "unknown"
    UNTOLD = "untold"
    """Ended, and the topic of outcomes does not say so."""
    TOLD_TWICE = "told-twice"
    """Has more than one outcome."""
    UNTRUE = "untrue"
    """Has an outcome that the other topics contradict."""
    CHAINS_BROKEN = "chains-broken"
    """Delivered, and the occurrence that its rule has next was not written."""
    SLOTS_SKIPPED = "slots-skipped"
    """Followed by an occurrence of a slot that others lie before, which were to be delivered."""
    SLOTS_REPEATED = "slots-repeated"
    """Delivered for a slot that was delivered before, or that its rule does not have."""
    CANCELLED = "cancelled"
    REPLACED = "replaced"
    DEAD_LETTERED = "dead-lettered"
    SLOTS_MISSED = "slots-missed"
    """Followed by an occurrence of a slot that others lie before, which its policy for missed ones leaves out."""


FAULTS: Final = tuple(Finding)[: list(Finding).index(Finding.CANCELLED)]


def minute_of(moment_ms: int) -> int:
    """Return the minute, counted from 1970, that a moment falls in."""
    return moment_ms // MINUTE_MS


def bucket_value_ms(bucket: int) -> float:
    """Return the middle of a bucket, as a ratio: within 1 % of everything in it."""
    return 0.0 if bucket <= 0 else BUCKET_BASE ** (bucket - 0.5)
