from __future__ import annotations

import pytest
from bench.errors import BenchError
from bench.processes.plan import Phase, Plan, due_by_now
from hypothesis import given
from hypothesis import strategies as st

plans = st.builds(
    Plan, st.lists(st.builds(Phase, st.integers(1, 50_000), st.integers(1, 60)), max_size=4).map(tuple), st.integers(0)
)


@given(plans)
def test_a_plan_survives_the_command_line(plan: Plan) -> None:
    found = Plan.parse(str(plan))

    assert found == plan


def test_a_plan_numbers_its_records_through() -> None:
    plan = Plan.parse("2000x3,10x2,500")

    assert plan.ranges() == [range(6_000), range(6_000, 6_020), range(6_020, 6_520)]
    assert plan.records == 6_520


@pytest.mark.parametrize("text", ["", "2000x3", "2000,5", "2000x3x4,5", "ax3,5"])
def test_a_plan_that_cannot_be_read_says_how_to_write_one(text: str) -> None:
    with pytest.raises(BenchError, match="write it like 2000x8,10000x8,50000"):
        Plan.parse(text)


@given(st.floats(0, 100))
def test_a_phase_sends_at_its_rate_and_then_no_more(elapsed_s: float) -> None:
    phase = Phase(per_second=1_000, seconds=5)

    found = due_by_now(phase, elapsed_s)

    assert found == (5_000 if elapsed_s >= 5 else int(elapsed_s * 1_000))
