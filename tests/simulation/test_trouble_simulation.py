"""A hundred histories of relays whose Redis is full or demoted, and whose segments somebody copies."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100


@pytest.mark.long
def test_a_redis_in_trouble_breaks_no_promise_and_keeps_nothing_from_leaving() -> None:
    findings = try_seeds(0, PORTION, None, "Trouble")

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["path: tried again, PutRefused"] > PORTION
    assert findings.counts["event: backlog demoted"] > PORTION
    assert findings.counts["path: segment replaced"] > PORTION / 20
