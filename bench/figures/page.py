"""The results in the documentation: a part of one page between two marks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.errors import BenchError
from bench.figures.report import goals_table, tables
from bench.figures.results import figures_of

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def page_with(page: str, results: dict[str, Any]) -> str:
    """Put results in the place of those that a page shows. Raises `BenchError` for a page without such a place."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"the page has no place for results, between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{_section(results)}\n\n{END}{after}"


def _section(results: dict[str, Any]) -> str:
    figures = figures_of(results)
    parts = [_where(results["machine"]), "## Goals", goals_table(figures).markdown(), "## Results"]
    return "\n\n".join([*parts, *(table.markdown() for table in tables(figures))])


def _where(machine: Mapping[str, Any]) -> str:
    return (
        f"Measured on {machine['date']}: {machine['processors']} processors ({machine['processor']}), "
        f"{machine['system']}, Python {machine['python']}, confluent-kafka {machine['confluentKafka']}, "
        f"Kafka {machine['kafka']}, {machine['redis']}, their data {machine['data']}; "
        f"load before {machine['loadBefore']}. "
        "Figures are medians, with the range of the runs in brackets."
    )
