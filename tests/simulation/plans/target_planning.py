"""Plans for relays whose targets are in trouble: a topic, or one partition of it, takes nothing for a time.

Some records are too large for the targets, of which some fit once they are compressed.
"""

from __future__ import annotations

import random

from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.plan import Action, Pass, Plan, Produce, Recipe, TargetSilent
from tests.simulation.plans.planning import plan_for
from tests.simulation.plans.workloads import ELSEWHERE
from tests.simulation.world.refusing import LARGE_VALUES

SHARES = (0.02, 0.06, 0.15)
SILENT_MS = (50, 700, 3_000, 6_000, 12_000, 60_000)
FURTHER = 0.25
"""The share of records that name the further target."""
LARGE = 0.03
"""The share of records that are too large as they are."""


def target_plan_for(seed: int) -> Plan:
    """The history of this seed, and what its targets take."""
    return _with_silences(plan_for(seed), seed)


def target_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics, which always answer, or both backends in turn."""
    return _with_silences(bucket_plan_for(seed), seed)


def _with_silences(plan: Plan, seed: int) -> Plan:
    # Chance of its own: what the seed stands for without trouble stays as it is.
    rng = random.Random(f"targets {seed}")
    share, well = rng.choice(SHARES), rng.choice([0, 0.3])
    setup = plan.setup._replace(stays_silent=plan.setup.shards > 1 and rng.random() < 0.5)
    actions: list[Action] = []
    for action in plan.actions:
        if isinstance(action, Pass) and rng.random() < share:
            topic = rng.choice(["target", "target", "other", "other", "dead"])
            partition = rng.randrange(setup.shards) if topic == "target" else 0
            actions.append(TargetSilent(topic, partition, rng.choice(SILENT_MS), rng.random() < well))
        if isinstance(action, Produce) and setup.delay_ms is None:
            actions.append(_with_elsewhere(action, rng))
        else:
            actions.append(action)
    return Plan(setup, tuple(_with_large(action, rng) for action in actions))


def _with_large(action: Action, rng: random.Random) -> Action:
    if not isinstance(action, Produce):
        return action
    return action._replace(
        recipes=tuple(
            recipe._replace(value=rng.choice(LARGE_VALUES)) if not recipe.cancel and rng.random() < LARGE else recipe
            for recipe in action.recipes
        )
    )


def _with_elsewhere(action: Produce, rng: random.Random) -> Produce:
    return action._replace(recipes=tuple(_elsewhere(recipe, rng) for recipe in action.recipes))


def _elsewhere(recipe: Recipe, rng: random.Random) -> Recipe:
    if recipe.cancel or rng.random() >= FURTHER:
        return recipe
    return recipe._replace(others=[*recipe.others, *ELSEWHERE])
