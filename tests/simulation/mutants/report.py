"""The table of mutants in docs/explanation/checks.md, between its markers."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.mutants.table import MUTANTS
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "explanation" / "checks.md"
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"


def mutant_table(caught: Mapping[str, int | None]) -> str:
    """A row for each mutant: what it does wrong, and how many seeds it takes until that is caught."""
    rows = [f"| `{name}` | {MUTANTS[name].sentence} | {_seeds(seed)} |" for name, seed in caught.items()]
    return "\n".join(["| mutant | the relay | histories until caught |", "| --- | --- | ---: |", *rows])


def _seeds(seed: int | None) -> str:
    return "not caught" if seed is None else str(seed + 1)


def recorded() -> dict[str, int]:
    """The seed that catches each mutant, as the page has it."""
    rows = [line.split("|") for line in _between(PAGE.read_text(encoding="utf-8")).splitlines()[2:]]
    return {row[1].strip(" `"): int(row[3]) - 1 for row in rows}


def write_table(caught: Mapping[str, int | None]) -> None:
    """Put the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(_between(text), f"{mutant_table(caught)}"), encoding="utf-8")


def _between(text: str) -> str:
    return text.split(BEGIN + "\n")[1].split("\n" + END, maxsplit=1)[0]
