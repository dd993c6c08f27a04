"""Histories of relays whose Redis is full or demoted, and whose segments somebody copies."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
def test_a_redis_in_trouble_breaks_no_promise_and_keeps_nothing_from_leaving() -> None:
    findings = try_seeds(0, EVERY_DAY, None, "Trouble")

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["path: tried again, PutRefused"] > EVERY_DAY
    assert findings.counts["event: backlog demoted"] > EVERY_DAY
    assert findings.counts["path: segment replaced"] > EVERY_DAY / 20
