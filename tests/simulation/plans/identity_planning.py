"""Plans in which the source becomes another one, or the group's offsets do: other histories, with such changes."""

from __future__ import annotations

import random

from tests.simulation.faults import Fault, What
from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.plan import (
    Accept,
    Action,
    Arm,
    BacklogRolledBack,
    BacklogWiped,
    BucketDamaged,
    Pass,
    Plan,
    Retain,
    SourceChanged,
)
from tests.simulation.plans.planning import plan_for

CHANGES = ("made anew", "replaced", "mirrored", "cut", "cut", "lost", "set")
SHARES = (0.0, 0.3, 0.6, 0.9)
WAITS_MS = (0, 100, 3_000, 12_000)
BESIDES = Retain | BucketDamaged | BacklogRolledBack | BacklogWiped
"""A backlog that loses something as well is more than can be made good: what it had is then neither in it nor known."""
AT_THE_LOOK = (What.CRASH, What.FREEZE)


def identity_plan_for(seed: int) -> Plan:
    """The history of this seed with Redis, and with changes of the source."""
    return _with_changes(plan_for(seed), seed)


def identity_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics alone: what moves from one backend to another is lost with its offsets."""
    return _with_changes(bucket_plan_for(seed, "B"), seed)


def _with_changes(plan: Plan, seed: int) -> Plan:
    # Chance of its own: what the seed stands for without changes stays as it is.
    rng = random.Random(f"identity {seed}")
    actions: list[Action] = [action for action in plan.actions if not isinstance(action, BESIDES)]
    # Keys that are all replaced, and offsets that are lost: nobody can tell any more what a backlog held.
    keys = "same" if plan.setup.keys else ""
    setup = plan.setup._replace(delay_ms=None, transactional=True, keys=keys)
    for _ in range(rng.choice([1, 1, 2])):
        place = rng.randrange(len(actions) // 4, len(actions))
        actions[place:place] = _change(rng)
    return Plan(setup, tuple(actions))


def _change(rng: random.Random) -> list[Action]:
    """Return a change, what happens to the relay that sees it first, and when somebody accepts it."""
    trouble: list[Action] = []
    if rng.random() < 0.3:
        trouble = [Arm(0, Fault("look", 1, rng.choice(AT_THE_LOOK), rng.random() < 0.5, rng.choice([700, 8_000])))]
    change = SourceChanged(rng.choice(CHANGES), rng.choice(SHARES))
    return [*trouble, change, Pass(rng.choice(WAITS_MS)), Pass(1_100), Accept(), Pass(100)]
