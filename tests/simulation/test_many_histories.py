"""Ten thousand histories for each backend, as `make simulate` runs them: every fault happens, every path is taken."""

from __future__ import annotations

import pytest
from tests.simulation.counting import ENOUGH_RUNS, missing
from tests.simulation.hunting import hunt
from tests.simulation.plans.families import PLANS

BACKENDS = ("RedisZset", "KafkaBuckets")
RUNS_OF_OTHERS = 3_000
"""Enough for dialects and members: most histories have what these add."""
OF_CHANGES = (
    "Edits",
    "EditsBuckets",
    "Identity",
    "IdentityBuckets",
    "Trouble",
    "Clocks",
    "ClocksBuckets",
    "Targets",
    "Moves",
    "MovesBuckets",
    "Outcomes",
    "OutcomesBuckets",
    "Recurrence",
    "RecurrenceBuckets",
)
"""Families in which what matters is in few places of a history."""

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("backend", BACKENDS)
def test_of_ten_thousand_histories_none_breaks_a_promise_and_no_fault_is_left_out(backend: str) -> None:
    findings = hunt(0, ENOUGH_RUNS, None, lambda findings: None, backend)

    assert (findings.runs, findings.failures) == (ENOUGH_RUNS, [])
    assert missing(findings.counts, backend) == []


@pytest.mark.parametrize("family", [family for family in PLANS if family not in BACKENDS])
def test_of_thousands_of_histories_of_each_other_family_none_breaks_a_promise(family: str) -> None:
    runs = ENOUGH_RUNS if family in OF_CHANGES else RUNS_OF_OTHERS
    findings = hunt(0, runs, None, lambda findings: None, family)

    assert (findings.runs, findings.failures) == (runs, [])
