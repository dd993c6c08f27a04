"""Outcomes of schedules, and the answers that cancels get from them. Pure.

An outcome names the record that ended a schedule, or the cancel that met nothing. So a cancel knows its own answer by
its place in the source; no other cancel of the same id is taken for it.
"""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

DELIVERED: Final = "Delivered"
CANCELLED: Final = "Cancelled"
REPLACED: Final = "Replaced"
DEAD_LETTERED: Final = "DeadLettered"
NOT_PENDING: Final = "NotPending"


class Place(NamedTuple):
    """The place of a record in Kafka."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one schedule, or the answer to a cancel that met nothing. Times are epoch milliseconds."""

    ending: str
    """Delivered, Cancelled, Replaced, DeadLettered or NotPending."""
    source: Place
    """The record of the schedule in the source; with NotPending, the record of the cancel."""
    ended_ms: int
    """The time at which the relay ended it."""
    due_ms: int | None = None
    """The due time of the schedule."""
    id: bytes | None = None
    """The id, if there is one."""
    reason: str | None = None
    """The reason of a dead letter."""
    target: Place | None = None
    """The delivered record, or the dead letter."""
    ended_by: Place | None = None
    """The record in the source that cancelled or replaced it."""
    requested_by: str | None = None
    """The words of the caller that asked for it, from the header `deliver-requested-by`."""

    @classmethod
    def parse(cls, value: bytes | None) -> Outcome | None:
        """Return the outcome that a record's value holds; None for a value that no relay wrote."""
        try:
            document = json.loads(value or b"")
            return cls(
                str(document["outcome"]),
                _place(document["source"]),
                int(document["endedMs"]),
                document.get("dueMs"),
                _id(document),
                document.get("reason"),
                _place_if_any(document.get("target")),
                _place_if_any(document.get("endedBy")),
                document.get("requestedBy"),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The cancel won: the schedule ended by it, and is not delivered."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class TooLate:
    """The schedule had ended before the cancel was read: it was delivered, dead-lettered or replaced first."""

    outcome: Outcome | None
    """The end of the schedule. None if it was replaced, and the outcome is no longer there to be read."""
    cancelled: Outcome | None = None
    """The end of the record that replaced it, if the cancel met that one in its place."""


@dataclass(frozen=True, slots=True)
class NotPending:
    """An outcome of an id of which nothing was pending, and nothing is known to have been delivered."""

    outcome: Outcome
    """The relay's word on the cancel."""
    before: Outcome | None = None
    """The last end of the id before: it was cancelled earlier."""
    whole: bool = True
    """False if the topic of outcomes has older records that were not looked at: the id may have ended there."""


Answer = Cancelled | TooLate | NotPending


class CancelRefusedError(ValueError):
    """The relay made a dead letter of the cancel; the text has its reason. The same cancel would be refused again."""


class CancelQuestion:
    """A cancel that waits for its answer. It is told of the outcomes of its id, in any order, and again if need be."""

    def __init__(self, start: int) -> None:
        """`start` is the end of the outcomes before the cancel was sent."""
        self.start = start
        self.place: Place | None = None
        """The place of the cancel in the source, once it is known."""
        self.verdict_at: int | None = None
        """The offset of the outcome that names the cancel, once it was read."""
        self._own: Place | None = None
        self._seen: dict[int, Outcome] = {}

    def locate(self, place: Place, own: Place | None) -> None:
        """Note the place of the cancel, and of the schedule that is meant; None means any schedule of the id."""
        self._own, self.place = own, place
        # A copy: the reader takes outcomes while the producer's thread tells the place.
        seen = [*self._seen.items()]
        self.verdict_at = next((offset for offset, outcome in seen if self._names(outcome)), self.verdict_at)

    def take(self, offset: int, outcome: Outcome) -> None:
        """Note an outcome of the id."""
        self._seen[offset] = outcome
        if self._names(outcome):
            self.verdict_at = offset

    def answer(self, *, looked_back: bool, whole: bool) -> Answer | None:
        """Return the answer, or None while more has to be read.

        `looked_back` says that the outcomes before `start` were read, too, as far as that goes; `whole` that none was
        left out. Raises CancelRefusedError.
        """
        at = self.verdict_at
        if at is None:
            return None
        verdict = self._seen[at]
        if verdict.ending == DEAD_LETTERED and verdict.source == self.place:
            raise CancelRefusedError(f"the relay refused the cancel at {self.place}: {verdict.reason}")
        if verdict.ending != NOT_PENDING:
            if self._own is None or verdict.source == self._own:
                return Cancelled(verdict)
            first = self._end_before(at)
            return TooLate(first, verdict) if first is not None or looked_back else None
        first = self._end_before(at)
        if first is None and not looked_back:
            return None
        if first is not None and (first.ending in (DELIVERED, DEAD_LETTERED) or self._is_of_own_replaced(first)):
            return TooLate(first)
        return NotPending(verdict, first, whole or first is not None)

    def _names(self, outcome: Outcome) -> bool:
        return self.place is not None and self.place in (outcome.ended_by, outcome.source)

    def _is_of_own_replaced(self, outcome: Outcome) -> bool:
        return self._own is not None and outcome.ending == REPLACED

    def _end_before(self, offset: int) -> Outcome | None:
        """Return the end of the schedule that is meant, before an offset; the last one of the id if any is."""
        ends = [
            (at, outcome)
            for at, outcome in self._seen.items()
            if at < offset and outcome.ending != NOT_PENDING and self._own in (None, outcome.source)
        ]
        return max(ends)[1] if ends else None


def _id(document: dict[str, Any]) -> bytes | None:
    if document.get("idBase64") is not None:
        return b64decode(document["idBase64"])
    text = document.get("id")
    return None if text is None else text.encode()


def _place(document: dict[str, Any]) -> Place:
    return Place(str(document["topic"]), int(document["partition"]), int(document["offset"]))


def _place_if_any(document: dict[str, Any] | None) -> Place | None:
    return None if document is None else _place(document)
