"""Families of histories: of relays with Redis, or with bucket topics and both in turn."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.mutants.table import MUTANTS
from tests.simulation.plans.bucket_planning import bucket_plan_for
from tests.simulation.plans.plan import Plan
from tests.simulation.plans.planning import plan_for


def scheduler_plan_for(seed: int) -> Plan:
    """A history of a DelayTopic whose dialect writes tombstones and a history topic."""
    plan = plan_for(seed)
    return plan._replace(setup=plan.setup._replace(scheduler=True, delay_ms=None))


PLANS: dict[str, Callable[[int], Plan]] = {
    "RedisZset": plan_for,
    "KafkaBuckets": bucket_plan_for,
    "Scheduler": scheduler_plan_for,
}


def plans_for_mutant(name: str) -> Callable[[int], Plan]:
    """The histories that are to catch a mutant."""
    return PLANS[MUTANTS[name].backend]
