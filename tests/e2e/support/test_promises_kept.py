from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.support.promises import BROKEN_PROMISES, PromiseBroken, remember, require_kept

TWO_LOST = {"records": 10, "arrived": 8, "faults": {"lost": {"count": 2, "first": [3, 4]}}}


def test_records_that_were_lost_are_a_broken_promise() -> None:
    with pytest.raises(PromiseBroken, match=r"'lost': {'count': 2, 'first': \[3, 4\]}"):
        require_kept(TWO_LOST)


def test_a_fault_that_a_test_expects_is_none_and_another_still_is() -> None:
    require_kept(TWO_LOST, besides={"lost"})

    with pytest.raises(PromiseBroken):
        require_kept({**TWO_LOST, "faults": {"lost": {}, "twice": {}}}, besides={"lost"})


class CacheOfARun(dict[str, Any]):
    """In memory, since what is in the real one keeps `make test-failed` from trying anything."""

    def set(self, key: str, value: object) -> None:
        self[key] = value


def test_broken_promises_are_remembered_each_and_other_failures_are_not() -> None:
    cache = CacheOfARun()

    remember(cache, "the first", PromiseBroken("lost"))
    remember(cache, "slow", AssertionError("late"))
    remember(cache, "the second", PromiseBroken("twice"))

    assert cache == {BROKEN_PROMISES: ["the first", "the second"]}
