"""What stands still on purpose: `spec.suspend`, constant for the life of a relay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from delaytopic_api.choices import Suspend
from delaytopic_relay.schedule import Command, Key, Reject, Schedule


class Suspension(NamedTuple):
    """Whether nothing is taken in, and whether nothing is delivered."""

    ingest: bool = False
    delivery: bool = False

    @classmethod
    def of(cls, suspend: Suspend) -> Suspension:
        """What the field of the DelayTopic means."""
        both = suspend is Suspend.ALL
        return cls(both or suspend is Suspend.INGEST, both or suspend is Suspend.DELIVERY)


def until_departure(commands: Sequence[Command], cursor: Key, position: int) -> Sequence[Command]:
    """The commands before the first that would have to leave at once.

    While delivery is suspended such a record stays on the source: to take it in would mean to deliver it.
    `position` is the committed one: what is below was taken in before.
    """
    for place, command in enumerate(commands):
        if command.offset < position:
            continue
        leaves = type(command) is Reject or (type(command) is Schedule and (command.due_ms, command.offset) <= cursor)
        if leaves:
            return commands[:place]
    return commands
