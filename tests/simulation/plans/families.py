"""Families of histories: of relays with Redis, with bucket topics and both in turn, and with names in their group."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.simulation.faults import Fault, What
from tests.simulation.mutants.table import MUTANTS
from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.clock_planning import clock_bucket_plan_for, clock_plan_for
from tests.simulation.plans.edit_planning import edit_bucket_plan_for, edit_plan_for
from tests.simulation.plans.identity_planning import identity_bucket_plan_for, identity_plan_for
from tests.simulation.plans.member_planning import member_bucket_plan_for, member_plan_for
from tests.simulation.plans.move_planning import move_bucket_plan_for, move_plan_for
from tests.simulation.plans.plan import Action, Arm, Pass, Plan, Produce, Recipe
from tests.simulation.plans.planning import plan_for
from tests.simulation.plans.recurrence_planning import recurrence_bucket_plan_for, recurrence_plan_for
from tests.simulation.plans.target_planning import target_bucket_plan_for, target_plan_for
from tests.simulation.plans.trouble_planning import trouble_plan_for
from tests.simulation.plans.workloads import MESSAGES

OF_OTHERS = ("deliver-to", "deliver-after", "deliver-expires-at")
"""Headers that only the native dialect reads."""
HAND_OVERS = 0.15
"""Of the turns of a history."""
KEPT_FOR_MS = (0, 50, 400, 400, 2_000, 2_000, 9_000, 10_000, 11_000, 15_000, 40_000, 150_000)


def scheduler_plan_for(seed: int) -> Plan:
    """A history of a DelayTopic whose dialect writes tombstones and a history topic."""
    plan = plan_for(seed)
    return plan._replace(setup=plan.setup._replace(scheduler=True, delay_ms=None))


def redelivery_plan_for(seed: int) -> Plan:
    """A history of a DelayTopic whose records put off others, with Redis."""
    return _with_markers(plan_for(seed), seed)


def redelivery_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics, or both backends in turn."""
    return _with_markers(bucket_plan_for(seed), seed)


def _with_markers(plan: Plan, seed: int) -> Plan:
    """Make of a plan's records markers of few messages: each has several of them."""
    rng = random.Random(seed)
    names = MESSAGES[: rng.choice([2, 6, 30])]
    keeps = rng.choice([0.2, 0.4, 0.6])
    actions = [
        action._replace(recipes=tuple(_marker(recipe, rng, names, keeps) for recipe in action.recipes))
        if isinstance(action, Produce)
        else action
        for action in plan.actions
    ]
    return Plan(plan.setup._replace(redelivery=True, delay_ms=None), tuple(actions))


def _marker(recipe: Recipe, rng: random.Random, names: Sequence[bytes], keeps: float) -> Recipe:
    others = [(name, value) for name, value in recipe.others if name not in OF_OTHERS]
    if rng.random() < 0.1:
        return recipe._replace(name=None, cancel=False, others=others)
    name, kind = rng.choice(names), rng.random()
    if kind < keeps:
        after_ms = rng.choice(KEPT_FOR_MS)
        return recipe._replace(name=name, due_ms=after_ms, at_ms=None, cancel=False, keeps=True, others=others)
    return recipe._replace(name=name, cancel=kind < keeps + 0.1, others=others)


def hand_over_plan_for(seed: int) -> Plan:
    """A history with bucket topics in which shards often leave just after an aborted tick, behind a tick in doubt."""
    plan, rng = bucket_plan_for(seed), random.Random(f"hand over {seed}")
    actions: list[Action] = []
    for action in plan.actions:
        if isinstance(action, Pass) and rng.random() < HAND_OVERS:
            actions += (
                Arm(0, Fault("commit", 1, What.DECIDED, length_ms=rng.choice([100, 1_000, 5_000]))),
                Arm(0, Fault(rng.choice(["flush", "produce", "offsets"]), rng.choice([1, 2]), What.ABORTABLE)),
                Arm(0, Fault(rng.choice(["poll", "abort", "flush"]), rng.choice([1, 2, 3]), What.REBALANCE)),
            )
        actions.append(action)
    return Plan(plan.setup._replace(relays=2, shards=2, transactional=True), tuple(actions))


def outcome_plan_for(seed: int) -> Plan:
    """A history of relays that tell how each schedule ended, with Redis or a fixed delay; many records have ids."""
    return _with_outcomes(plan_for(seed), seed)


def outcome_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics, or both backends in turn."""
    return _with_outcomes(bucket_plan_for(seed), seed)


def _with_outcomes(plan: Plan, seed: int) -> Plan:
    rng = random.Random(f"outcomes {seed}")
    names, named, cancels = MESSAGES[: rng.choice([1, 3, 10])], rng.choice([0.3, 0.8]), rng.choice([0.1, 0.3, 0.5])

    def changed(recipe: Recipe) -> Recipe:
        others = [*recipe.others, *rng.choice([[], [], [("deliver-requested-by", rng.choice([b"ann", b"bo"]))]])]
        if plan.setup.delay_ms is not None or recipe.name is not None or rng.random() >= named:
            return recipe._replace(others=others)
        cancel = rng.random() < cancels
        if cancel:
            others = [(name, value) for name, value in others if name not in OF_OTHERS]
        return recipe._replace(name=rng.choice(names), cancel=cancel, others=others)

    actions = [
        action._replace(recipes=tuple(map(changed, action.recipes))) if isinstance(action, Produce) else action
        for action in plan.actions
    ]
    return Plan(plan.setup._replace(outcomes=True), tuple(actions))


PLANS: dict[str, Callable[[int], Plan]] = {
    "RedisZset": plan_for,
    "KafkaBuckets": bucket_plan_for,
    "Scheduler": scheduler_plan_for,
    "Redelivery": redelivery_plan_for,
    "RedeliveryBuckets": redelivery_bucket_plan_for,
    "Trouble": trouble_plan_for,
    "Targets": target_plan_for,
    "TargetsBuckets": target_bucket_plan_for,
    "Members": member_plan_for,
    "MembersBuckets": member_bucket_plan_for,
    "Edits": edit_plan_for,
    "EditsBuckets": edit_bucket_plan_for,
    "Identity": identity_plan_for,
    "IdentityBuckets": identity_bucket_plan_for,
    "Clocks": clock_plan_for,
    "ClocksBuckets": clock_bucket_plan_for,
    "Moves": move_plan_for,
    "MovesBuckets": move_bucket_plan_for,
    "HandOvers": hand_over_plan_for,
    "Outcomes": outcome_plan_for,
    "OutcomesBuckets": outcome_bucket_plan_for,
    "Recurrence": recurrence_plan_for,
    "RecurrenceBuckets": recurrence_bucket_plan_for,
}


def plans_for_mutant(name: str) -> Callable[[int], Plan]:
    """The histories that are to catch a mutant."""
    return PLANS[MUTANTS[name].backend]
