"""Parts that `spec.suspend` pauses, for the whole life of a relay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from delaytopic_api.values import Suspend
from delaytopic_relay.core.commands import Command, DueKey, Schedule

NOTHING_DUE_MS = -1
"""A time at which nothing is due."""


class Suspension(NamedTuple):
    """The parts of a relay that `spec.suspend` pauses."""

    ingest: bool = False
    delivery: bool = False

    @classmethod
    def of(cls, suspend: Suspend) -> Suspension:
        """Read the field of the DelayTopic."""
        both = suspend is Suspend.ALL
        return cls(both or suspend is Suspend.INGEST, both or suspend is Suspend.DELIVERY)


def until_departure(
    commands: Sequence[Command], cursor: DueKey, position: int, now_ms: int = NOTHING_DUE_MS
) -> Sequence[Command]:
    """The commands before the first that would have to leave at once, though it may not.

    A schedule at or below the cursor leaves when it is taken in. The cursor may be ahead of the clock: another relay's
    clock was ahead, or this one was set back. While delivery is suspended nothing is due at all: then `now_ms` is
    `NOTHING_DUE_MS`. `position` is the committed one: what is below was taken in before.
    """
    for place, command in enumerate(commands):
        if type(command) is not Schedule:
            continue
        if command.due_ms <= now_ms or command.offset < position:
            continue
        if (command.due_ms, command.offset) <= cursor:
            return commands[:place]
    return commands
