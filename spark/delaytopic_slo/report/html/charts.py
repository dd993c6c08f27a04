"""The drawings of the report, as inline SVG that stretches to any width; their words are HTML around them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from delaytopic_slo.model.report import Report, Span
from delaytopic_slo.report.html.text import instant, milliseconds, number, share
from delaytopic_slo.report.objectives import bad_of, due_of

MOST_NINES = 5
NINES = ((1, "90%"), (2, "99%"), (3, "99.9%"), (4, "99.99%"), (5, "100%"))
_BOX = 1_000


def attainment_chart(report: Report, objective: float) -> str:
    """The timely share of each span on a scale of nines, against the objective."""
    spans, width = report.spans, _BOX / max(1, len(report.spans))
    bars = "".join(_attainment_bar(span, place * width, width, objective) for place, span in enumerate(spans))
    height = _nines(objective) / MOST_NINES * 100
    line = f'<line class="goal" x1="0" x2="{_BOX}" y1="{100 - height:.2f}" y2="{100 - height:.2f}"/>'
    grid = "".join(f'<line class="grid" x1="0" x2="{_BOX}" y1="{100 - n * 20}" y2="{100 - n * 20}"/>' for n, _ in NINES)
    labels = [(n * 20.0, text) for n, text in NINES]
    return _framed(f"{grid}{bars}{line}", labels, spans, "The share that was on time, by deadline")


def lateness_chart(report: Report) -> str:
    """How late the records of each span were: the darker, the more. The line is the most that is allowed."""
    bins, width = len(report.bin_edges_ms) + 1, _BOX / max(1, len(report.spans))
    step, most = 100 / bins, max((max(span.bins) for span in report.spans), default=0)
    cells = "".join(
        _heat_cell(report, span, place * width, width, step, bin_number, most)
        for place, span in enumerate(report.spans)
        for bin_number in range(bins)
        if span.bins[bin_number]
    )
    allowed = _height_of(report.lateness_objective_ms or 0, report.bin_edges_ms) * step
    line = f'<line class="goal" x1="0" x2="{_BOX}" y1="{100 - allowed:.2f}" y2="{100 - allowed:.2f}"/>'
    shown = {1: "1 ms", 10: "10 ms", 100: "100 ms", 1_000: "1 s", 10_000: "10 s", 600_000: "10 min"}
    labels = [((place + 1) * step, shown[edge]) for place, edge in enumerate(report.bin_edges_ms) if edge in shown]
    return _framed(f"{cells}{line}", labels, report.spans, "How late records were, by deadline")


def budget_bar(remaining: float | None) -> str:
    """What is left of the error budget."""
    left = max(0.0, min(1.0, remaining if remaining is not None else 1.0))
    kind = "bad" if left == 0 else "warn" if left < 0.25 else "good"
    left = left or 1.0  # an overspent budget is a full bar of its own colour
    return (
        '<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="error budget left">'
        '<rect class="track" width="1000" height="10"/>'
        f'<rect class="{kind}" width="{left * 1000:.1f}" height="10"/></svg>'
    )


def _attainment_bar(span: Span, x: float, width: float, objective: float) -> str:
    total, bad = due_of(span.counts), bad_of(span.counts)
    if not total:
        return ""
    attained = 1 - bad / total
    height = max(1.5, _nines(attained) / MOST_NINES * 100)
    kind = "good" if attained >= objective else "bad"
    title = f"{instant(span.from_ms)}: {share(total - bad, total)} of {number(total)} on time, {number(bad)} not"
    return _rect(kind, x, 100 - height, width, height, title)


def _heat_cell(report: Report, span: Span, x: float, width: float, step: float, place: int, most: int) -> str:
    records = span.bins[place]
    edges = report.bin_edges_ms
    upper = f"up to {milliseconds(edges[place])}" if place < len(edges) else f"over {milliseconds(edges[-1])}"
    title = f"{instant(span.from_ms)}: {number(records)} records {upper} late"
    late = "bad" if place < len(edges) and edges[place] > (report.lateness_objective_ms or 0) else "heat"
    kind = "bad" if place == len(edges) else late
    faintest = 0.5 if kind == "bad" else 0.15
    opacity = faintest + (1 - faintest) * math.log1p(records) / math.log1p(most)
    return _rect(kind, x, 100 - (place + 1) * step, width, step, title, f' opacity="{opacity:.2f}"')


def _rect(kind: str, x: float, y: float, width: float, height: float, title: str, more: str = "") -> str:
    gap = min(1.5, width * 0.15)
    place = f'x="{x:.2f}" y="{y:.2f}" width="{width - gap:.2f}" height="{height:.2f}"'
    return f'<rect class="{kind}" {place}{more}><title>{escape(title)}</title></rect>'


def _framed(drawing: str, labels: Sequence[tuple[float, str]], spans: Sequence[Span], title: str) -> str:
    """With the words beside and below it; a label stands at so many percent of the height."""
    ticks = "".join(f'<span style="bottom:{height:.2f}%">{escape(text)}</span>' for height, text in labels)
    times = "".join(f"<span>{instant(moment)}</span>" for moment in _moments(spans))
    return (
        f'<figure><div class="plot"><div class="ticks">{ticks}</div>'
        f'<svg viewBox="0 0 {_BOX} 100" preserveAspectRatio="none" role="img" aria-label="{escape(title)}">'
        f'{drawing}</svg></div><div class="times">{times}</div></figure>'
    )


def _moments(spans: Sequence[Span]) -> list[int]:
    if not spans:
        return []
    return [spans[0].from_ms, spans[len(spans) // 2].from_ms, spans[-1].to_ms]


def _nines(attained: float) -> float:
    """90 % is 1, 99 % is 2; everything is as many as are drawn."""
    if attained >= 1:
        return float(MOST_NINES)
    return max(0.0, min(float(MOST_NINES) - 0.4, -math.log10(1 - attained)))


def _height_of(value_ms: int, edges: Sequence[int]) -> float:
    """In bins from the ground: within a bin in proportion."""
    for place, edge in enumerate(edges):
        if value_ms <= edge:
            lower = edges[place - 1] if place else 0
            return place + (value_ms - lower) / (edge - lower)
    return float(len(edges))
