"""Deliberate breakages of the relay, each of which the simulation has to catch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from tests.simulation.mutants import (
    of_buckets,
    of_clocks,
    of_commits,
    of_dialects,
    of_identity,
    of_members,
    of_moves,
    of_outcomes,
    of_recovery,
    of_recurrence,
    of_rules,
    of_stores,
    of_targets,
)
from tests.simulation.mutants.breaking import Mutant

ROOMS = (
    *(of_recovery, of_commits, of_stores, of_buckets, of_dialects, of_members, of_rules, of_identity, of_clocks),
    *(of_moves, of_targets, of_outcomes, of_recurrence),
)
MUTANTS: dict[str, Mutant] = {mutant.name: mutant for of in ROOMS for mutant in of.MUTANTS}


def applied(name: str | None) -> AbstractContextManager[None]:
    """The relay as it is, or broken in one way."""
    return nullcontext() if name is None else MUTANTS[name].applied()
