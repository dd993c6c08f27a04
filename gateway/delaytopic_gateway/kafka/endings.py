"""Outcomes of schedules as a gateway reads them from their topic. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, NamedTuple, Protocol

from delaytopic_api.relay import Outcome, RecordPlace
from delaytopic_gateway.access.bounds.pages import PAGE_BYTES

LONGEST_BYTES: Final = 8 << 10
"""The longest outcome that is looked into: a relay writes half of that at the most."""


class Search(NamedTuple):
    """A search for the end of one schedule, from an offset on."""

    outcome: Outcome | None
    """None while it has not ended, or not as far as was read."""
    next: int
    """The offset up to which it is not there."""
    expired: int = 0
    """The number of offsets that were to be read and are gone, by the topic's retention or as it was made anew."""


@dataclass(frozen=True, slots=True)
class Endings:
    """The outcomes of an id among the newest of a topic."""

    outcomes: Sequence[Outcome]
    """The last one first."""
    looked_at: int
    """Offsets, those of other ids among them."""
    is_whole: bool
    """True if nothing older is left."""


class Newest:
    """The newest outcomes of an id, as many as have room in an answer."""

    def __init__(self, most_bytes: int = PAGE_BYTES) -> None:
        """`most_bytes` bounds the records that they are read from."""
        self._most_bytes = most_bytes
        self._found: list[tuple[int, tuple[int, int], int, Outcome]] = []
        self._bytes = 0
        self.is_whole = True
        """False once one had no room."""

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, place: tuple[int, int], outcome: Outcome, size: int) -> None:
        """Keep the outcome of a record with this partition, offset and size; forget the oldest without room."""
        heappush(self._found, (outcome.ended_ms, place, size, outcome))
        self._bytes += size
        while self._bytes > self._most_bytes:
            self._bytes -= heappop(self._found)[2]
            self.is_whole = False

    def outcomes(self) -> list[Outcome]:
        """Return them, the last one first.

        Those of one partition have the order of their offsets; an id waits in several by mistake alone.
        """
        return [outcome for *_, outcome in sorted(self._found, key=lambda found: found[:2], reverse=True)]


class OutcomeTopics(Protocol):
    """The topics of outcomes of a Kafka."""

    def ends(self, topic: str) -> Mapping[int, int]:
        """Return the end of each partition as readers of committed records see it now. Raises `ProgramError`s."""
        ...

    def first(self, topic: str, schedule: RecordPlace, start: int, wait_s: float) -> Search:
        """Search the outcome of a schedule from an offset on, and wait for it so long. Raises `ProgramError`s."""
        ...

    def newest(self, topic: str, source: str, name: bytes, partition: int | None) -> Endings:
        """Return the outcomes of an id in a source among the newest, of one partition if it is given.

        Raises `ProgramError`s.
        """
        ...


def parsed(value: bytes | None) -> Outcome | None:
    """Return the outcome that a record holds; None for what no relay wrote."""
    if value is None or len(value) > LONGEST_BYTES:
        return None
    try:
        return Outcome.model_validate_json(value)
    except ValueError:
        return None


def outcome_of(value: bytes | None, schedule: RecordPlace) -> Outcome | None:
    """Return the outcome that a record holds if it is that of a schedule."""
    # Most are of others: to look for the number takes less than to read the document.
    if value is None or b"%d" % schedule.offset not in value:
        return None
    outcome = parsed(value)
    return outcome if outcome is not None and outcome.source == schedule else None
