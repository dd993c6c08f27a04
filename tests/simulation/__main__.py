"""The simulation on the command line: `python -m tests.simulation --help`."""

from __future__ import annotations

import os
import sys
import time
import traceback
from concurrent.futures import as_completed

import click
from tests.simulation.counting import ENOUGH_RUNS, missing, table
from tests.simulation.hunting import Failure, Findings, first_caught, hunt, workers, wrong_with
from tests.simulation.mutants.report import write_table
from tests.simulation.mutants.table import MUTANTS, applied
from tests.simulation.plans.families import PLANS
from tests.simulation.plans.shrink import Shrinker
from tests.simulation.tracing import told

MUTANT_SEEDS = 2_000
SHOWN = 3
"""The number of failing seeds that are shrunk and shown."""


@click.command()
@click.option("--runs", default=2_000, show_default=True, help="How many histories, one for each seed.")
@click.option("--seed", default=0, show_default=True, help="The first seed.")
@click.option("--backend", type=click.Choice([*PLANS]), default="RedisZset", show_default=True, help="Whose histories.")
@click.option("--mutant", type=click.Choice(sorted(MUTANTS)), help="Break the relay in this way.")
@click.option("--mutants", is_flag=True, help="Find for every mutant the first seed that catches it; write the table.")
def main(runs: int, seed: int, backend: str, mutant: str | None, mutants: bool) -> None:
    """Run histories full of faults against the production relay, and check every promise on each."""
    if mutants:
        sys.exit(_hunt_mutants())
    sys.exit(_hunt(seed, runs, mutant, MUTANTS[mutant].backend if mutant else backend))


def _hunt(seed: int, runs: int, mutant: str | None, backend: str) -> int:
    started_s = time.monotonic()
    shown_s = started_s

    def progress(findings: Findings) -> None:
        nonlocal shown_s
        now_s = time.monotonic()
        if now_s - shown_s >= 2 or findings.runs == runs:
            shown_s = now_s
            failed = f"{len(findings.failures)} failed"
            click.echo(f"{findings.runs:,} of {runs:,} histories, {failed}, {now_s - started_s:.0f} s", err=True)

    findings = hunt(seed, runs, mutant, progress, backend)
    click.echo("\n".join(table(findings.counts, backend)))
    if findings.failures:
        click.echo(f"Failing seeds: {', '.join(str(failure.seed) for failure in findings.failures)}")
    for failure in findings.failures[:SHOWN]:
        _show(failure, mutant, backend)
    never = missing(findings.counts, backend) if findings.runs >= ENOUGH_RUNS and mutant is None else []
    for name in never:
        click.echo(f"never happened: {name}")
    click.echo(f"{findings.runs:,} histories, {len(findings.failures)} failed")
    return 1 if findings.failures or never else 0


def _show(failure: Failure, mutant: str | None, backend: str) -> None:
    """The shortest trace that still fails, and the command that replays the seed."""
    kind = _kind(failure.complaints[0])
    with applied(mutant):
        plan = Shrinker(
            PLANS[backend](failure.seed), lambda plan: any(_kind(wrong) == kind for wrong in wrong_with(plan))
        ).shrink()
        wrong = wrong_with(plan)
    broken = f" --mutant {mutant}" if mutant else f" --backend {backend}"
    click.echo(f"\nSeed {failure.seed} fails. The shortest trace that still does:")
    click.echo("\n".join(f"  {line}" for line in [*told(plan), *wrong]))
    click.echo(f"  as data: {plan!r}")
    click.echo(f"Replay it with: python -m tests.simulation --runs 1 --seed {failure.seed}{broken}")


def _kind(complaint: str) -> str:
    return complaint.partition(":")[0]


def _hunt_mutants() -> int:
    caught: dict[str, int | None] = {}
    with workers() as pool:
        work = {pool.submit(first_caught, name, MUTANT_SEEDS): name for name in MUTANTS}
        for done in as_completed(work):
            name, error = work[done], done.exception()
            caught[name] = seed = done.result() if error is None else None
            where = f"caught by seed {seed}" if seed is not None else f"NOT caught by {MUTANT_SEEDS:,} seeds"
            if error is not None:
                where = f"RAISED, which shows nothing:\n{''.join(traceback.format_exception(error))}"
            click.echo(f"{len(caught)} of {len(MUTANTS)}: {name} {where}")
    write_table({name: caught[name] for name in MUTANTS})
    return 1 if None in caught.values() else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")  # for the workers; nothing depends on it
    main()
