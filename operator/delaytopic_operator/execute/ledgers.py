"""The accounts of the whole fleet between reconciliations: steps of scaling, and turns to start relays anew."""

from __future__ import annotations

from threading import Lock
from typing import Final

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.scaling.decision import Budget, Decision
from delaytopic_operator.scaling.state import ScalingMemory

ROLLOUT_BEGINS_MS: Final = 60_000
"""After so long a Deployment that was written is seen to start its pods anew, or never will."""


class ScalingLedger:
    """Thread-safe account of executed steps; a process that ends loses it, and only learns again."""

    def __init__(self, steps_a_minute: int) -> None:
        """Begin with no step taken."""
        self._lock = Lock()
        self._budget = Budget(steps_a_minute=steps_a_minute)
        self._memories: dict[Key, ScalingMemory] = {}

    def memory(self, key: Key) -> ScalingMemory | None:
        """Return what scaling remembers in this process; None: nothing yet."""
        with self._lock:
            return self._memories.get(key)

    def reserve(self, key: Key, step: Decision) -> int | None:
        """Reserve a step before it is executed; return when to ask again if the fleet has none left."""
        with self._lock:
            answer = self._budget.ask(key, step.prevents_ms, step.decided_at_ms)
            self._budget = answer.budget
        return answer.ask_again_ms

    def settle(self, key: Key, decided: Decision, *, reserved: bool, executed: bool) -> None:
        """Remember a step that was executed; give back one that was reserved and was not."""
        with self._lock:
            self._memories[key] = decided.memory if executed else decided.held
            if reserved and not executed:
                self._budget = self._budget.returned(decided.decided_at_ms)

    def forget(self, key: Key) -> None:
        """Drop the memory of a DelayTopic that is gone."""
        with self._lock:
            self._memories.pop(key, None)


class RolloutLimiter:
    """Thread-safe turns of DelayTopics whose relays start anew for another reason than a change of their own."""

    def __init__(self, most: int) -> None:
        """Let `most` DelayTopics have a turn at once."""
        self._lock = Lock()
        self._most = most
        self._reserved_ms: dict[Key, int] = {}

    def reserve(self, key: Key, rolling: frozenset[Key], now_ms: int) -> frozenset[Key] | None:
        """Reserve a turn until the Deployment is among `rolling`; return who has all the turns if none is left."""
        with self._lock:
            reserved = {one: at_ms for one, at_ms in self._reserved_ms.items() if now_ms - at_ms < ROLLOUT_BEGINS_MS}
            self._reserved_ms = reserved
            others = (rolling | reserved.keys()) - {key}
            if len(others) >= self._most:
                return others
            reserved[key] = now_ms
        return None

    def release(self, key: Key) -> None:
        """Give a turn back whose Deployment was not written."""
        with self._lock:
            self._reserved_ms.pop(key, None)
