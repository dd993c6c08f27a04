"""The histories that are run, and what has to happen in them."""

from __future__ import annotations

from tests.simulation.counting import EXPECTED
from tests.simulation.plans.families import PLANS


def test_every_family_says_which_faults_and_paths_its_histories_have_to_contain() -> None:
    assert EXPECTED.keys() == PLANS.keys()
