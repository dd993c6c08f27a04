"""Histories full of faults for relays with names in their group, with Redis and with bucket topics."""

from __future__ import annotations

import pytest
from tests.simulation.hunting import EVERY_DAY, try_seeds


@pytest.mark.long
@pytest.mark.parametrize("family", ["Members", "MembersBuckets"])
def test_who_starts_in_place_and_who_was_taken_out_by_mistake_breaks_no_promise(family: str) -> None:
    findings = try_seeds(0, EVERY_DAY, None, family)

    assert (findings.runs, findings.failures) == (EVERY_DAY, [])
    assert findings.counts["event: remove"] > EVERY_DAY
    assert findings.counts["path: took a place in the group"] > EVERY_DAY
    assert findings.counts["path: fenced by its name"] > EVERY_DAY
    assert findings.counts["path: took its own name back"] > EVERY_DAY / 20
