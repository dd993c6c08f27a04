"""The cases of a run, in words, with the goals of each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bench.figures.goals import BACKLOG, FIXED_DELAY, WITHIN_HORIZON, AtLeast
from delaytopic_api.values import BackendType


class Group(StrEnum):
    """The groups that `--only` chooses from."""

    FIXED = "fixed"
    HORIZON = "horizon"
    REDIS = "redis"
    BUCKETS = "buckets"
    LATENESS = "lateness"
    DIALECTS = "dialects"


class Case(StrEnum):
    """A case that is compared with the null relay."""

    FIXED = "fixed delay"
    HORIZON = "delays inside the horizon"
    REDIS = "Redis, 10 minutes, in and out"
    BUCKETS = "Kafka buckets, 10 minutes, in and out"


GOALS: dict[Case, AtLeast] = {
    Case.FIXED: FIXED_DELAY,
    Case.HORIZON: WITHIN_HORIZON,
    Case.REDIS: BACKLOG,
    Case.BUCKETS: BACKLOG,
}
"""Of the null relay's rate, with AtLeastOnce."""

BACKENDS: dict[Case, BackendType] = {Case.REDIS: BackendType.REDIS_ZSET, Case.BUCKETS: BackendType.KAFKA_BUCKETS}
"""The cases with a backlog, and where it waits."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers of records of each case, so that all take a second or a few on any machine."""

    copied: int
    """By the null relays and with a fixed delay."""
    within_horizon: int
    """All in memory at once."""
    backlog: int
    """On the way to the backlog."""

    @classmethod
    def of(cls, records: int) -> Scale:
        """From the number for the null relay."""
        return cls(
            records, min(MOST_IN_MEMORY, records * 6 // 10), min(LARGEST_BACKLOG, max(SMALLEST_BACKLOG, records))
        )

    @classmethod
    def for_rate(cls, null_rate: float) -> Scale:
        """From what the null relay does in a second."""
        return cls.of(min(MOST, max(FEWEST, int(null_rate) // 10_000 * 10_000)))


FEWEST = 150_000
MOST = 500_000
SMALLEST_BACKLOG = 150_000
LARGEST_BACKLOG = 250_000
"""Spread over ten minutes: 250 to 400 a second."""
MOST_IN_MEMORY = 200_000
"""A relay stops reading when it holds 256 MiB, as it counts."""
