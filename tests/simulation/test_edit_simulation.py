"""Three hundred histories in which rules are edited while records wait, for Redis and as many for bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100
FIRST_SEEDS = range(0, 300, PORTION)


@pytest.mark.long
@pytest.mark.parametrize("first", FIRST_SEEDS)
@pytest.mark.parametrize("family", ["Edits", "EditsBuckets"])
def test_each_record_has_one_outcome_whatever_becomes_of_the_rules(family: str, first: int) -> None:
    findings = try_seeds(first, first + PORTION, None, family)

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["event: edit"] > PORTION
    assert findings.counts["path: former rules in force for what waits"] > PORTION
    assert findings.counts["path: former rules done"] > PORTION
    assert findings.counts["path: no queue any more"] > 0
