"""Plans for relays whose clocks jump forth and back, some of which compare them with one that is right."""

from __future__ import annotations

import random

from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.plan import Action, ClockSilent, Pass, Plan, SetClock, Start
from tests.simulation.plans.planning import plan_for

SHARES = (0.05, 0.15, 0.3)
JUMPS_MS = (1_000, 3_000, 20_000, 60_000, 600_000)
SILENT_MS = (100, 1_500, 8_000, 70_000)


def clock_plan_for(seed: int) -> Plan:
    """The history of this seed with Redis, and with clocks that jump."""
    return _with_jumps(plan_for(seed), seed)


def clock_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics, or both backends in turn."""
    return _with_jumps(bucket_plan_for(seed), seed)


def _with_jumps(plan: Plan, seed: int) -> Plan:
    # Chance of its own: what the seed stands for with clocks that are right stays as it is.
    rng = random.Random(f"clocks {seed}")
    share, back = rng.choice(SHARES), rng.choice([0.3, 0.6])
    setup = plan.setup._replace(
        second_clocks=rng.choice(["all", "some", ""]),
        slow_ms=rng.choice([0, 0, 5, 300, 1_500]),
        relays=rng.choice([1, 2]),
    )
    actions: list[Action] = []
    for action in plan.actions:
        if isinstance(action, Pass) and rng.random() < share:
            actions += _jump(rng, back)
        actions.append(action)
    return Plan(setup, tuple(actions))


def _jump(rng: random.Random, back: float) -> list[Action]:
    """Return a jump: of a relay that has only just started, of one at work, or back to the time as it is."""
    if rng.random() < back:
        return [SetClock(rng.choice([0, 1]), 0, 0)]
    wrong_ms = rng.choice(JUMPS_MS) * rng.choice([1, 1, 1, -1])
    jump = SetClock(rng.choice([0, 1]), wrong_ms, rng.choice([0, 0, 0, -20, 20]))
    actions: list[Action] = [ClockSilent(rng.choice(SILENT_MS))] if rng.random() < 0.2 else []
    if rng.random() < 0.25:
        return [*actions, Start(), jump._replace(relay=0)]
    return [*actions, jump]
