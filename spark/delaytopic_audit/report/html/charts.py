"""Geometry of the report's drawings: the template turns it into inline SVG that stretches to any width. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from delaytopic_audit.model.report import Report, Span
from delaytopic_audit.report.objectives import NONE, bad_of, due_of, without
from delaytopic_audit.report.text import instant, milliseconds, number, share

BOX: Final = 1_000
"""The width of a drawing; its height is 100."""
MOST_NINES: Final = 5
NINES: Final = ((1, "90%"), (2, "99%"), (3, "99.9%"), (4, "99.99%"), (5, "100%"))
_SHOWN_EDGES: Final = {1: "1 ms", 10: "10 ms", 100: "100 ms", 1_000: "1 s", 10_000: "10 s", 600_000: "10 min"}


@dataclass(frozen=True)
class Bar:
    """A rectangle with a text that appears over it. `kind` is its colour."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str
    opacity: float | None = None


@dataclass(frozen=True)
class Chart:
    """Bars over time, with the words around them. Lines and bars count from the top, labels from the ground."""

    title: str
    bars: list[Bar]
    goal: float
    grid: list[float]
    labels: list[tuple[float, str]]
    times: list[int]


@dataclass(frozen=True)
class BudgetLeft:
    """The filled share of the bar that stands for the error budget."""

    kind: str
    share: float


def attainment_chart(report: Report, objective: float) -> Chart:
    """Draw the timely share of each span on a scale of nines, against the objective."""
    width = BOX / max(1, len(report.spans))
    bars = (_attainment_bar(span, place * width, width, objective) for place, span in enumerate(report.spans))
    return Chart(
        title="The share that was on time, by deadline",
        bars=[bar for bar in bars if bar is not None],
        goal=100 - _nines(objective) / MOST_NINES * 100,
        grid=[100 - n * 20 for n, _ in NINES],
        labels=[(n * 20, text) for n, text in NINES],
        times=_moments(report.spans),
    )


def lateness_chart(report: Report) -> Chart:
    """Draw how late the records of each span were: the darker, the more. The line is the most that is allowed."""
    edges = report.bin_edges_ms
    step = 100 / (len(edges) + 1)
    return Chart(
        title="How late records were, by deadline",
        bars=list(_heat_cells(report, step)),
        goal=100 - _height_of(report.lateness_objective_ms or 0, edges) * step,
        grid=[],
        labels=[((place + 1) * step, _SHOWN_EDGES[edge]) for place, edge in enumerate(edges) if edge in _SHOWN_EDGES],
        times=_moments(report.spans),
    )


def budget_left(remaining: float | None) -> BudgetLeft:
    """Return the part of the error budget that is left."""
    left = max(0.0, min(1.0, remaining if remaining is not None else 1.0))
    kind = "bad" if left == 0 else "warn" if left < 0.25 else "good"
    return BudgetLeft(kind, left or 1.0)  # an overspent budget is a full bar of its own colour


def _attainment_bar(span: Span, x: float, width: float, objective: float) -> Bar | None:
    timely = without(span.counts, span.excluded or NONE)
    total, bad = due_of(timely), bad_of(timely)
    if not total:
        return None
    attained = 1 - bad / total
    height = max(1.5, _nines(attained) / MOST_NINES * 100)
    kind = "good" if attained >= objective else "bad"
    title = f"{instant(span.from_ms)}: {share(total - bad, total)} of {number(total)} on time, {number(bad)} not"
    return Bar(kind, x, 100 - height, _with_gap(width), height, title)


def _heat_cells(report: Report, step: float) -> Iterator[Bar]:
    width = BOX / max(1, len(report.spans))
    most = max((max(span.bins) for span in report.spans), default=0)
    for column, span in enumerate(report.spans):
        for row, records in enumerate(span.bins):
            if records:
                kind, text = _lateness_of_bin(report, row)
                faintest = 0.5 if kind == "bad" else 0.15
                opacity = faintest + (1 - faintest) * math.log1p(records) / math.log1p(most)
                title = f"{instant(span.from_ms)}: {number(records)} records {text} late"
                yield Bar(kind, column * width, 100 - (row + 1) * step, _with_gap(width), step, title, opacity)


def _lateness_of_bin(report: Report, row: int) -> tuple[str, str]:
    """Return colour and text of a bin."""
    edges = report.bin_edges_ms
    if row == len(edges):
        return "bad", f"over {milliseconds(edges[-1])}"
    kind = "bad" if edges[row] > (report.lateness_objective_ms or 0) else "heat"
    return kind, f"up to {milliseconds(edges[row])}"


def _with_gap(width: float) -> float:
    return width - min(1.5, width * 0.15)


def _moments(spans: Sequence[Span]) -> list[int]:
    if not spans:
        return []
    return [spans[0].from_ms, spans[len(spans) // 2].from_ms, spans[-1].to_ms]


def _nines(attained: float) -> float:
    """Count the nines of a share: 90 % is 1, 99 % is 2; everything is as many as are drawn."""
    if attained >= 1:
        return float(MOST_NINES)
    return max(0.0, min(float(MOST_NINES) - 0.4, -math.log10(1 - attained)))


def _height_of(value_ms: int, edges: Sequence[int]) -> float:
    """Return a lateness in bins from the ground: within a bin in proportion."""
    for place, edge in enumerate(edges):
        if value_ms <= edge:
            lower = edges[place - 1] if place else 0
            return place + (value_ms - lower) / (edge - lower)
    return float(len(edges))
