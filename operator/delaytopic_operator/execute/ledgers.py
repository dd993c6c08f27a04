"""The accounts of the whole fleet between reconciliations: memories of scaling, and turns to start relays anew."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from threading import Lock
from typing import Final

import structlog

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.rollouts import NoTurn, Rollouts
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.state import ScalingMemory

CALLED_MS: Final = 30_000
"""The time for which a turn is kept for a DelayTopic that was called."""

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


class RolloutLimiter:
    """Thread-safe turns of DelayTopics whose relays start anew for another reason than a change of their own.

    Turns end where DelayTopics do not become ready with an image, one after the other: what does them no good does
    nobody any. They go on once one of them has become ready, which may try again at any time, and with another image.

    Where all turns are taken, DelayTopics wait in line. A turn that is free calls the first one, so that nobody has to
    ask again and again.
    """

    def __init__(self, least: int) -> None:
        """Let so many DelayTopics have a turn at once, or a tenth of all if that is more."""
        self._lock = Lock()
        self._least = least
        self._given: dict[Key, int | None] = {}
        """Turns that no Deployment shows yet. One that was called has to take its turn until then (epoch ms); None: a
        reconciliation is taking it."""
        self._waiting: dict[Key, None] = {}
        """The line: whoever came first is the first."""
        self._told: set[str] = set()

    def reserve(self, key: Key, image: str, rollouts: Rollouts, now_ms: int) -> NoTurn | None:
        """Reserve a turn with an image until it is given back: what was written is among those that roll by then.

        Where all turns are taken, it waits in line from now on.
        """
        failed = rollouts.stopped_by(image, key)
        with self._lock:
            self._tell(rollouts)
            if failed:
                self._forget(key)
                return NoTurn(image, failed)
            if self._free(rollouts, now_ms, key) <= 0 and key not in self._given:
                self._waiting.setdefault(key)
                return NoTurn(image)
            self._waiting.pop(key, None)
            self._given[key] = None
        return None

    def still_waits(self, key: Key, refused: NoTurn, rollouts: Rollouts) -> bool:
        """Tell if a turn that was refused would be refused now, for the same reason."""
        failed = rollouts.stopped_by(refused.image, key)
        if failed or refused.failed:
            return bool(failed) and bool(refused.failed)
        with self._lock:
            return key in self._waiting

    def call(self, rollouts: Rollouts, now_ms: int) -> Collection[Key]:
        """Give the turns that are free to those that have waited longest, and return these: look at them now.

        One that does not take its turn in time, as its Kafka hangs say, loses it to others.
        """
        with self._lock:
            if not self._waiting:
                return ()
            called = list(islice(self._waiting, max(0, self._free(rollouts, now_ms))))
            for key in called:
                del self._waiting[key]
                self._given[key] = now_ms + CALLED_MS
        return called

    def release(self, key: Key) -> None:
        """Give a turn back, whether its Deployment was written or not."""
        with self._lock:
            self._given.pop(key, None)

    def forget(self, key: Key) -> None:
        """Drop one that needs no turn from the line, or take back the turn that it was called for."""
        with self._lock:
            self._forget(key)

    def _free(self, rollouts: Rollouts, now_ms: int, key: Key | None = None) -> int:
        """Count the turns that nobody but this one has, after those that were not taken in time."""
        for late in [each for each, until_ms in self._given.items() if until_ms is not None and until_ms < now_ms]:
            del self._given[late]
        return rollouts.most_at_once(self._least) - len((rollouts.rolling | self._given.keys()) - {key})

    def _forget(self, key: Key) -> None:
        self._given.pop(key, None)
        self._waiting.pop(key, None)

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
