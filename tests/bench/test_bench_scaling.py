"""Tests of the simulated days that rules of scaling are tried on."""

from __future__ import annotations

from bench.scaling.__main__ import lived
from bench.scaling.variants import VARIANTS, variant
from bench.scaling.world import Day

from delaytopic_operator.scaling.state import ScalingMemory

BURST_S = 400
FORESEEN = Day("a burst that is foreseen", 600, {}, [(BURST_S, 60_000.0)])
"""With six relays it takes four seconds, and with one 24."""


def test_relays_are_there_when_a_burst_is_due_that_was_foreseen() -> None:
    figures = lived(FORESEEN, seed=1)

    assert (figures.longest_s, figures.steps) == (5, 1)


def test_a_day_without_pages_has_the_relays_that_it_began_with() -> None:
    figures = lived(Day("dark", 600, {}, FORESEEN.begins_with, blackouts=[(0, 600)]), seed=1)

    assert (figures.longest_s, figures.steps) == (23, 0)


def test_every_variant_ends_with_its_day() -> None:
    before = ScalingMemory().lead_time.p95_ms()
    for name in VARIANTS:
        with variant(name):
            assert lived(Day("short", 60, {}, [(30, 100.0)]), seed=1).steps == 0

    assert ScalingMemory().lead_time.p95_ms() == before
