"""Histories full of faults for relays with bucket topics, some of them with both backends in turn."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import hunt

RUNS = 1_000


@pytest.mark.long
def test_no_history_with_bucket_topics_breaks_a_promise() -> None:
    findings = hunt(0, RUNS, None, lambda findings: None, "KafkaBuckets")

    assert (findings.runs, findings.failures) == (RUNS, [])
    assert findings.counts["event: bucket damaged"] > 100
    assert findings.counts["path: recovered, bucket-lost"] > 10
    assert findings.counts["path: bucket read"] > 10_000
    assert findings.counts["path: range split"] > 100
    assert findings.counts["path: range merged"] > 100
