"""The clock that tests of an application move: `delaytopic local --clock manual` has one, and no cluster."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from delaytopic_gateway.errors import ConflictError

LONGEST_MS: Final = 100 * 366 * 86_400_000
"""The time by which a clock may be ahead at most."""


class Reading(NamedTuple):
    """The time that a clock shows, and by how much it is ahead of the machine's."""

    now_ms: int
    shift_ms: int


class MovableClock(Protocol):
    """A clock that is ahead of the machine's by what it was moved."""

    def read(self) -> Reading:
        """Return what it shows."""
        ...

    def advance(self, duration_ms: int) -> Reading:
        """Move it on, and return what it shows once all relays have committed from where on records count from there.

        Raises `ConflictError` for more than it may be ahead, or where relays cannot follow, and
        `RelayUnreachableError`.
        """
        ...


def demand_clock(clock: MovableClock | None) -> MovableClock:
    """Return the clock. Raises `ConflictError` where it is the machine's."""
    if clock is None:
        raise ConflictError(
            "the clock here is the machine's, which nobody moves: start `delaytopic local` with --clock manual, which "
            "is for tests on one machine"
        )
    return clock
