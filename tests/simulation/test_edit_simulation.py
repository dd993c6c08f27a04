"""Three hundred histories in which rules are edited while records wait, with Redis and with bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 75


@pytest.mark.long
@pytest.mark.parametrize("first", [0, PORTION])
@pytest.mark.parametrize("family", ["Edits", "EditsBuckets"])
def test_each_record_has_one_outcome_whatever_becomes_of_the_rules(family: str, first: int) -> None:
    findings = try_seeds(first, first + PORTION, None, family)

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["event: edit"] > PORTION
    assert findings.counts["path: former rules in force for what waits"] > PORTION
    assert findings.counts["path: former rules done"] > PORTION
    assert findings.counts["path: no queue any more"] > 0
