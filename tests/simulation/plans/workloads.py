"""Workloads of applications: kinds of records, and when they are due."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.simulation.plans.plan import Recipe, Setup
from tests.simulation.world.kafka import START_MS
from tests.simulation.world.refusing import BAD_VALUES

from delaytopic_api.records import Headers

NEAR_MS = (-5_000, -1, 0, 0, 1, 50, 400, 2_000, 9_000, 9_999, 10_000)
FAR_MS = (10_999, 11_000, 15_000, 20_000, 40_000, 150_000, 3_000_000, 100_000_000)
INSTANTS_MS = tuple(START_MS + after_ms for after_ms in (3_000, 12_000, 20_000, 20_001, 45_000))
"""Many records are due on these."""
NAMES = (b"a", b"b", b"c")
MESSAGES = (*NAMES, *(b"%d" % number for number in range(30)))
"""All names."""
STRANGE: tuple[Headers, ...] = (
    [("trace", b"1"), ("trace", b"2")],
    [("", None)],
    [("empty", b""), ("null", None)],
)
MALFORMED: Headers = [("deliver-at", b"soon")]
BEYOND: Headers = [("deliver-after", b"200d")]
ELSEWHERE: Headers = [("deliver-to", b"other")]


@dataclass(frozen=True)
class Workload:
    """Shares of the kinds; whatever is left is a plain record."""

    shards: int
    fixed: bool
    named: float
    far: float
    on_instants: float

    def recipe(self, rng: random.Random) -> Recipe:
        """One record."""
        partition = rng.randrange(self.shards)
        others = rng.choice(STRANGE) if rng.random() < 0.2 else ()
        value = rng.choice(BAD_VALUES) if rng.random() < 0.015 else rng.choice([b"v", b"v", b"v", b"", None])
        if rng.random() < 0.05:
            return Recipe(partition, others=rng.choice([MALFORMED, BEYOND if not self.fixed else MALFORMED]))
        if self.fixed:
            return Recipe(partition, value=value, others=others)
        if rng.random() < 0.03:
            others = [*others, *ELSEWHERE]
        name = rng.choice([*NAMES, b"%d" % rng.randrange(30)]) if rng.random() < self.named else None
        if name is not None and rng.random() < 0.25:
            return Recipe(partition, name=name, cancel=True)
        if rng.random() < self.on_instants:
            return Recipe(partition, at_ms=rng.choice(INSTANTS_MS), name=name, value=value, others=others)
        due_ms = rng.choice(FAR_MS if rng.random() < self.far else NEAR_MS)
        return Recipe(partition, due_ms, name=name, value=value, others=[*others, *_expiry(rng, due_ms)])


def _expiry(rng: random.Random, due_ms: int) -> Headers:
    """Few records expire, and then soon after they are due."""
    return [("deliver-expires-at", b"%d" % (due_ms + 300))] if rng.random() < 0.02 else []


def workload_for(rng: random.Random, setup: Setup) -> Workload:
    """One of the kinds of load."""
    return Workload(
        setup.shards,
        setup.delay_ms is not None,
        named=rng.choice([0, 0.1, 0.7]),
        far=rng.choice([0.1, 0.4, 0.8]),
        on_instants=rng.choice([0, 0.2, 0.7]),
    )
