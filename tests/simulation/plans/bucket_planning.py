"""Plans for relays with bucket topics: the same histories, with other things that go wrong with the backlog."""

from __future__ import annotations

import random

from tests.simulation.faults import Fault, What
from tests.simulation.plans.plan import (
    Action,
    Arm,
    BacklogAway,
    BacklogCopied,
    BacklogRolledBack,
    BacklogWiped,
    BucketDamaged,
    Plan,
)
from tests.simulation.plans.planning import OF_BACKLOG, plan_for
from tests.simulation.world.bucket_log import EFFECTS

BACKLOG = BacklogAway | BacklogCopied | BacklogRolledBack | BacklogWiped
BACKENDS = ("B", "B", "B", "RB", "BR", "RRB")


def bucket_plan_for(seed: int, backends: str | None = None) -> Plan:
    """The history that this seed stands for; `backends` as in `Setup`, chosen by the seed if nothing is said."""
    rng = random.Random(seed)
    plan = plan_for(seed)
    while plan.setup.delay_ms is not None:
        plan = plan_for(rng.randrange(1 << 40))
    chosen = backends or rng.choice(BACKENDS)
    damaged = rng.random() < 0.3
    setup = plan.setup._replace(backends=chosen)
    return Plan(setup, tuple(_other(action, rng, chosen, damaged=damaged) for action in plan.actions))


def _other(action: Action, rng: random.Random, backends: str, *, damaged: bool) -> Action:
    if isinstance(action, BACKLOG) and "R" not in backends:
        what = rng.choice(["truncated", "emptied", "foreign"] if damaged else ["foreign"])
        return BucketDamaged(rng.choice([0, 0, 0, 1, 1, 2, 3, 8]), what)
    if isinstance(action, Arm) and action.fault.effect in OF_BACKLOG and ("R" not in backends or rng.random() < 0.5):
        return Arm(action.relay, _fault(action.fault, rng))
    return action


def _fault(fault: Fault, rng: random.Random) -> Fault:
    what = fault.what if fault.what in (What.CRASH, What.FREEZE, What.EVICTION, What.REBALANCE) else What.LOST
    return fault._replace(effect=rng.choice(EFFECTS), what=what)
