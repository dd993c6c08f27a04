"""Plans in which records recur: other histories, in which many records have a rule instead of a time."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.edit_planning import with_edits
from tests.simulation.plans.plan import Plan, Produce, Recipe
from tests.simulation.plans.planning import plan_for
from tests.simulation.plans.workloads import MESSAGES

OF_OTHERS = ("deliver-after", "deliver-at", "deliver-expires-at")
"""Headers that do not go with a rule."""
INTERVALS = (b"1s", b"3s", b"11s", b"20s", b"150s")
CRONS = (b"*/7 * * * * *", b"30 * * * * *", b"* * * * *", b"*/15 * * * * mon-fri")
LADDERS = (b"3s,1s,0s", b"20s,11s,10s", b"1h,15s,400ms", b"0s")
ENDS_MS = (500, 9_000, 20_000, 150_000)
JITTERS = (b"1s", b"800ms")
EDITED = 0.3
"""The share of histories in which the rules of the DelayTopic are edited, too."""


def recurrence_plan_for(seed: int) -> Plan:
    """The history of this seed with Redis, and with records that recur."""
    return _with_rules(plan_for(seed), seed)


def recurrence_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics, or both backends in turn."""
    return _with_rules(bucket_plan_for(seed), seed)


def _with_rules(plan: Plan, seed: int) -> Plan:
    # Chance of its own: what the seed stands for without rules stays as it is.
    rng = random.Random(f"recurrence {seed}")
    names, recurs, cancels = MESSAGES[: rng.choice([2, 6, 30])], rng.choice([0.1, 0.3, 0.6]), rng.choice([0.05, 0.2])
    actions = [
        action._replace(recipes=tuple(_changed(recipe, rng, names, recurs, cancels) for recipe in action.recipes))
        if isinstance(action, Produce)
        else action
        for action in plan.actions
    ]
    told = rng.random() < 0.4
    plan = Plan(plan.setup._replace(recurs=True, delay_ms=None, outcomes=told), tuple(actions))
    return with_edits(plan, rng, 0, meets=rng.random() < 0.2) if rng.random() < EDITED else plan


def _changed(recipe: Recipe, rng: random.Random, names: Sequence[bytes], recurs: float, cancels: float) -> Recipe:
    chance = rng.random()
    if chance >= recurs + cancels:
        return recipe
    others = [header for header in recipe.others if header[0] not in OF_OTHERS]
    if chance < cancels:
        others = [header for header in others if header[0] != "deliver-to"]
        return Recipe(recipe.partition, name=rng.choice(names), cancel=True, others=others)
    return recipe._replace(
        name=rng.choice(names), cancel=False, due_ms=None, at_ms=None, others=others, rule=_rule(rng)
    )


def _rule(rng: random.Random) -> Sequence[tuple[str, bytes]]:
    """Return the headers of a rule that ends; a time with a plus is relative to now, one with a wave on a wall."""
    kind = rng.random()
    if kind < 0.15:
        return [("deliver-at", b"~%d" % rng.choice(ENDS_MS)), ("deliver-tz", b"Europe/Berlin")]
    ends: list[tuple[str, bytes]] = [("deliver-count", b"%d" % rng.choice([1, 2, 3, 5]))]
    if kind < 0.35:
        rule = [("deliver-ladder", rng.choice(LADDERS)), ("deliver-at", b"+%d" % rng.choice(ENDS_MS))]
        return [*rule, *_missed(rng)]
    if rng.random() < 0.4:
        ends.append(("deliver-until", b"+%d" % rng.choice([25_000, 200_000])))
    if rng.random() < 0.3:
        ends.append(("deliver-from", b"+%d" % rng.choice([2_000, 12_000])))
    if rng.random() < 0.3:
        ends.append(("deliver-jitter", rng.choice(JITTERS)))
    if kind < 0.7:
        return [("deliver-every", rng.choice(INTERVALS)), *ends, *_missed(rng)]
    zone = [("deliver-tz", b"America/New_York")] if rng.random() < 0.5 else []
    return [("deliver-cron", rng.choice(CRONS)), *zone, *ends, *_missed(rng)]


def _missed(rng: random.Random) -> Sequence[tuple[str, bytes]]:
    return rng.choice(
        [
            [],
            [("deliver-missed", b"Latest")],
            [("deliver-missed", b"None")],
            [("deliver-missed", b"All"), ("deliver-catch-up", rng.choice([b"1h", b"5s"]))],
        ]
    )
