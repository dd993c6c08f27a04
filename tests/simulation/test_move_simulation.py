"""Histories in which the clock is moved while records wait, for Redis and as many for bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Moves", "MovesBuckets"])
def test_no_record_leaves_early_by_a_clock_that_is_moved_nor_twice_nor_never(family: str) -> None:
    findings = try_seeds(0, EVERY_DAY, None, family)

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["event: advance"] > EVERY_DAY
    assert findings.counts["path: recovered, clock"] > EVERY_DAY
    assert findings.counts["path: former rules in force for what waits"] > EVERY_DAY
