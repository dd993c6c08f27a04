"""Plans for relays with names in their group: other histories, with crashes and starts in place, and wrong removals."""

from __future__ import annotations

import random

from tests.simulation.faults import OF_MEMBERS, Fault, What
from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.plan import Action, Arm, Pass, Plan, Remove, Setup, StartTwin
from tests.simulation.plans.planning import OF_BACKLOG, effect_for, plan_for
from tests.simulation.world.bucket_log import EFFECTS

SHARES = (0.05, 0.15, 0.3)
STARTS_MS = (0, 0, 100, 700, 1_500, 4_000)
REMOVES_MS = (None, 100, 1_000)
SHORT_MS = (0, 10, 120, 600)
"""From a freeze until somebody takes the relay for dead."""


def member_plan_for(seed: int) -> Plan:
    """The history of this seed with Redis, and with what happens to members."""
    return _with_names(plan_for(seed), seed)


def member_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics, or both backends in turn."""
    return _with_names(bucket_plan_for(seed), seed)


def _with_names(plan: Plan, seed: int) -> Plan:
    # Chance of its own: what the seed stands for without names stays as it is.
    rng = random.Random(f"members {seed}")
    share = rng.choice(SHARES)
    setup = plan.setup._replace(named=True, removes_gone_ms=rng.choice(REMOVES_MS))
    actions: list[Action] = []
    for action in plan.actions:
        if isinstance(action, Pass) and rng.random() < share:
            actions += _trouble(rng, setup)
        actions.append(action)
    return Plan(setup, tuple(actions))


def _trouble(rng: random.Random, setup: Setup) -> list[Action]:
    """Return what happens to a member in one turn: at an effect, or to one that runs or is frozen."""
    relay, kind = rng.choice([0, 0, 1]), rng.random()
    if kind < 0.6:
        what = rng.choices(OF_MEMBERS, [4, 1, 1])[0]
        length_ms = rng.choice(STARTS_MS) if what is What.RESTART else 0
        return [Arm(relay, Fault(_effect(rng, setup), rng.choice([1, 1, 2]), what, rng.random() < 0.5, length_ms))]
    mistaken = StartTwin(relay) if rng.random() < 0.5 else Remove(relay, rng.random() < 0.5)
    if kind < 0.7:
        return [mistaken]
    freeze = Fault(_effect(rng, setup), 1, What.FREEZE, rng.random() < 0.5, rng.choice([0, 700, 3_000, 15_000]))
    return [Arm(relay, freeze), Pass(rng.choice(SHORT_MS)), mistaken]


def _effect(rng: random.Random, setup: Setup) -> str:
    effect = effect_for(rng, setup)
    in_topics = "B" in setup.backends and ("R" not in setup.backends or rng.random() < 0.5)
    return rng.choice(EFFECTS) if effect in OF_BACKLOG and in_topics else effect
