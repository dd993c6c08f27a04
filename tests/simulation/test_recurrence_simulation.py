"""Three hundred histories for each backend of records that recur."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 30
FIRST_SEEDS = range(0, 300, PORTION)


@pytest.mark.long
@pytest.mark.parametrize("first", FIRST_SEEDS)
@pytest.mark.parametrize("family", ["Recurrence", "RecurrenceBuckets"])
def test_each_slot_is_delivered_once_and_a_chain_ends_by_its_rule_or_by_a_command(family: str, first: int) -> None:
    findings = try_seeds(first, first + PORTION, None, family)

    assert findings.failures == []
    assert findings.counts["path: went on"] > PORTION
    assert findings.counts["path: recurred"] > PORTION
    assert findings.counts["path: withdrawn on its way"] > 0
    assert findings.counts["path: looked ahead"] > 0
