"""Histories full of faults for relays whose dialect puts off, with Redis and with bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Redelivery", "RedeliveryBuckets"])
def test_each_message_comes_back_once_unless_it_ends_and_never_before_its_deadline(family: str) -> None:
    findings = try_seeds(0, EVERY_DAY, None, family)

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["path: put off"] > EVERY_DAY
    assert findings.counts["path: withdrawn on its way"] > EVERY_DAY / 20
    assert findings.counts["path: looked ahead"] > EVERY_DAY
