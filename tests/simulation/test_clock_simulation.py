"""Histories of relays whose clocks jump forth and back, with Redis and with bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Clocks", "ClocksBuckets"])
def test_no_clock_that_jumps_has_anything_leave_early_twice_or_never(family: str) -> None:
    findings = try_seeds(0, EVERY_DAY, None, family)

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["event: set clock"] > EVERY_DAY
    assert findings.counts["path: delivery held"] > EVERY_DAY
    assert findings.counts["path: cursor went back"] > EVERY_DAY / 3
