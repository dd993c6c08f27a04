"""Three hundred histories of relays whose Redis is full or demoted, and whose segments somebody copies."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100
FIRST_SEEDS = range(0, 300, PORTION)


@pytest.mark.long
@pytest.mark.parametrize("first", FIRST_SEEDS)
def test_a_redis_in_trouble_breaks_no_promise_and_keeps_nothing_from_leaving(first: int) -> None:
    findings = try_seeds(first, first + PORTION, None, "Trouble")

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["path: tried again, PutRefused"] > PORTION
    assert findings.counts["event: backlog demoted"] > PORTION
    assert findings.counts["path: segment replaced"] > PORTION / 20
