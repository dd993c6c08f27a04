"""Turns of DelayTopics whose relays start anew for no change of their own: how the last ones ended. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from delaytopic_operator.model.reconciliation import Key

MOST_FAILED: Final = 3
"""After so many that did not become ready, one after the other, no further DelayTopic has a turn with their image."""


class Ended(NamedTuple):
    """A turn that is over."""

    at_ms: int
    is_ready: bool
    key: Key
    image: str


class NoTurn(NamedTuple):
    """A turn that was refused."""

    image: str
    """The image that relays would start anew with."""
    failed: frozenset[Key] = frozenset()
    """The last ones that had one and did not become ready, where they stop all others; empty: all turns are taken."""


class Rollouts(NamedTuple):
    """The DelayTopics whose relays start anew now, and those of the last turns that did not become ready."""

    rolling: frozenset[Key] = frozenset()
    stopped: Mapping[str, frozenset[Key]] = {}
    """The DelayTopics because of which an image has no further turns, by the image."""
    fleet: int = 0
    """The number of DelayTopics that have relays."""

    def most_at_once(self, least: int) -> int:
        """Return how many may have a turn at once: a tenth of all, so that ten turns do whatever there is, and never
        fewer than `least`.
        """
        return max(least, -(-self.fleet // 10))

    def stopped_by(self, image: str, key: Key) -> frozenset[Key]:
        """Return the DelayTopics for which this one has no turn with an image; those may try again at any time."""
        failed = self.stopped.get(image, frozenset())
        return frozenset() if key in failed else failed


def stopped(turns: Collection[Ended]) -> dict[str, frozenset[Key]]:
    """Return the DelayTopics whose turns were an image's last and failed, where they are enough to stop all others."""
    if sum(not turn.is_ready for turn in turns) < MOST_FAILED:
        return {}
    failed: dict[str, list[Key]] = defaultdict(list)
    for turn in sorted(turns):
        if turn.is_ready:
            failed[turn.image].clear()
        else:
            failed[turn.image].append(turn.key)
    return {image: frozenset(keys) for image, keys in failed.items() if len(keys) >= MOST_FAILED}
