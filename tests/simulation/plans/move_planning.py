"""Plans in which somebody moves the clock of the relays ahead while records wait, and waits for them to follow."""

from __future__ import annotations

import random

from tests.simulation.faults import Fault, What
from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.plan import Action, Advance, Arm, BacklogWiped, Pass, Plan, Start
from tests.simulation.plans.planning import plan_for

SHARES = (0.03, 0.1, 0.25)
ADVANCES_MS = (1, 200, 3_000, 9_000, 11_000, 60_000, 150_000, 86_400_000)


def move_plan_for(seed: int) -> Plan:
    """The history of this seed with Redis, and with a clock that is moved."""
    return _with_advances(plan_for(seed), seed)


def move_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics, or both backends in turn."""
    return _with_advances(bucket_plan_for(seed), seed)


def _with_advances(plan: Plan, seed: int) -> Plan:
    # Chance of its own: what the seed stands for with a clock that nobody moves stays as it is.
    rng = random.Random(f"moves {seed}")
    share = rng.choice(SHARES)
    setup = plan.setup._replace(
        moves=True,
        told=rng.choice(["all", "all", "some"]),
        second_clocks=rng.choice(["all", "some", "", ""]),
        slow_ms=rng.choice([0, 0, 5, 300]),
    )
    actions: list[Action] = []
    for action in plan.actions:
        if isinstance(action, Pass) and rng.random() < share:
            actions += _advance(rng)
        actions.append(action)
    return Plan(setup, tuple(actions))


def _advance(rng: random.Random) -> list[Action]:
    """Return an advance, in the middle of which a relay may die, stand still, or be joined by another one."""
    kind, around = rng.random(), list[Action]()
    if kind < 0.2:
        around = [Arm(0, Fault(rng.choice(["commit", "position", "put", "poll"]), 1, What.CRASH))]
    elif kind < 0.35:
        around = [Arm(0, Fault(rng.choice(["commit", "put"]), 1, What.FREEZE, length_ms=0))]
    elif kind < 0.5:
        around = [Start()]
    elif kind < 0.6:
        around = [BacklogWiped()]
    return [*around, Advance(rng.choice(ADVANCES_MS)), Pass(rng.choice([0, 1, 60, 600]))]
