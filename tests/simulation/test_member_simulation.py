"""Two hundred histories full of faults for relays with names in their group, with Redis and with bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import try_seeds

PORTION = 100


@pytest.mark.long
@pytest.mark.parametrize("family", ["Members", "MembersBuckets"])
def test_who_starts_in_place_and_who_was_taken_out_by_mistake_breaks_no_promise(family: str) -> None:
    findings = try_seeds(0, PORTION, None, family)

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["event: remove"] > PORTION
    assert findings.counts["path: took a place in the group"] > PORTION
    assert findings.counts["path: fenced by its name"] > PORTION
    assert findings.counts["path: took its own name back"] > PORTION / 20
