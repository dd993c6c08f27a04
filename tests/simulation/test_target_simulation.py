"""Three hundred histories of relays some of whose targets take nothing for a time."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 150


@pytest.mark.long
@pytest.mark.parametrize("backend", ["Targets", "TargetsBuckets"])
def test_a_target_that_does_not_answer_breaks_no_promise_and_keeps_nothing_else_from_leaving(backend: str) -> None:
    findings = try_seeds(0, PORTION, None, backend)

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["path: started over, unanswered"] > PORTION
    assert findings.counts["path: another id"] > PORTION / 2
    assert findings.counts["path: dead letter of a target"] > PORTION / 4
