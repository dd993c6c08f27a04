"""Plans for relays whose Redis is in trouble: somebody fills it, has its primary demoted, or copies segments."""

from __future__ import annotations

import random

from tests.simulation.plans.plan import Action, BacklogDemoted, BacklogFull, Pass, Plan, SegmentReplaced
from tests.simulation.plans.planning import plan_for

SHARES = (0.05, 0.15, 0.3)
FULL_MS = (50, 700, 3_000, 12_000, 60_000, 400_000)
PLENTY = 1 << 62


def trouble_plan_for(seed: int) -> Plan:
    """The history of this seed with Redis, and with what happens to its server."""
    # Chance of its own: what the seed stands for without trouble stays as it is.
    rng, plan = random.Random(f"trouble {seed}"), plan_for(seed)
    share, full = rng.choice(SHARES), rng.choice([0.5, 0.9])
    setup = plan.setup._replace(
        held_bytes=rng.choice([1, 3_000, PLENTY]),
        offered=rng.choice([1, 3, 500]),
        stays_full=rng.random() < 0.5,
    )
    # Without a key, or with changing ones, nobody could tell.
    replaces = 0.1 if setup.keys == "same" else 0.0
    actions: list[Action] = []
    for action in plan.actions:
        if isinstance(action, Pass) and rng.random() < share:
            actions.append(BacklogFull(rng.choice(FULL_MS)) if rng.random() < full else BacklogDemoted())
        if replaces and isinstance(action, Pass) and rng.random() < replaces:
            actions.append(SegmentReplaced(rng.randrange(8)))
        actions.append(action)
    return Plan(setup, tuple(actions))
