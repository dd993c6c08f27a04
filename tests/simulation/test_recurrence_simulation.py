"""Histories for each backend of records that recur."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Recurrence", "RecurrenceBuckets"])
def test_each_slot_is_delivered_once_and_a_chain_ends_by_its_rule_or_by_a_command(family: str) -> None:
    findings = try_seeds(0, EVERY_DAY, None, family)

    assert findings.failures == []
    assert findings.counts["path: went on"] > EVERY_DAY
    assert findings.counts["path: recurred"] > EVERY_DAY
    assert findings.counts["path: withdrawn on its way"] > 0
    assert findings.counts["path: looked ahead"] > 0
