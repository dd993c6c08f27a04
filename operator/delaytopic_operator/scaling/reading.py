"""A value and when it was true. What is not known is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

POLL_MS = 15_000
"""How often relays and Kafka are asked."""
STALE_MS = 3 * POLL_MS
"""What is older says nothing any more."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A value, and the oldest moment that it speaks of."""

    value: T
    as_of_ms: int

    def fresh(self, now_ms: int) -> bool:
        """Whether it may be acted on."""
        return now_ms - self.as_of_ms <= STALE_MS


def fresh(reading: Reading[T] | None, now_ms: int) -> T | None:
    """The value of a reading that is there and fresh; None otherwise."""
    return reading.value if reading is not None and reading.fresh(now_ms) else None
