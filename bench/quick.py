"""`make bench-quick`: what delivery costs on this machine, in a few minutes.

    python -m bench.quick [--only fixed|horizon|redis|buckets|lateness|dialects] [--runs 3] [--records N]
                          [-o table|json|markdown]

Run from the repository's root. Needs nothing but the installed packages: Kafka and Redis come with them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from bench.bed import embedded_bed
from bench.cases import Group
from bench.conductor import Conductor
from bench.errors import BenchError
from bench.figures.report import tables
from bench.figures.results import document
from bench.lateness import PLAN
from bench.machine import describe_machine, load, processors
from delaytopic_cli.errors import CliError

RESULTS = Path(__file__).parent / "results" / "latest.json"
BUSY_SHARE = 0.5


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--only", type=click.Choice([group.value for group in Group]), multiple=True, help="Only this; may be repeated."
)
@click.option("--runs", type=click.IntRange(1, 20), default=3, show_default=True, help="Rounds of throughput.")
@click.option("--records", type=click.IntRange(10_000), help="For the null relay. Absent: what it copies in a second.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
def main(only: tuple[str, ...], runs: int, records: int | None, output: str) -> None:
    """Measure throughput and lateness of the relay, against a loop that only copies, in one run on this machine.

    Progress goes to standard error, the result to standard output and, as JSON, to bench/results/latest.json. A goal
    that is missed is a result; the exit code is 1 only if a record was lost, came twice or early, or nothing could be
    measured.
    """
    progress = Progress()
    machine = describe_machine()
    progress.warn_of_load()
    try:
        with embedded_bed() as bed:
            progress("Kafka and Redis are up")
            conductor = Conductor(bed, [Group(each) for each in only or Group], runs, records, progress)
            measured = conductor.run()
    except (BenchError, CliError) as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(1)
    scale = conductor.scale
    sizes = {"copied": scale.copied, "withinHorizon": scale.within_horizon, "backlog": scale.backlog}
    report = document(machine, sizes, measured, PLAN.burst)
    text = json.dumps(report, indent=2)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    if output == "json":
        click.echo(text)
        return
    for table in tables(measured, PLAN.burst):
        click.echo(f"\n{table.markdown() if output == 'markdown' else table.text()}")


class Progress:
    """Lines on standard error, with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print one."""
        click.echo(f"[{time.monotonic() - self._started:5.1f} s] {line}", err=True)

    def warn_of_load(self) -> None:
        """Say so if the machine has other work: ratios suffer less than absolute figures, but both do."""
        busy, processes = load(), processors()
        if busy > BUSY_SHARE * processes:
            self(f"this machine is busy (load {busy:.1f} on {processes} processors): do not trust the figures")


if __name__ == "__main__":
    main()
