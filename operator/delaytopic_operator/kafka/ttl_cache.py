"""A cache by age, so that a thousand DelayTopics of one class do not read its Secret a thousand times."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TTLCache(Generic[K, V]):
    """Thread-safe; two that ask at once for the same may both read it."""

    def __init__(self, read: Callable[[K], V], age_ms: int) -> None:
        """`read` gets a key's value; one that is younger than `age_ms` is given again."""
        self._read = read
        self._age_ms = age_ms
        self._lock = Lock()
        self._values: dict[K, tuple[int, V]] = {}

    def get(self, key: K, now_ms: int) -> V:
        """The value; raises what `read` raises, and remembers no failure."""
        with self._lock:
            known = self._values.get(key)
        if known is not None and 0 <= now_ms - known[0] < self._age_ms:
            return known[1]
        value = self._read(key)
        with self._lock:
            self._values[key] = (now_ms, value)
            for old in [each for each, (at_ms, _) in self._values.items() if now_ms - at_ms > self._age_ms]:
                del self._values[old]
        return value

    def forget(self, key: K) -> None:
        """Read it anew next time."""
        with self._lock:
            self._values.pop(key, None)
