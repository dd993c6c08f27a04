"""Where a new owner starts: from what is committed, what the shelf has, and what the source still holds."""

from __future__ import annotations

import re
from typing import NamedTuple

from delaytopic_relay.backlog.store import Position
from delaytopic_relay.core.progress import Progress, fresh_progress
from delaytopic_relay.engine.ports import Bounds

_INSTANCE = re.compile(r"[^/]{1,255}-[0-9]{1,10}-[0-9a-f]{8}")
"""Host, process and a random part, as `Service` names a relay."""


def transactional_id(group_id: str, instance: str) -> str:
    """Name the producer of one relay, beginning with its group."""
    return f"{group_id}/{instance}"


def is_of_group(owner: str, group_id: str) -> bool:
    """Tell whether a `transactional.id` has the exact form of a relay of this group.

    An instance has no slash, so that no id of another group has this form, whatever the groups are called.
    """
    return owner.startswith(f"{group_id}/") and _INSTANCE.fullmatch(owner, len(group_id) + 1) is not None


class Plan(NamedTuple):
    """`progress` is to be committed first, `claim` put next, then reading begins at `progress.offset`.

    `gone` counts source offsets that should have been read again and are no more on the source;
    `shortened` says that the source ends before the committed position (truncated or re-created), `moves` that the
    backlog is on another backend, from which it moves here by being read again.
    """

    progress: Progress
    claim: Position
    gone: int
    shortened: bool
    moves: bool = False


def plan_recovery(
    committed: Progress | None,
    position: Position | None,
    bounds: Bounds,
    owner: str,
    token: str,
    *,
    by_hand: bool = False,
) -> Plan:
    """Start at the lower of the committed offset and the shelf's; never deliver again what is done.

    The lower offset is committed before the shelf is claimed: otherwise a crash in between would let a
    successor believe that what only this memory held is on the shelf. An offset that was set `by_hand`
    (without our metadata) is where somebody wants reading to start, whatever the shelf has.
    """
    was = committed or fresh_progress(bounds.low)
    filled = position.offset if position is not None else 0
    wished = was.offset if by_hand else min(was.offset, filled)
    start = max(wished, bounds.low)
    taken = max(was.position, start)
    shortened = taken > bounds.end
    if shortened:
        start, taken = min(start, bounds.end), bounds.end
    counter = position.counter if position is not None else 0
    claim = Position(token, counter + 1, start)
    needed = was.offset if position is None else wished
    gone = max(0, start - needed) if committed is not None and not shortened else 0
    # Of a topic that was made anew, other records have these offsets.
    terms = was.terms if not shortened else ()
    return Plan(Progress(start, taken, was.cursor, owner, terms=terms), claim, gone, shortened)


def plan_fixed(committed: Progress | None, bounds: Bounds, owner: str) -> Progress:
    """The same without a shelf: start at the committed offset."""
    was = committed or fresh_progress(bounds.low)
    start = min(max(was.offset, bounds.low), bounds.end)
    return Progress(start, min(max(was.position, start), bounds.end), was.cursor, owner)
