"""Plans in which the rules are edited while records wait, between and within the lives of relays."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.simulation.faults import Fault, What
from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.plan import (
    Action,
    Arm,
    BacklogWiped,
    Edit,
    Pass,
    Plan,
    Produce,
    Recipe,
    RuleSet,
    Start,
    Stop,
)
from tests.simulation.plans.planning import plan_for

MAX_DELAYS_MS = (1_000, 5_000, 15_000, 60_000, 200_000, 8_640_000_000)
DEFAULT_DELAYS_MS = (None, 0, 1_000, 9_000, 11_000, 20_000, 150_000)
FIXED_DELAYS_MS = (500, 5_000, 30_000)
PLAIN = 0.3
"""The share of records that name no time: the default delay is theirs."""
IN_TURN = 0.3
"""The share of histories with bucket topics in which Redis is their backlog in turn."""
CHANCES = (0.02, 0.08, 0.25)
FIXED = (0, 0, 0.3)
"""The share of rules that are a fixed delay."""


def edit_plan_for(seed: int) -> Plan:
    """A history whose rules are edited, with Redis."""
    rng = random.Random(seed)
    plan = plan_for(seed)
    while plan.setup.delay_ms is not None:
        plan = plan_for(rng.randrange(1 << 40))
    return with_edits(plan, rng, rng.choice(FIXED))


def edit_bucket_plan_for(seed: int) -> Plan:
    """The same with bucket topics, or both backends in turn: rules begin while Redis has no owner then."""
    plan, rng = bucket_plan_for(seed), random.Random(f"backends of {seed}")
    in_turn = rng.random() < IN_TURN
    if in_turn:
        plan = plan._replace(setup=plan.setup._replace(backends=rng.choice(["RRB", "RBR", "RB"])))
    rng = random.Random(seed)
    return with_edits(plan, rng, rng.choice(FIXED), meets=in_turn)


def with_edits(plan: Plan, rng: random.Random, fixed: float, *, meets: bool = False) -> Plan:
    """Edit the rules of a history; a share of the edits is to a `fixed` delay."""
    setup = plan.setup._replace(rules=_rules(rng, fixed), declares=rng.random() < 0.7)
    meets = rng.random() < 0.2 or meets
    if meets:
        setup = setup._replace(deaf_ms=3_000)
    chance = rng.choice(CHANCES)
    actions = [
        each
        for action in plan.actions
        for each in _around(action, rng, chance, fixed, setup.session_ms if meets else None)
    ]
    return Plan(setup, tuple(actions))


def _around(
    action: Action, rng: random.Random, chance: float, fixed: float, session_ms: int | None
) -> Iterator[Action]:
    if isinstance(action, Produce):
        yield action._replace(recipes=tuple(_plain(recipe, rng) for recipe in action.recipes))
        return
    yield action
    if isinstance(action, Pass) and rng.random() < chance:
        yield Edit(_rules(rng, fixed))
        yield from _rollout(rng, session_ms)


def _plain(recipe: Recipe, rng: random.Random) -> Recipe:
    return recipe._replace(due_ms=None, at_ms=None) if rng.random() < PLAIN else recipe


def _rollout(rng: random.Random, session_ms: int | None) -> Iterator[Action]:
    """Relays with the edited rules come beside those with the former ones, or after them; or none for a while.

    With `session_ms` former and later ones meet at a backlog.
    """
    kind = rng.random()
    if session_ms is not None and kind < 0.6:
        yield from _meeting(rng, session_ms)
    elif kind < 0.4:
        yield Start()
        yield Pass(rng.choice([0, 60, 600]))
        yield Stop(1)
    elif kind < 0.6:
        yield Stop(0)
    elif kind < 0.8:
        yield Arm(0, Fault(rng.choice(["put", "commit", "poll"]), 1, What.CRASH))
    elif kind < 0.9:
        # A relay of before stands still while the next one begins with the edited rules.
        yield Arm(0, Fault(rng.choice(["put", "put", "commit"]), 1, What.FREEZE, length_ms=0))
    if rng.random() < 0.15:
        yield BacklogWiped()


def _meeting(rng: random.Random, session_ms: int) -> Iterator[Action]:
    """A relay of before the edit wakes up while its successor stands still in front of its claim of the backlog."""
    yield Arm(0, Fault("poll", 1, What.FREEZE, length_ms=session_ms + rng.choice([200, 600, 1_500])))
    yield Pass(60)
    yield Start()
    yield Arm(0, Fault("put", 1, What.FREEZE, length_ms=rng.choice([700, 3_000])))
    yield Pass(session_ms + 50)
    yield Produce(tuple(Recipe(shard, due_ms) for shard in (0, 1) for due_ms in (None, 15_000, 20_000)))
    for _ in range(4):
        yield Pass(rng.choice([100, 300, 600]))


def _rules(rng: random.Random, fixed: float) -> RuleSet:
    if rng.random() < fixed:
        delay_ms = rng.choice(FIXED_DELAYS_MS)
        return RuleSet(delay_ms, None, delay_ms, ids=False, allowed=rng.random() < 0.7)
    max_delay_ms = rng.choice(MAX_DELAYS_MS)
    default_ms = rng.choice([ms for ms in DEFAULT_DELAYS_MS if ms is None or ms <= max_delay_ms])
    return RuleSet(max_delay_ms, default_ms, ids=rng.random() < 0.7, allowed=rng.random() < 0.7)
