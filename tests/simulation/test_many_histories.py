"""Ten thousand histories for each backend, as `make simulate` runs them: every fault happens, every path is taken."""

from __future__ import annotations

import pytest
from tests.simulation.counting import ENOUGH_RUNS, missing
from tests.simulation.hunting import hunt
from tests.simulation.plans.families import PLANS


@pytest.mark.nightly
@pytest.mark.parametrize("backend", PLANS)
def test_of_ten_thousand_histories_none_breaks_a_promise_and_no_fault_is_left_out(backend: str) -> None:
    findings = hunt(0, ENOUGH_RUNS, None, lambda findings: None, backend)

    assert (findings.runs, findings.failures) == (ENOUGH_RUNS, [])
    assert missing(findings.counts, backend) == []
