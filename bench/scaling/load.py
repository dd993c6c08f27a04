"""Three hours of due times: a swell, two batches that were planned long ago, and one that nobody saw coming. Pure."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from itertools import accumulate

HOUR = 3_600


@dataclass(frozen=True, slots=True)
class Burst:
    """Records due in one second, and how long before they were taken in."""

    at: int
    records: int
    known_before: int


@dataclass(frozen=True, slots=True)
class Lump:
    """For so many seconds so many times the load."""

    at: int
    seconds: int
    times: float


@dataclass(frozen=True, slots=True)
class Load:
    """Records due in each second; all but bursts are known `known_before` seconds ahead."""

    seconds: int = 3 * HOUR
    lowest: int = 300
    highest: int = 1_100
    swell: int = 2_700
    """Seconds from one low to the next."""
    known_before: int = 1_800
    bursts: tuple[Burst, ...] = (
        Burst(HOUR, 300_000, 2_700),
        Burst(5_400, 100_000, 60),
        Burst(2 * HOUR, 300_000, 2_700),
    )
    lumps: tuple[Lump, ...] = ()
    base: list[int] = field(init=False)
    upto: list[int] = field(init=False)
    """Base records due before each second."""

    def __post_init__(self) -> None:
        """Count once."""
        middle, swing = (self.lowest + self.highest) / 2, (self.highest - self.lowest) / 2
        reach = self.seconds + self.known_before + 1
        base = [round(middle - swing * math.cos(2 * math.pi * second / self.swell)) for second in range(reach)]
        for lump in self.lumps:
            for second in range(lump.at, lump.at + lump.seconds):
                base[second] = round(base[second] * lump.times)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "upto", [0, *accumulate(base)])

    def due_at(self, second: int) -> int:
        """Records that fall due in this second."""
        return self.base[second] + sum(burst.records for burst in self.bursts if burst.at == second)

    def known_within(self, now: int, start: int, end: int) -> int:
        """Of the records due in [start, end), those taken in by now."""
        last = min(end, now + self.known_before)
        base = self.upto[last] - self.upto[start] if last > start else 0
        return base + sum(burst.records for burst in self._known(now) if start <= burst.at < end)

    def pending(self, now: int) -> int:
        """Everything taken in that is not due yet."""
        return self.known_within(now, now + 1, self.seconds + self.known_before)

    def arriving_at(self, second: int) -> int:
        """Records taken in in this second."""
        ahead = second + self.known_before
        base = self.base[ahead] if ahead < len(self.base) else 0
        return base + sum(burst.records for burst in self.bursts if burst.at - burst.known_before == second)

    def _known(self, now: int) -> list[Burst]:
        return [burst for burst in self.bursts if burst.at - burst.known_before <= now]


def lumpy(seed: int = 1) -> Load:
    """Half a minute of this and a minute of that, and nothing in one instant."""
    chance, lumps, second = random.Random(seed), [], 100
    while second < 3 * HOUR:
        lump = Lump(second, chance.choice((10, 20, 30, 60)), chance.uniform(1.5, 3))
        lumps.append(lump)
        second += lump.seconds + chance.randint(60, 300)
    return Load(bursts=(), lumps=tuple(lumps))


def bursting(seed: int = 4) -> Load:
    """A burst of some thousand records every ten minutes or so."""
    chance = random.Random(seed)
    sizes = (5_000, 10_000, 20_000, 40_000)
    return Load(bursts=tuple(Burst(600 * n + chance.randint(0, 59), chance.choice(sizes), 2_700) for n in range(1, 17)))
