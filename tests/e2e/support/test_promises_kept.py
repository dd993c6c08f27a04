from __future__ import annotations

import pytest
from tests.e2e.support.promises import PromiseBroken, require_kept

TWO_LOST = {"records": 10, "arrived": 8, "faults": {"lost": {"count": 2, "first": [3, 4]}}}


def test_records_that_were_lost_are_a_broken_promise() -> None:
    with pytest.raises(PromiseBroken, match=r"'lost': {'count': 2, 'first': \[3, 4\]}"):
        require_kept(TWO_LOST)


def test_a_fault_that_a_test_expects_is_none_and_another_still_is() -> None:
    require_kept(TWO_LOST, besides={"lost"})

    with pytest.raises(PromiseBroken):
        require_kept({**TWO_LOST, "faults": {"lost": {}, "twice": {}}}, besides={"lost"})
