"""Histories for each backend in which the source becomes another one, or the group's offsets do."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Identity", "IdentityBuckets"])
def test_nothing_of_a_former_source_is_delivered_and_nothing_of_the_accepted_one_is_lost(family: str) -> None:
    findings = try_seeds(0, EVERY_DAY, None, family)

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["path: recovery put off, StandsStill"] > EVERY_DAY / 4
    assert findings.counts["path: began anew"] > EVERY_DAY / 10
