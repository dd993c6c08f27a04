"""A failing history becomes as short as it can be."""

from __future__ import annotations

from tests.simulation.faults import Fault, What
from tests.simulation.plans.plan import Arm, BacklogWiped, Pass, Plan, Produce, Recipe, Setup
from tests.simulation.plans.planning import plan_for
from tests.simulation.plans.shrink import Shrinker
from tests.simulation.tracing import told


def test_only_what_is_needed_to_fail_is_left() -> None:
    plan = plan_for(5)

    def fails(candidate: Plan) -> bool:
        return sum(isinstance(action, Pass) for action in candidate.actions) >= 2

    shortest = Shrinker(plan, fails).shrink()

    assert shortest == Plan(Setup(transactional=plan.setup.transactional), (Pass(0), Pass(0)))


def test_a_plan_is_told_line_by_line() -> None:
    fault = Fault("put", 2, What.FREEZE, before=False, length_ms=700)
    recipes = (Recipe(due_ms=5), Recipe(name=b"a", cancel=True))
    plan = Plan(Setup(chunk=1), (Produce(recipes), Arm(0, fault), BacklogWiped(), Pass(30)))

    assert told(plan) == [
        "setup: chunk=1",
        "produce a record due in 5 ms to 0, a cancel of a to 0",
        "await: freeze after put (700 ms), number 2 of relay -1",
        "BacklogWiped()",
        "30 ms pass, and every relay takes a turn",
    ]
