"""Goals of the figures, what bounds each, and the verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from bench.figures.names import (
    CAUGHT_UP,
    FIRST,
    LAST,
    OF_DESIGN,
    OF_NATIVE,
    OF_NULL,
    OF_SMALLER,
    P50,
    P99,
    P99_OF_DESIGN,
    START,
    TWICE,
    WRITTEN_OF_NATIVE,
    Name,
    Table,
    at_rate,
    with_pending,
)
from bench.selection import GROWING, IN_C, PURE, WAYS, Case
from delaytopic_api.values import CAPABILITIES, BackendType, Dialect, Guarantee


class Verdict(StrEnum):
    """A figure, its goal, and whether it is reached."""

    MET = "met"
    MISSED = "not met"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The figure must not be below the limit."""

    limit: float

    def judge(self, value: float) -> Verdict:
        """The verdict on a figure."""
        return Verdict.MET if value >= self.limit else Verdict.MISSED

    def __str__(self) -> str:
        """Such as `>= 0.3`."""
        return f">= {self.limit:g}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """The figure must not be above the limit."""

    limit: float

    def judge(self, value: float) -> Verdict:
        """The verdict on a figure."""
        return Verdict.MET if value <= self.limit else Verdict.MISSED

    def __str__(self) -> str:
        """Such as `<= 50`."""
        return f"<= {self.limit:g}"


class Goal(NamedTuple):
    """A limit, and the reason why nobody gets much beyond it."""

    limit: AtLeast | AtMost
    bound: str


OBJECTS: Final = "a record is a dozen Python objects, made once and read once"
COLD: Final = "the same, and each object is a cache miss by the time the record is due"
UNPACKED: Final = "the same, and packing, unpacking and one more way through Redis"
WITHOUT: Final = "the client, which makes an object of each record that it reads, and the broker beside it"
BESIDE: Final = "the same, and Redis beside it, which takes each record and gives it back"
MOVED: Final = "the same, and each record goes through the broker once more"
STORED: Final = "the same, and packing, unpacking and one more way through Kafka"
PRODUCING: Final = "producing with headers, and a receipt for each record"
SHARED: Final = "producer, broker, relay and reader share the processors: whoever waits for one is late"
COMMITS: Final = "the transaction, which collects for a third of the precision, and its markers"
STARTING: Final = "Python's start and imports, and what the relay asks Kafka before it reads"
SEGMENTS: Final = "the same, and reading all segments that may hold what is due first, before it leaves"
POSITIONS: Final = "Redis and the broker look the same number of places up, whatever else is there"
JSON: Final = "values in JSON are parsed for every record"
HEADERS: Final = "headers of their own are parsed and written for every record"

PLAIN, EXACT = Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE
AS_SHIPPED: Final = (
    (Case.FIXED, 0.85, 0.75, WITHOUT),
    (Case.HORIZON, 0.65, 0.60, WITHOUT),
    (Case.REDIS, 0.36, 0.33, BESIDE),
    (Case.BUCKETS, 0.38, 0.36, MOVED),
)
IN_PYTHON_ALONE: Final = (
    (Case.FIXED, 0.58, 0.50, OBJECTS),
    (Case.HORIZON, 0.30, 0.28, COLD),
    (Case.REDIS, 0.11, 0.10, UNPACKED),
    (Case.BUCKETS, 0.17, 0.16, STORED),
)
"""The floors of relays in Python alone: what each has done, less its spread."""


def records_written(dialect: Dialect) -> int:
    """Return how many records a delivery is: itself, what ends its schedule in the source, a copy for the history."""
    _, tombstones, history, postpones, _ = CAPABILITIES[dialect]
    return 1 + (tombstones or postpones) + history


def _goals() -> Iterator[tuple[Name, Goal]]:
    for ways, cases in ((IN_C, AS_SHIPPED), (PURE, IN_PYTHON_ALONE)):
        for case, plain, exact, bound in cases:
            for way, limit in zip(ways, (plain, exact), strict=True):
                yield (Table.THROUGHPUT, f"{case}, {way}", OF_NULL), Goal(AtLeast(limit), bound)
    for way in WAYS:
        limit = 5 if way.in_c else 2.5
        yield (Table.PAST_DUE, str(way), OF_DESIGN), Goal(AtLeast(limit), WITHOUT if way.in_c else PRODUCING)
    yield (Table.LATENESS, at_rate(PLAIN, 10_000), P50), Goal(AtMost(3), SHARED)
    yield (Table.LATENESS, at_rate(PLAIN, 10_000), P99), Goal(AtMost(10), SHARED)
    yield (Table.LATENESS, at_rate(PLAIN, 10_000), P99_OF_DESIGN), Goal(AtMost(1), SHARED)
    yield (Table.LATENESS, at_rate(EXACT, 10_000), P99), Goal(AtMost(30), COMMITS)
    yield (Table.LATENESS, at_rate(PLAIN, 40_000), P99), Goal(AtMost(60), SHARED)
    yield (Table.LATENESS, at_rate(EXACT, 40_000), P99), Goal(AtMost(60), SHARED)
    for guarantee in (PLAIN, EXACT):
        yield (Table.BURST, f"{guarantee}, 50,000", LAST), Goal(AtMost(1), PRODUCING)
        yield (Table.RESTART, guarantee, FIRST), Goal(AtMost(1.5), STARTING)
        yield (Table.RESTART, guarantee, CAUGHT_UP), Goal(AtMost(2.5), STARTING)
    yield (Table.RESTART, EXACT, TWICE), Goal(AtMost(0), "nothing: the progress is part of the transaction")
    for kind in GROWING:
        bound = SEGMENTS if kind[0] is BackendType.KAFKA_BUCKETS else STARTING
        yield (Table.PENDING, with_pending(*kind, 1_000_000), START), Goal(AtMost(1), bound)
        yield (Table.PENDING, with_pending(*kind, 10_000_000), OF_SMALLER), Goal(AtLeast(0.9), POSITIONS)
    for dialect in Dialect:
        if dialect is not Dialect.NATIVE:
            limit, bound = (0.6, JSON) if dialect is Dialect.BLACK_BOX else (0.8, HEADERS)
            name = OF_NATIVE if records_written(dialect) == 1 else WRITTEN_OF_NATIVE
            yield (Table.DIALECTS, dialect, name), Goal(AtLeast(limit), bound)


GOALS: Final[Mapping[Name, Goal]] = dict(_goals())
