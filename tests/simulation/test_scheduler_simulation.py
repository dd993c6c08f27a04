"""Histories full of faults for relays whose dialect writes tombstones and a history topic."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
def test_no_delivery_is_seen_without_its_tombstone_and_its_copy() -> None:
    findings = try_seeds(0, EVERY_DAY, None, "Scheduler")

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["path: superseded"] > EVERY_DAY
    assert findings.counts["path: cancelled"] > EVERY_DAY / 2
