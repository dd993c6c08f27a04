"""The command line of the benchmark, over a choice of cases."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from bench.bed import Bed, embedded_bed
from bench.cases.contenders import Contender, Peer
from bench.conductor import Conductor
from bench.dialects import SPEECHES
from bench.errors import BenchError
from bench.figures.page import page_with
from bench.figures.report import goals_table, tables
from bench.figures.results import document, figures_of
from bench.machine import describe_machine, describe_redis, load, processors
from bench.selection import Group, Scale, Sizes, rounds_of
from delaytopic_api.values import Dialect
from delaytopic_process.errors import ProgramError

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "latest.json"
KEPT = ROOT / "results" / "performance.json"
"""The run that the page shows."""
PAGE = ROOT.parent / "docs" / "performance.md"
BUSY_SHARE = 0.5


def command(name: str, groups: Iterable[Group], sizes: Sizes, shake_out: Sizes | None = None) -> click.Command:
    """A command that runs these cases; with small sizes for a shake-out it has `--quick`, and keeps a whole run."""
    all_groups = tuple(groups)

    @click.command(name, context_settings={"help_option_names": ["-h", "--help"]})
    @click.option(
        "--only", type=click.Choice([group.value for group in all_groups]), multiple=True, help="May be repeated."
    )
    @click.option(
        "--runs",
        type=click.IntRange(1, 20),
        help="Rounds; the figures are medians.  [default: 3]",
    )
    @click.option(
        "--records", type=click.IntRange(10_000), help="For the null relay. Absent: what it copies in a second."
    )
    @click.option(
        "--peer",
        "peers",
        type=(str, click.Choice([dialect.value for dialect in SPEECHES]), str),
        multiple=True,
        metavar="NAME DIALECT COMMAND",
        help="Measure this relay, too, where the Redis design is. COMMAND may name {bootstrap_servers}, {redis_url}, "
        "{source}, {target} and {group}. May be repeated.",
    )
    @click.option("--into", type=click.Path(file_okay=False, path_type=Path), help="Write results and page here.")
    @click.option(
        "-o", "--output", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
    )
    def run(
        only: tuple[str, ...],
        runs: int | None,
        records: int | None,
        peers: tuple[tuple[str, str, str], ...],
        into: Path | None,
        output: str,
        *,
        quick: bool = False,
    ) -> None:
        """Measure throughput and lateness of the relay, against a loop that only copies, in one run on this machine.

        Progress goes to standard error, the result to standard output and, as JSON, to bench/results. A goal that is
        missed is a result; the exit code is 1 only if a record was lost, came twice or early, or nothing could be
        measured.
        """
        if quick and into is None:
            raise click.UsageError("--quick measures nothing that is worth keeping: say where, with --into")
        chosen = [group for group in all_groups if not only or group.value in only]
        used = shake_out if quick and shake_out is not None else sizes
        if records is not None:
            used = replace(used, scale=Scale.of(records))
        others = [_contender(*each) for each in peers]
        found = measure(rounds_of(chosen, 1 if quick and runs is None else runs), used, others)
        whole = shake_out is not None and len(chosen) == len(all_groups)
        write(found, into, KEPT if whole else RESULTS)
        show(found, output)

    if shake_out is not None:
        run = click.option("--quick", is_flag=True, help="Small sizes: whether all runs through. Needs --into.")(run)
    return run


def _contender(name: str, dialect: str, command: str) -> Contender:
    """Return a peer to measure; raises `BadParameter` for a command that no run could start."""
    peer = Peer(Dialect(dialect), command)
    try:
        peer.arguments(Bed("", "", Path(), ""), "", "", "")
    except (KeyError, IndexError, ValueError) as error:
        raise click.BadParameter(
            f"the command of {name} cannot be filled in ({error}): it may name {{bootstrap_servers}}, {{redis_url}}, "
            "{source}, {target} and {group}; write other braces twice, and close quotes",
            param_hint="--peer",
        ) from error
    return Contender(name, peer=peer)


def measure(rounds: Mapping[Group, int], sizes: Sizes, peers: Sequence[Contender] = ()) -> dict[str, Any]:
    """Run the groups so often, beside peers, and return their results as a document.

    Ends the process with 1 where nothing is to be had.
    """
    progress = Progress()
    machine = describe_machine()
    progress.warn_of_load()
    try:
        with embedded_bed() as bed:
            progress("Kafka and Redis are up")
            machine |= {"redis": describe_redis(bed.redis_url), "data": bed.data}
            conductor = Conductor(bed, rounds, sizes, progress, peers)
            results = conductor.run()
    except (BenchError, ProgramError) as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(1)
    progress("done")
    found = document(machine, asdict(conductor.scale), results.figures())
    unmeasured = {f"{table}: {case}": why for (table, case), why in conductor.unmeasured.items()}
    return {**found, "seconds": round(progress.seconds), "notMeasured": unmeasured}


def write(results: dict[str, Any], into: Path | None, file: Path) -> None:
    """Write results as JSON and, of those that are kept and where asked to, the page."""
    file = file if into is None else into / file.name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if into is not None:
        write_page(results, into / PAGE.name)
    elif file == KEPT:
        write_page(results, PAGE)


def write_page(results: dict[str, Any], page: Path) -> None:
    """Put results into the words of the page."""
    page.write_text(page_with(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def show(results: dict[str, Any], output: str) -> None:
    """Print the results."""
    if output == "json":
        click.echo(json.dumps(results, indent=2))
        return
    figures = figures_of(results)
    for table in (*tables(figures), goals_table(figures)):
        if table.rows:
            click.echo(f"\n{table.markdown() if output == 'markdown' else table.text()}")


class Progress:
    """Lines on standard error, with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return how long it has taken so far."""
        return time.monotonic() - self._started

    def __call__(self, line: str) -> None:
        """Print one."""
        click.echo(f"[{self.seconds:5.1f} s] {line}", err=True)

    def warn_of_load(self) -> None:
        """Say so if the machine has other work: ratios suffer less than absolute figures, but both do."""
        busy, processes = load(), processors()
        if busy > BUSY_SHARE * processes:
            self(f"this machine is busy (load {busy:.1f} on {processes} processors): do not trust the figures")
