"""A hundred histories full of faults for relays whose dialect writes tombstones and a history topic."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100


@pytest.mark.long
def test_no_delivery_is_seen_without_its_tombstone_and_its_copy() -> None:
    findings = try_seeds(0, PORTION, None, "Scheduler")

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["path: superseded"] > PORTION
    assert findings.counts["path: cancelled"] > PORTION / 2
