"""Every deliberate breakage of the relay is caught, mostly by the seed recorded for it; `make mutants` records."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import broken_promises, wrong_with
from tests.simulation.mutants.report import recorded
from tests.simulation.mutants.table import MUTANTS, ROOMS, applied
from tests.simulation.plans.families import plans_for_mutant

OTHER_SEEDS = range(150)
"""Tried when the relay has changed so much that the recorded seed shows nothing any more."""
EVERY_DAY = [mutant.name for of in ROOMS for mutant in of.MUTANTS[::3]]
"""A third of those of each room; a change of the relay is a reason to try all, as the night does."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in EVERY_DAY else [pytest.mark.nightly]) for name in MUTANTS]
)
def test_a_mutant_is_caught(name: str) -> None:
    plans = plans_for_mutant(name)
    with applied(name):
        caught = next((seed for seed in (recorded()[name], *OTHER_SEEDS) if broken_promises(plans(seed))), None)

    assert caught is not None


@pytest.mark.parametrize("names", [EVERY_DAY, pytest.param([*MUTANTS], marks=pytest.mark.nightly)], ids=["some", "all"])
def test_no_history_that_catches_a_mutant_blames_the_relay_as_it_is(names: list[str]) -> None:
    seeds = {(MUTANTS[name].backend, recorded()[name]): plans_for_mutant(name) for name in names}

    assert {key: wrong for key, plans in seeds.items() if (wrong := wrong_with(plans(key[1])))} == {}


def test_each_mutant_has_its_seed_and_no_other_has() -> None:
    assert list(recorded()) == list(MUTANTS)
