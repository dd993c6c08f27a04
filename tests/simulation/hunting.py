"""Runs many seeds on all cores, each worker process a few at a time."""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import NamedTuple

from tests.simulation.history import History
from tests.simulation.mutants.table import applied
from tests.simulation.plans.families import PLANS, plans_for_mutant
from tests.simulation.plans.plan import Plan
from tests.simulation.promises import complaints

from delaytopic_local.servers.die_with_parent import kill_me_when_my_parent_ends

PORTION = 25
RAISED = "raised "
"""The beginning of what is wrong where no promise is broken."""


class Failure(NamedTuple):
    """A seed whose history breaks a promise."""

    seed: int
    complaints: Sequence[str]


class Findings(NamedTuple):
    """Of some seeds."""

    runs: int
    failures: list[Failure]
    counts: Counter[str]

    def __add__(self, other: object) -> Findings:
        assert isinstance(other, Findings)
        return Findings(self.runs + other.runs, self.failures + other.failures, self.counts + other.counts)


NOTHING_YET = Findings(0, [], Counter())


def broken_promises(plan: Plan, counts: Counter[str] | None = None) -> list[str]:
    """Return how a history breaks promises. Raises what the relay or the world raises: a mutant that raises shows
    nothing but that.
    """
    outcome = History(plan).run()
    if counts is not None:
        counts.update(outcome.counts)
    return complaints(outcome)


def wrong_with(plan: Plan, counts: Counter[str] | None = None) -> list[str]:
    """Return what is wrong with a history; an error of the relay or of the world is wrong, too."""
    try:
        return broken_promises(plan, counts)
    except Exception as error:
        return [f"{RAISED}{type(error).__name__}: {error}\n{traceback.format_exc()}"]


def try_seeds(first: int, end: int, mutant: str | None, backend: str) -> Findings:
    """The work of one portion."""
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    with applied(mutant):
        for seed in range(first, end):
            wrong = wrong_with(PLANS[backend](seed), counts)
            if wrong:
                failures.append(Failure(seed, wrong))
    return Findings(end - first, failures, counts)


def first_caught(mutant: str, seeds: int) -> int | None:
    """The first seed with which a mutant breaks a promise; None if none does. Raises what the mutant raises."""
    with applied(mutant):
        return next((seed for seed in range(seeds) if broken_promises(plans_for_mutant(mutant)(seed))), None)


def workers() -> ProcessPoolExecutor:
    """One process for each core; spawned, as forking beside threads is not safe."""
    # Interrupted or killed, the run takes them along: by themselves they would end their portions first.
    return ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), kill_me_when_my_parent_ends)


def hunt(
    first: int, runs: int, mutant: str | None, progress: Callable[[Findings], None], backend: str = "RedisZset"
) -> Findings:
    """Run the seeds from `first` on; `progress` hears after each portion what was found so far."""
    findings = NOTHING_YET
    with workers() as pool:
        work = [pool.submit(try_seeds, *portion, mutant, backend) for portion in _portions(first, runs)]
        for done in as_completed(work):
            findings += done.result()
            progress(findings)
    findings.failures.sort()
    return findings


def _portions(first: int, runs: int) -> Iterator[tuple[int, int]]:
    end = first + runs
    return ((start, min(start + PORTION, end)) for start in range(first, end, PORTION))
