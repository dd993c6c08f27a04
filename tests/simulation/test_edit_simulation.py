"""Histories in which rules are edited while records wait, for Redis and as many for bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Edits", "EditsBuckets"])
def test_each_record_has_one_outcome_whatever_becomes_of_the_rules(family: str) -> None:
    findings = try_seeds(0, EVERY_DAY, None, family)

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["event: edit"] > EVERY_DAY
    assert findings.counts["path: former rules in force for what waits"] > EVERY_DAY
    assert findings.counts["path: former rules done"] > EVERY_DAY
    assert findings.counts["path: no queue any more"] > 0
