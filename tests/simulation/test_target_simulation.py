"""Three hundred histories of relays some of whose targets take nothing for a time."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 50


@pytest.mark.long
@pytest.mark.parametrize("first", [0, PORTION, 2 * PORTION])
@pytest.mark.parametrize("family", ["Targets", "TargetsBuckets"])
def test_a_target_that_does_not_answer_breaks_no_promise_and_keeps_nothing_else_from_leaving(
    family: str, first: int
) -> None:
    findings = try_seeds(first, first + PORTION, None, family)

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["path: started over, unanswered"] > PORTION
    assert findings.counts["path: another id"] > PORTION / 2
    assert findings.counts["path: dead letter of a target"] > PORTION / 4
    assert findings.counts["path: started over, producer-outdated"] > PORTION / 4
