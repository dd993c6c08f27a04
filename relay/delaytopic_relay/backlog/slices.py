"""The slices of the backlog by due time: narrow when near, wide when far.

Narrow slices far away would hold a record each; wide ones near would have to be loaded whole. So a
schedule first waits in a slice of an hour or a minute, and cascades into narrower ones as its time
comes close: at most two moves, whatever the delay.
"""

from __future__ import annotations

from typing import NamedTuple

from delaytopic_relay.backlog.store import Slice


class Level(NamedTuple):
    """A slice width, used from `from_ms` of remaining time on; a slice cascades at `until_ms` before its start."""

    width_ms: int
    from_ms: int
    cascade_ms: int


NARROW_MS = 1_000
LEVELS = (
    Level(3_600_000, 86_400_000, 5_400_000),
    Level(60_000, 1_800_000, 120_000),
    Level(NARROW_MS, 0, 0),
)
CASCADE_MS = {level.width_ms: level.cascade_ms for level in LEVELS}
EARLIEST_MS = max(CASCADE_MS.values())
"""No slice has to be loaded longer than this before it begins."""


def width_for(remaining_ms: int) -> int:
    """The slice width for a schedule that is due in `remaining_ms`."""
    for level in LEVELS:
        if remaining_ms >= level.from_ms:
            return level.width_ms
    return NARROW_MS


def slice_of(due_ms: int, now_ms: int) -> Slice:
    """The slice in which a schedule due at `due_ms` waits, as of now."""
    width_ms = width_for(due_ms - now_ms)
    return Slice(due_ms - due_ms % width_ms, width_ms)


def cascades_at_ms(slice_: Slice) -> int:
    """Return when a wide slice is to be split, relative to the horizon's end; its own start for a narrow one."""
    return slice_.start_ms - CASCADE_MS.get(slice_.width_ms, slice_.width_ms)


def is_narrow(slice_: Slice) -> bool:
    """Return whether the slice is loaded whole instead of split."""
    return slice_.width_ms <= NARROW_MS
