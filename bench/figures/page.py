"""The results in the documentation: a part of one page between two marks, and plots. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.figures.names import (
    APPENDED,
    DESIGN,
    INTO,
    OF_NULL,
    OUT,
    P99,
    RATE,
    Table,
    at_rate,
    with_pending,
)
from bench.figures.plot import Bar, bars, lines
from bench.figures.report import goals_table, tables
from bench.figures.results import Figure, figures_of
from bench.selection import GROWING
from delaytopic_api.values import Guarantee

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
FOLDER = "figures"


def page_with(page: str, results: dict[str, Any]) -> str:
    """Put results in the place of those that a page shows. Raises `BenchError` for a page without such a place."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"the page has no place for results, between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{_section(results)}\n\n{END}{after}"


def _section(results: dict[str, Any]) -> str:
    figures = figures_of(results)
    pictures = "\n\n".join(f"![{alt}]({FOLDER}/{file})" for file, (alt, _) in _plots(figures).items())
    parts = [_where(results["machine"]), "## Goals", goals_table(figures).markdown(), "## Results", pictures]
    return "\n\n".join([*filter(None, parts), *(table.markdown() for table in tables(figures))])


def _where(machine: Mapping[str, Any]) -> str:
    return (
        f"Measured on {machine['date']}: {machine['processors']} processors ({machine['processor']}), "
        f"{machine['system']}, Python {machine['python']}, confluent-kafka {machine['confluentKafka']}, "
        f"Kafka {machine['kafka']}, {machine['redis']}, their data {machine['data']}; "
        f"load before {machine['loadBefore']}. "
        "Figures are medians, with the range of the runs in brackets."
    )


def plots_of(results: dict[str, Any]) -> dict[Path, str]:
    """Return the plots by their files, of what was measured."""
    return {Path(FOLDER) / file: svg for file, (_, svg) in _plots(figures_of(results)).items()}


def _plots(figures: Sequence[Figure]) -> dict[str, tuple[str, str]]:
    """Alternative text and plot by file name."""
    found: dict[str, tuple[str, str]] = {}
    for file, title, table, name in (
        ("throughput", "Rate, of the null relay's (dashed: the goal)", Table.THROUGHPUT, OF_NULL),
        ("past-due", "Records that are past due, records/s", Table.PAST_DUE, RATE),
    ):
        rows = [_bar(figure) for figure in figures if figure.table == table and figure.name == name]
        if rows:
            found[f"performance-{file}.svg"] = title, bars(title, rows)
    for file, title, axes, series in (
        ("lateness", "Lateness, p99", ("records/s", "ms"), dict(_lateness(figures))),
        ("pending", "Rates with so many pending", ("pending", "records/s"), dict(_pending(figures))),
    ):
        if series:
            found[f"performance-{file}.svg"] = title, lines(title, axes, series)
    return found


def _bar(figure: Figure) -> Bar:
    goal = figure.goal.limit.limit if figure.goal is not None else None
    return Bar(figure.case, figure.unit.text(figure.median), figure.median, min(figure.runs), max(figure.runs), goal)


def _lateness(figures: Sequence[Figure]) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    medians = {figure.case: figure.median for figure in figures if (figure.table, figure.name) == (Table.LATENESS, P99)}
    rates = sorted({_rate(case) for case in medians if APPENDED not in case})
    for who in (*Guarantee, DESIGN):
        points = [(rate, medians[at_rate(who, rate)]) for rate in rates if at_rate(who, rate) in medians]
        if points:
            yield str(who), [(float(rate), late_ms) for rate, late_ms in points]


def _rate(case: str) -> int:
    return int(case.rpartition(", ")[2].removesuffix("/s").replace(",", ""))


def _pending(figures: Sequence[Figure]) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    medians = {(figure.case, figure.name): figure.median for figure in figures if figure.table == Table.PENDING}
    sizes = [10**power * times for power in range(3, 8) for times in (1, 4)]
    for backend, guarantee in GROWING:
        for name, way in ((INTO, "in"), (OUT, "out")):
            cases = ((size, (with_pending(backend, guarantee, size), name)) for size in sizes)
            points = [(float(size), medians[case]) for size, case in cases if case in medians]
            if points:
                yield f"{backend}, {way}", points
