"""Two hundred histories full of faults for relays whose dialect puts off, with Redis and with bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100


@pytest.mark.long
@pytest.mark.parametrize("family", ["Redelivery", "RedeliveryBuckets"])
def test_each_message_comes_back_once_unless_it_ends_and_never_before_its_deadline(family: str) -> None:
    findings = try_seeds(0, PORTION, None, family)

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["path: put off"] > PORTION
    assert findings.counts["path: withdrawn on its way"] > PORTION / 20
    assert findings.counts["path: looked ahead"] > PORTION
