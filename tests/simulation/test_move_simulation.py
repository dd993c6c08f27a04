"""A hundred histories in which the clock is moved while records wait, for Redis and as many for bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

RUNS = 100


@pytest.mark.long
@pytest.mark.parametrize("family", ["Moves", "MovesBuckets"])
def test_no_record_leaves_early_by_a_clock_that_is_moved_nor_twice_nor_never(family: str) -> None:
    findings = try_seeds(0, RUNS, None, family)

    assert (findings.runs, findings.failures) == (RUNS, [])
    assert findings.counts["event: advance"] > RUNS
    assert findings.counts["path: recovered, clock"] > RUNS
    assert findings.counts["path: former rules in force for what waits"] > RUNS
