"""What leaves a shard in one step."""

from __future__ import annotations

from typing import NamedTuple

from delaytopic_relay.core.commands import Reject, Schedule


class Departures(NamedTuple):
    """Schedules to deliver and rejects to dead-letter, in order, and how often an id took effect."""

    schedules: list[Schedule]
    rejects: list[Reject]
    superseded: int = 0
    cancelled: int = 0
    too_late: int = 0


NOTHING = Departures([], [])
