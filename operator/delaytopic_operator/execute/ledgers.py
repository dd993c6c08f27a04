"""The accounts of the whole fleet between reconciliations: memories of scaling, and turns to start relays anew."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import structlog

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.rollouts import Rollouts
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.state import ScalingMemory

log = structlog.get_logger()


class ScalingLedger:
    """Thread-safe account of executed steps; a process that ends loses it, and only learns again."""

    def __init__(self) -> None:
        """Begin with no step taken."""
        self._lock = Lock()
        self._memories: dict[Key, ScalingMemory] = {}

    def memory(self, key: Key) -> ScalingMemory | None:
        """Return what scaling remembers in this process; None: nothing yet."""
        with self._lock:
            return self._memories.get(key)

    def settle(self, key: Key, decided: Decision, *, executed: bool) -> None:
        """Remember a decision, and its step if that was executed."""
        with self._lock:
            self._memories[key] = decided.memory if executed else decided.held

    def forget(self, key: Key) -> None:
        """Drop the memory of a DelayTopic that is gone."""
        with self._lock:
            self._memories.pop(key, None)


class NoTurn(NamedTuple):
    """A turn that was refused."""

    rolling: frozenset[Key]
    """The DelayTopics that have a turn now."""
    failed: frozenset[Key] = frozenset()
    """The last ones that had one and did not become ready, where they stop all others; empty: all turns are taken."""


class RolloutLimiter:
    """Thread-safe turns of DelayTopics whose relays start anew for another reason than a change of their own.

    Turns end where DelayTopics do not become ready with an image, one after the other: what does them no good does
    nobody any. They go on once one of them has become ready, which may try again at any time, and with another image.
    """

    def __init__(self, least: int) -> None:
        """Let so many DelayTopics have a turn at once, or a tenth of all if that is more."""
        self._lock = Lock()
        self._least = least
        self._reserved: set[Key] = set()
        self._told: set[str] = set()

    def reserve(self, key: Key, image: str, rollouts: Rollouts) -> NoTurn | None:
        """Reserve a turn with an image until it is given back: what was written is among those that roll by then."""
        failed = rollouts.stopped_by(image, key)
        with self._lock:
            self._tell(rollouts)
            others = (rollouts.rolling | self._reserved) - {key}
            if failed or len(others) >= rollouts.most_at_once(self._least):
                return NoTurn(others, failed)
            self._reserved.add(key)
        return None

    def release(self, key: Key) -> None:
        """Give a turn back, whether its Deployment was written or not."""
        with self._lock:
            self._reserved.discard(key)

    def _tell(self, rollouts: Rollouts) -> None:
        """Log what no status may say: whose relays did not become ready."""
        for image in rollouts.stopped.keys() - self._told:
            names = sorted(map(str, rollouts.stopped[image]))
            log.warning(
                "no relays are started anew: the last ones did not become ready", image=image, delaytopics=names
            )
        for image in self._told - rollouts.stopped.keys():
            log.info("relays are started anew again: one has become ready, or none has the image", image=image)
        self._told = set(rollouts.stopped)
