"""Deliberate breakages of the relay, each of which the simulation has to catch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from tests.simulation import mutants_of_buckets, mutants_of_commits, mutants_of_recovery, mutants_of_stores
from tests.simulation.breaking import Mutant

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for of in (mutants_of_recovery, mutants_of_commits, mutants_of_stores, mutants_of_buckets)
    for mutant in of.MUTANTS
}


def applied(name: str | None) -> AbstractContextManager[None]:
    """The relay as it is, or broken in one way."""
    return nullcontext() if name is None else MUTANTS[name].applied()
