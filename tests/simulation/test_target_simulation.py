"""Histories of relays some of whose targets take nothing for a time."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Targets", "TargetsBuckets"])
def test_a_target_that_does_not_answer_breaks_no_promise_and_keeps_nothing_else_from_leaving(family: str) -> None:
    findings = try_seeds(0, EVERY_DAY, None, family)

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["path: started over, unanswered"] > EVERY_DAY
    assert findings.counts["path: another id"] > EVERY_DAY / 2
    assert findings.counts["path: dead letter of a target"] > EVERY_DAY / 4
    assert findings.counts["path: started over, producer-outdated"] > EVERY_DAY / 4
