"""Histories for each backend of relays that tell how each schedule ended."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Outcomes", "OutcomesBuckets"])
def test_every_schedule_has_one_outcome_and_it_is_true(family: str) -> None:
    assert try_seeds(0, EVERY_DAY, None, family).failures == []
