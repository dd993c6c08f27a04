"""The cases of a run and their sizes. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from bench.processes.plan import Phase, Plan
from delaytopic_api.values import BackendType, Guarantee


class Group(StrEnum):
    """The groups that `--only` chooses from."""

    FIXED = "fixed"
    HORIZON = "horizon"
    REDIS = "redis"
    BUCKETS = "buckets"
    DIALECTS = "dialects"
    LATENESS = "lateness"
    PAST_DUE = "past-due"
    RESTART = "restart"
    PENDING = "pending"
    OUTCOMES = "outcomes"
    RECURRING = "recurring"


THROUGHPUT = (Group.FIXED, Group.HORIZON, Group.REDIS, Group.BUCKETS, Group.DIALECTS)
"""The groups that are compared with the null relay."""
QUICK = (*THROUGHPUT, Group.LATENESS)


ROUNDS = 3
"""The rounds of all but what is measured once: the median of fewer is a mean."""


def rounds_of(groups: Collection[Group], asked: int | None) -> dict[Group, int]:
    """Return how often each of these groups runs: as often as asked for, or by default as time allows."""
    return dict.fromkeys(groups, ROUNDS if asked is None else asked)


class Case(StrEnum):
    """A case that is compared with the null relay."""

    FIXED = "fixed delay"
    HORIZON = "delays inside the horizon"
    REDIS = "Redis, 10 minutes, in and out"
    BUCKETS = "Kafka buckets, 10 minutes, in and out"


class Way(NamedTuple):
    """A relay's guarantee, and whether it has its speedups."""

    guarantee: Guarantee
    in_c: bool = False

    def __str__(self) -> str:
        """Such as `ExactlyOnce, in C`."""
        return f"{self.guarantee}, in C" if self.in_c else str(self.guarantee)


PURE = (Way(Guarantee.AT_LEAST_ONCE), Way(Guarantee.EXACTLY_ONCE))
"""Relays in Python alone."""
IN_C = tuple(way._replace(in_c=True) for way in PURE)
"""Relays as they come."""
WAYS = (*PURE, *IN_C)

BACKENDS: dict[Case, BackendType] = {Case.REDIS: BackendType.REDIS_ZSET, Case.BUCKETS: BackendType.KAFKA_BUCKETS}
"""The cases with a backlog, and where it waits."""

GROWING: tuple[tuple[BackendType, Guarantee], ...] = (
    (BackendType.REDIS_ZSET, Guarantee.EXACTLY_ONCE),
    (BackendType.KAFKA_BUCKETS, Guarantee.EXACTLY_ONCE),
)
"""The backlogs that grow to millions. With the other guarantee the half second between two commits would be most of
what is measured of the way in."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers of records of the cases beside the null relay, so that all take a second or a few on any machine."""

    copied: int
    """The records copied by the null relays and with a fixed delay."""
    within_horizon: int
    """All in memory at once."""
    backlog: int
    """The records on the way to the backlog."""

    @classmethod
    def of(cls, records: int) -> Scale:
        """Return the scale that follows from the number for the null relay."""
        return cls(
            records, min(MOST_IN_MEMORY, records * 6 // 10), min(LARGEST_BACKLOG, max(SMALLEST_BACKLOG, records))
        )

    @classmethod
    def for_rate(cls, null_rate: float) -> Scale:
        """Return the scale that follows from what the null relay does in a second."""
        return cls.of(min(MOST, max(FEWEST, int(null_rate) // 10_000 * 10_000)))


FEWEST = 150_000
MOST = 500_000
SMALLEST_BACKLOG = 150_000
LARGEST_BACKLOG = 250_000
"""Spread over ten minutes: 250 to 400 a second."""
MOST_IN_MEMORY = 200_000
"""Records inside the horizon: they are in memory until they are due."""


class Recurring(NamedTuple):
    """Records with one interval, each with a slot of its own within it, and how often each is delivered."""

    records: int
    interval_ms: int
    rounds: int

    @property
    def deliveries(self) -> int:
        """The number of all occurrences."""
        return self.records * self.rounds


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of records of the cases that stand for themselves. `loads` run one after another, each alone; `warm_up`
    is not measured.
    """

    loads: tuple[Plan, ...]
    warm_up: Plan
    past_due: int
    restart: Plan
    kill_after_s: float
    pending: tuple[int, ...]
    ripe: int
    """The number of a backlog of millions that are due while it is measured."""
    recurring: Recurring
    scale: Scale | None = None
    """None: as the null relay says."""


WHOLE = Sizes(
    loads=(
        Plan((Phase(1_000, 3), Phase(10_000, 4), Phase(20_000, 4)), burst=50_000),
        Plan((Phase(40_000, 4),), burst=0),
    ),
    warm_up=Plan((Phase(20_000, 4),), burst=0),
    past_due=200_000,
    restart=Plan((Phase(2_000, 10),), burst=0),
    kill_after_s=5,
    pending=(10_000, 100_000, 1_000_000, 10_000_000),
    ripe=96_000,
    recurring=Recurring(100_000, 60_000, 2),
)
QUICK_SIZES = Sizes(
    loads=(Plan((Phase(2_000, 4), Phase(10_000, 5)), burst=50_000),),
    warm_up=WHOLE.warm_up,
    past_due=WHOLE.past_due,
    restart=WHOLE.restart,
    kill_after_s=WHOLE.kill_after_s,
    pending=(),
    ripe=WHOLE.ripe,
    recurring=WHOLE.recurring,
)
SHAKE_OUT = Sizes(
    loads=(Plan((Phase(100, 2), Phase(500, 2)), burst=1_000), Plan((Phase(1_000, 2),), burst=0)),
    warm_up=Plan((Phase(100, 1),), burst=0),
    past_due=4_000,
    restart=Plan((Phase(200, 10),), burst=0),
    kill_after_s=5,
    pending=(1_000, 4_000),
    ripe=6_000,
    recurring=Recurring(400, 2_000, 2),
    scale=Scale(copied=10_000, within_horizon=10_000, backlog=40_000),
)
"""Sizes at which all cases run through on any machine, and no figure means anything."""
