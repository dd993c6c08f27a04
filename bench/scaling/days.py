"""The days that rules are tried on."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Final

from bench.scaling.world import Batch, Day

HOUR_S: Final = 3_600
LENGTH_S: Final = 6 * HOUR_S
SHORT_S: Final = 2 * HOUR_S
TOLD_BEFORE_S: Final = 1_800
"""Records of the swell are sent so long before they are due."""


def days() -> tuple[Day, ...]:
    """Return the days, each with one trouble more than the first."""
    arrivals, before = _usual()
    plain = Day("plain", LENGTH_S, arrivals, before)
    unreliable = replace(plain, name="unreliable", jittered=True, unreliable=True)
    blackouts = ((HOUR_S - 600, HOUR_S + 600), (2 * HOUR_S - 1_500, 2 * HOUR_S + 300), (5 * HOUR_S, 5 * HOUR_S + 900))
    flood = {second: list(batches) for second, batches in arrivals.items()}
    for second in range(60):
        # Six million in a minute, due within half an hour.
        flood.setdefault(9_000 + second, []).extend((9_180 + 27 * each, 100_000 / 60) for each in range(60))
        flood.setdefault(16_000 + second, []).extend((21_000 + each, 100_000 / 60) for each in range(60))
    steady = {second: [(second + 600, 200.0)] for second in range(SHORT_S)}
    steady[10] = [(HOUR_S, 60_000.0)]
    small = Day("small batches", SHORT_S, steady, commit_s=0.15)
    return (
        plain,
        unreliable,
        replace(unreliable, name="blind", blackouts=blackouts),
        replace(plain, name="narrow target", narrow=((HOUR_S, 3 * HOUR_S, 900.0),)),
        replace(plain, name="flood", arrivals=flood),
        replace(plain, name="slow flood", arrivals=flood, takes_in=3_000),
        small,
        replace(small, name="slow commits", commit_s=0.5),
    )


def _usual() -> tuple[dict[int, list[Batch]], list[Batch]]:
    """A swell between 300 and 1,100 a second; 300,000 in one second at full hours, planned long before; 100,000 in one
    second that are known 60 s ahead.
    """
    arrivals: dict[int, list[Batch]] = defaultdict(list)
    before: list[Batch] = []
    for due_s in range(1, LENGTH_S):
        batch = due_s, 700 + 400 * math.sin(2 * math.pi * due_s / (3 * HOUR_S))
        if due_s <= TOLD_BEFORE_S:
            before.append(batch)
        else:
            arrivals[due_s - TOLD_BEFORE_S].append(batch)
    before += [(hour * HOUR_S, 300_000.0) for hour in (1, 2, 4, 5)]
    for due_s in (2 * HOUR_S + 1_800, 4 * HOUR_S + 1_800):
        arrivals[due_s - 60].append((due_s, 100_000.0))
    return arrivals, before
