"""The jobs under way here that work, and those that wait for their turn. Pure."""

from __future__ import annotations

from itertools import count
from typing import Final, NamedTuple

MOST_AT_A_TIME: Final = 4
"""Jobs that work; others wait for their turn."""
OF_ONE_NAMESPACE: Final = 2
SLICE_S: Final = 10.0
"""The time for which a job works while one of another namespace waits."""


class _Waiting(NamedTuple):
    namespace: str
    from_s: float


class _Working(NamedTuple):
    namespace: str
    since_s: float


class Turns:
    """Gives turns to namespaces, one after the other, and to a namespace's jobs in the order in which they came."""

    def __init__(self) -> None:
        """Begins without jobs."""
        self._waiting: dict[str, _Waiting] = {}
        self._working: dict[str, _Working] = {}
        self._last: dict[str, int] = {}
        """The number of the turn that each namespace had last."""
        self._numbers = count(1)

    def wait(self, key: str, namespace: str, from_s: float) -> None:
        """Let a job wait; it has no turn before `from_s`."""
        self._working.pop(key, None)
        self._waiting[key] = _Waiting(namespace, from_s)

    def leave(self, key: str) -> None:
        """Forget a job."""
        self._working.pop(key, None)
        self._waiting.pop(key, None)

    def next(self, now_s: float) -> str | None:
        """Give a turn to a job, and return it; None where none may have one."""
        if len(self._working) >= MOST_AT_A_TIME:
            return None
        ready = self._ready(now_s)
        if not ready:
            return None
        key = min(ready, key=lambda key: (self._last.get(ready[key].namespace, 0), ready[key].from_s))
        namespace = self._waiting.pop(key).namespace
        self._working[key] = _Working(namespace, now_s)
        self._last[namespace] = next(self._numbers)
        return key

    def should_yield(self, key: str, now_s: float) -> bool:
        """Tell whether a job has had its turn, and one of another namespace waits for it."""
        namespace, since_s = self._working[key]
        if now_s - since_s < SLICE_S or len(self._working) < MOST_AT_A_TIME:
            return False
        return any(waiting.namespace != namespace for waiting in self._ready(now_s).values())

    def _ready(self, now_s: float) -> dict[str, _Waiting]:
        working = [each.namespace for each in self._working.values()]
        return {
            key: waiting
            for key, waiting in self._waiting.items()
            if waiting.from_s <= now_s and working.count(waiting.namespace) < OF_ONE_NAMESPACE
        }
