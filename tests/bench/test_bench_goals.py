from __future__ import annotations

import pytest
from bench.figures.goals import AtLeast, AtMost, Verdict


@pytest.mark.parametrize(
    ("goal", "value", "expected"),
    [
        (AtLeast(0.6), 0.6, Verdict.MET),
        (AtLeast(0.6), 0.59, Verdict.MISSED),
        (AtMost(20), 20, Verdict.MET),
        (AtMost(20), 21, Verdict.MISSED),
    ],
)
def test_a_goal_includes_its_limit(goal: AtLeast | AtMost, value: float, expected: Verdict) -> None:
    found = goal.judge(value)

    assert found is expected
