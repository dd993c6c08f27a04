from __future__ import annotations

import pytest
from bench.figures.goals import AtLeast, AtMost, Goal, Verdict, all_of


@pytest.mark.parametrize(
    ("goal", "value", "expected"),
    [
        (AtLeast(0.6), 0.6, Verdict.OK),
        (AtLeast(0.6), 0.59, Verdict.MISSED),
        (AtMost(20), 20, Verdict.OK),
        (AtMost(20), 21, Verdict.MISSED),
    ],
)
def test_a_goal_includes_its_limit(goal: Goal, value: float, expected: Verdict) -> None:
    found = goal.judge(value)

    assert found is expected


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([Verdict.OK, Verdict.OK], Verdict.OK),
        ([Verdict.OK, Verdict.MISSED], Verdict.MISSED),
    ],
)
def test_several_goals_are_reached_together_or_not_at_all(verdicts: list[Verdict], expected: Verdict) -> None:
    found = all_of(*verdicts)

    assert found is expected
