"""Three hundred histories for each backend of relays that tell how each schedule ended."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100
FIRST_SEEDS = range(0, 300, PORTION)


@pytest.mark.long
@pytest.mark.parametrize("first", FIRST_SEEDS)
@pytest.mark.parametrize("family", ["Outcomes", "OutcomesBuckets"])
def test_every_schedule_has_one_outcome_and_it_is_true(family: str, first: int) -> None:
    assert try_seeds(first, first + PORTION, None, family).failures == []
