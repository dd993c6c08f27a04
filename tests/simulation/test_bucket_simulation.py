"""A hundred histories full of faults for relays with bucket topics, some of them with both backends in turn."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100


@pytest.mark.long
def test_no_history_with_bucket_topics_breaks_a_promise() -> None:
    findings = try_seeds(0, PORTION, None, "KafkaBuckets")

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["event: bucket damaged"] > PORTION / 2
    assert findings.counts["path: recovered, bucket-lost"] > 0
    assert findings.counts["path: bucket read"] > 10 * PORTION
    assert findings.counts["path: stored again before the commit"] > PORTION / 10
    assert findings.counts["path: range split"] > PORTION / 10
    assert findings.counts["path: range merged"] > PORTION / 10
