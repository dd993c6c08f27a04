"""`make simulate-scaling`: rules that decide how many relays run, against the same three hours of load.

    python -m bench.scaling [-o table|json|markdown]

Nothing but arithmetic: no server, no clock, the same figures on every machine, within seconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from bench.figures.table import Table
from bench.scaling.cases import comparison, resolution, sensitivity
from bench.scaling.fleet import Physics
from bench.scaling.load import Load
from bench.scaling.results import HEADINGS, Result


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-o", "--output", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
def main(output: str) -> None:
    """Compare scaling rules in a simulation of three hours."""
    load, physics = Load(), Physics()
    groups = {
        "rule": comparison(load, physics),
        "operator believes": sensitivity(load, physics),
        "other loads": resolution(physics),
    }
    if output == "json":
        documents = {name: [result.document() for result in results] for name, results in groups.items()}
        click.echo(json.dumps(documents, indent=2))
        return
    for name, results in groups.items():
        click.echo(f"\n{_table(name, results, output)}")


def _table(name: str, results: Sequence[Result], output: str) -> str:
    table = Table((name, *HEADINGS), [result.cells() for result in results])
    return table.markdown() if output == "markdown" else table.text()


if __name__ == "__main__":
    main()
