"""Three hundred histories of relays whose clocks jump forth and back, with Redis and with bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 50


@pytest.mark.long
@pytest.mark.parametrize("first", [0, PORTION, 2 * PORTION])
@pytest.mark.parametrize("family", ["Clocks", "ClocksBuckets"])
def test_no_clock_that_jumps_has_anything_leave_early_twice_or_never(family: str, first: int) -> None:
    findings = try_seeds(first, first + PORTION, None, family)

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["event: set clock"] > PORTION
    assert findings.counts["path: delivery held"] > PORTION
    assert findings.counts["path: cursor went back"] > PORTION / 3
