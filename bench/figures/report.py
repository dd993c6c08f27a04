"""The tables of a run: figures by case, and goals with their verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures import names
from bench.figures.results import Figure
from bench.figures.table import Table


def tables(figures: Sequence[Figure]) -> Iterator[Table]:
    """One for each group of cases, as far as it was measured."""
    for name in names.Table:
        found = [figure for figure in figures if figure.table == name]
        if found:
            yield _table(name, found)


def _table(name: str, figures: Sequence[Figure]) -> Table:
    columns = list(dict.fromkeys(figure.name for figure in figures))
    cells = {(figure.case, figure.name): figure.text() for figure in figures}
    cases = dict.fromkeys(figure.case for figure in figures)
    rows = [(case, *(cells.get((case, column), "") for column in columns)) for case in cases]
    return Table((name, *columns), rows)


def goals_table(figures: Sequence[Figure]) -> Table:
    """Each goal that something was measured for: met or not, and what bounds it."""
    rows = [
        (
            f"{figure.table}: {figure.case}: {figure.name}",
            figure.text(),
            f"{goal.limit} {_unit(figure)}".strip(),
            str(figure.verdict),
            goal.bound,
        )
        for figure in figures
        if (goal := figure.goal) is not None
    ]
    return Table(("goal", "measured", "limit", "", "what bounds it"), rows)


def _unit(figure: Figure) -> str:
    return str(figure.unit) if figure.unit in ("ms", "s") else ""
