"""Outcomes of schedules as a gateway reads them from their topic. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from delaytopic_api.relay import Outcome, RecordPlace


class Search(NamedTuple):
    """A search for the end of one schedule, from an offset on."""

    outcome: Outcome | None
    """None while it has not ended, or not as far as was read."""
    next: int
    """The offset up to which it is not there."""


@dataclass(frozen=True, slots=True)
class Endings:
    """The outcomes of an id among the newest of a topic."""

    outcomes: Sequence[Outcome]
    """The last one first."""
    looked_at: int
    """Offsets, those of other ids among them."""
    is_whole: bool
    """True if nothing older is left."""


class OutcomeTopics(Protocol):
    """The topics of outcomes of a Kafka."""

    def ends(self, topic: str) -> Mapping[int, int]:
        """Return the end of each partition as readers of committed records see it now. Raises `ProgramError`s."""
        ...

    def first(self, topic: str, schedule: RecordPlace, start: int, wait_s: float) -> Search:
        """Search the outcome of a schedule from an offset on, and wait for it so long. Raises `ProgramError`s."""
        ...

    def newest(self, topic: str, name: bytes, partition: int | None) -> Endings:
        """Return the outcomes of an id among the newest, of one partition if it is given. Raises `ProgramError`s."""
        ...


def parsed(value: bytes | None) -> Outcome | None:
    """Return the outcome that a record holds; None for what no relay wrote."""
    try:
        return Outcome.model_validate_json(value or b"")
    except ValueError:
        return None


def outcome_of(value: bytes | None, schedule: RecordPlace) -> Outcome | None:
    """Return the outcome that a record holds if it is that of a schedule."""
    # Most are of others: to look for the number takes less than to read the document.
    if value is None or b"%d" % schedule.offset not in value:
        return None
    outcome = parsed(value)
    return outcome if outcome is not None and outcome.source == schedule else None
