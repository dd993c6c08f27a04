"""Three hundred histories for each backend in which the source becomes another one, or the group's offsets do."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100
FIRST_SEEDS = range(0, 300, PORTION)


@pytest.mark.long
@pytest.mark.parametrize("first", FIRST_SEEDS)
@pytest.mark.parametrize("family", ["Identity", "IdentityBuckets"])
def test_nothing_of_a_former_source_is_delivered_and_nothing_of_the_accepted_one_is_lost(
    family: str, first: int
) -> None:
    findings = try_seeds(first, first + PORTION, None, family)

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["path: recovery put off, StandsStill"] > PORTION / 4
    assert findings.counts["path: began anew"] > PORTION / 10
