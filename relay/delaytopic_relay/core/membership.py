"""The decisions of a group's member about what it hears from the group and from the source. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import IntEnum, StrEnum

HAND_OVER_MS = 5_000
"""A partition that is handed over may be nobody's for so long: its owner commits first, and joins again then."""


class Answer(StrEnum):
    """An answer that a member gets instead of records."""

    PASSING = "passing"
    """The client tries again by itself."""
    OFFSET_GONE = "offset gone"
    """The source no longer has what is to be read next."""
    UNKNOWN_MEMBER = "unknown member"
    """Its session has ended, or somebody took it out of the group."""
    FENCED = "fenced"
    """Its name is another member's, and its client has failed for good."""


class Step(IntEnum):
    """The next step of a member; each contains those before it."""

    GO_ON = 0
    RECOVER = 1
    """Read what is committed again, as the same member."""
    JOIN_AGAIN = 2
    """Drop all partitions, which are somebody else's by now, and join under the same name: the client does so by
    itself."""
    JOIN_WITHOUT_NAME = 3
    """Drop all partitions, and join as another member, without a name."""


_STEPS = {
    Answer.PASSING: Step.GO_ON,
    Answer.OFFSET_GONE: Step.RECOVER,
    Answer.UNKNOWN_MEMBER: Step.JOIN_AGAIN,
    # Brokers fence a name when another process joins under it, and when they have gone while its own one was joining.
    # With its name again, it would fence the other one in turn, for ever.
    Answer.FENCED: Step.JOIN_WITHOUT_NAME,
}


def next_step(heard: Iterable[Answer]) -> Step:
    """Return the step that answers all that was heard at once."""
    return max((_STEPS[each] for each in heard), default=Step.GO_ON)


class Unowned:
    """A watch over partitions that nobody has although the group is at rest.

    A member that died while it let partitions go, and starts again under its name, is given those that it was to keep.
    There is no rebalance, so that nobody is ever given the others.
    """

    def __init__(self) -> None:
        self._since_ms: int | None = None

    def lasts(self, unowned: Collection[int], now_ms: int) -> bool:
        """Return whether there have been such partitions for too long, and a member has to leave and join again.

        What it finds then has as long again.
        """
        if not unowned:
            self._since_ms = None
            return False
        if self._since_ms is None:
            self._since_ms = now_ms
        lasts = now_ms - self._since_ms >= HAND_OVER_MS
        if lasts:
            self._since_ms = None
        return lasts
