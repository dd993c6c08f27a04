"""From a seed to a plan. All chance is here; what follows from a plan is the same each time."""

from __future__ import annotations

import random

from tests.simulation.faults import ANSWERS, PROCESS, WEIGHTS, Fault, What
from tests.simulation.plans.plan import (
    Action,
    Arm,
    BacklogAway,
    BacklogCopied,
    BacklogRolledBack,
    BacklogWiped,
    Pass,
    Plan,
    Produce,
    Retain,
    Rotate,
    SetClock,
    Setup,
    Start,
    Stop,
)
from tests.simulation.plans.workloads import Workload, workload_for

from delaytopic_relay.core.entries import Schedule, size

SMALL_MEMORY = 5 * size(Schedule(1, 1, b"k", b"v", [("deliver-at", b"00000001")]))
"""For five records with one header, whichever implementation holds them."""
PLENTY = 1 << 30
TURNS_MS = (0, 1, 10, 30, 60, 60, 120, 120, 300, 600, 1_100, 3_000, 7_000)
TURNS = (50, 110)
FAULT_SHARES = (0.0, 0.05, 0.15, 0.3, 0.5)
FREEZES_MS = (100, 700, 3_000, 8_000, 15_000, 40_000)
LATE_MS = (1, 100, 1_000, 5_000, 20_000)
WITH_TRANSACTIONS = frozenset({"begin", "offsets", "commit", "abort", "fence", "replace"})
OF_BACKLOG = frozenset({"position", "put", "slices", "load", "ids", "drop", "check"})


def plan_for(seed: int) -> Plan:
    """The history that this seed stands for."""
    rng = random.Random(seed)
    keys, early = ("", "", "same", "changing")[seed % 4], (None, 0, 1, 3)[seed // 4 % 4]
    setup = _setup(rng)._replace(keys=keys, early=early)
    return Plan(setup, tuple(_actions(rng, setup)))


def _setup(rng: random.Random) -> Setup:
    delay_ms = rng.choice([500, 5_000, 30_000]) if rng.random() < 0.15 else None
    return Setup(
        shards=rng.choice([1, 2, 2]),
        relays=rng.choice([1, 1, 2]),
        transactional=rng.random() < 0.8,
        delay_ms=delay_ms,
        redis=delay_ms is None and rng.random() < 0.5,
        memory_bytes=rng.choice([SMALL_MEMORY, PLENTY, PLENTY]),
        chunk=rng.choice([1, 3, 8, 1_000]),
        session_ms=rng.choice([1_000, 2_000, 6_000]),
        deaf_ms=rng.choice([0, 0, 500, 3_000]),
        precision_ms=rng.choice([10, 50, 1_000]),
        lingers=rng.random() < 0.5,
        part_items=rng.choice([2, 1_000]),
        portion=rng.choice([1, 2, 16]),
        load_ms=rng.choice([0, 0, 1, 12]),
    )


def _actions(rng: random.Random, setup: Setup) -> list[Action]:
    workload = workload_for(rng, setup)
    share = rng.choice(FAULT_SHARES)
    skew_ms = rng.choice([0, 0, 2_000, 20_000]) if share else 0
    actions: list[Action] = []
    disaster: list[Action] = []
    for _ in range(rng.randrange(*TURNS)):
        actions += _produced(rng, workload)
        if rng.random() < share:
            actions += _trouble(rng, setup, skew_ms)
        if disaster and rng.random() < 0.2:
            actions += disaster
            disaster = []
        elif setup.delay_ms is None and rng.random() < share / 6:
            actions.append(BacklogCopied())
            disaster = [BacklogRolledBack(), Arm(0, _fault(rng, setup))]
        elif rng.random() < share / 5:
            actions.append(Arm(0, Fault(rng.choice(["put", "put", "commit"]), 1, What.FREEZE)))
        actions.append(Pass(rng.choice(TURNS_MS)))
    return actions


def _produced(rng: random.Random, workload: Workload) -> list[Action]:
    recipes = tuple(workload.recipe(rng) for _ in range(rng.choice([0, 0, 1, 2, 4])))
    if not recipes:
        return []
    if rng.random() < 0.1:
        return [Produce(recipes, rng.random() < 0.6, rng.choice([0, 100, 2_000]))]
    return [Produce(recipes)]


def _trouble(rng: random.Random, setup: Setup, skew_ms: int) -> list[Action]:
    """Return what goes wrong in one turn: mostly at an effect of a relay, else around them."""
    if rng.random() < 0.7:
        return [Arm(rng.choice([0, 0, 1]), _fault(rng, setup)) for _ in range(rng.choice([1, 1, 1, 2]))]
    store: list[Action] = [
        BacklogCopied(),
        BacklogCopied(),
        BacklogRolledBack(rng.choice([1, 1, 2])),
        BacklogWiped(),
        BacklogAway(rng.choice([20, 500, 3_000, 12_000])),
    ]
    around: list[Action] = [
        Start(rng.choice(["", "", "", "", "ingest", "delivery", "both"])),
        Stop(rng.choice([0, 1])),
        Rotate(),
        Retain(),
    ]
    if skew_ms:
        around.append(SetClock(rng.choice([0, 1]), rng.randrange(-skew_ms, skew_ms), rng.choice([0, 0, -20, 20])))
    return [rng.choice([*around, *(store if setup.delay_ms is None else [])])]


def effect_for(rng: random.Random, setup: Setup) -> str:
    """One of the effects that relays of this setup have."""
    effects = [effect for effect in ANSWERS if _exists(effect, setup)]
    return rng.choices(effects, [WEIGHTS.get(effect, 1) for effect in effects])[0]


def _fault(rng: random.Random, setup: Setup) -> Fault:
    effect = effect_for(rng, setup)
    what = rng.choices(PROCESS, [5, 6, 2, 2])[0] if rng.random() < 0.6 else rng.choice(ANSWERS[effect])
    about_a_session = [0, *(setup.session_ms + more_ms for more_ms in (50, 200, 600, 1_500))]
    length_ms = rng.choice([*FREEZES_MS, *about_a_session] if what is What.FREEZE else LATE_MS)
    return Fault(effect, rng.choice([1, 1, 1, 2, 3]), what, rng.random() < 0.5, length_ms)


def _exists(effect: str, setup: Setup) -> bool:
    if effect == "source commit":
        return not setup.transactional
    if effect in WITH_TRANSACTIONS:
        return setup.transactional
    if effect == "check":
        return setup.redis
    return setup.delay_ms is None or effect not in OF_BACKLOG
