"""The parts of a Grafana dashboard. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Document = dict[str, Any]

COLUMNS: Final = 24
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_RED_ABOVE_ZERO: Final[list[Document]] = [{"color": "green", "value": None}, {"color": "red", "value": 1}]
_RED_AT_ZERO: Final[list[Document]] = [{"color": "red", "value": None}, {"color": "green", "value": 1}]
_NEUTRAL: Final[list[Document]] = [{"color": "blue", "value": None}]


@dataclass(frozen=True)
class Query:
    """One PromQL expression; `legend` with labels in double braces."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel; `text` says what it means and what to do about it."""

    kind: str
    title: str
    queries: Sequence[Query]
    text: str
    unit: str = "short"
    width: int = 12
    height: int = 8
    options: Document = field(default_factory=dict)
    custom: Document = field(default_factory=dict)
    steps: Sequence[Document] = tuple(_NEUTRAL)
    transformations: Sequence[Document] = ()

    def document(self, number: int, x: int, y: int) -> Document:
        """Return Grafana's document of the panel at a place."""
        defaults: Document = {"unit": self.unit, "thresholds": {"mode": "absolute", "steps": list(self.steps)}}
        if self.custom:
            defaults["custom"] = self.custom
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.text,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "options": self.options,
            "targets": [self._target(place, query) for place, query in enumerate(self.queries)],
            **({"transformations": list(self.transformations)} if self.transformations else {}),
        }

    def _target(self, place: int, query: Query) -> Document:
        target: Document = {
            "refId": chr(ord("A") + place),
            "datasource": _SOURCE,
            "expr": query.expression,
            "legendFormat": query.legend,
        }
        if self.kind == "table":
            target |= {"format": "table", "instant": True}
        if self.kind == "stat":
            target |= {"instant": True}
        if self.kind == "heatmap":
            target |= {"format": "heatmap"}
        return target


def lines(title: str, text: str, *queries: Query, unit: str = "short", width: int = 12) -> Panel:
    """Values over time."""
    options = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": False}
    return Panel("timeseries", title, queries, text, unit, width, options=options, custom=custom)


def number(title: str, text: str, query: Query, unit: str = "short", good: str = "") -> Panel:
    """One value of now; `good`: `zero` or `not zero`, whatever else is red."""
    steps = {"zero": _RED_ABOVE_ZERO, "not zero": _RED_AT_ZERO}.get(good, _NEUTRAL)
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value"}
    return Panel("stat", title, [query], text, unit, width=4, height=4, options=options, steps=steps)


def heat_map(title: str, text: str, query: Query, unit: str) -> Panel:
    """A histogram over time."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "scale": "exponential", "exponent": 0.5, "steps": 64},
        "yAxis": {"axisPlacement": "left", "unit": unit},
        "tooltip": {"mode": "single", "yHistogram": True},
        "legend": {"show": True},
    }
    return Panel("heatmap", title, [query], text, unit, width=24, options=options)


def table(title: str, text: str, queries: Sequence[Query], columns: Document) -> Panel:
    """Values of now by label, one query for each column; `columns`: what the fields are called."""
    hidden = {"Time": True, "__name__": True}
    transformations = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "renameByName": columns}},
    ]
    return Panel(
        "table",
        title,
        queries,
        text,
        width=24,
        height=9,
        options={"showHeader": True},
        transformations=transformations,
    )


@dataclass(frozen=True)
class Dashboard:
    """A dashboard; `variables` are names of labels to choose values of, each with the metric that has it."""

    uid: str
    title: str
    text: str
    rows: Sequence[Sequence[Panel]]
    variables: Sequence[tuple[str, str]] = ()

    def document(self) -> Document:
        """Return Grafana's document."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.text,
            "tags": ["delaytopic"],
            "schemaVersion": 39,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "timezone": "browser",
            "templating": {"list": [_choice_of_source(), *(_choice(*each) for each in self.variables)]},
            "panels": list(self._placed()),
            "links": [_links()],
        }

    def _placed(self) -> Iterable[Document]:
        y, number_of_panel = 0, 0
        for row in self.rows:
            x = 0
            for panel in row:
                number_of_panel += 1
                yield panel.document(number_of_panel, x, y)
                x += panel.width
            y += max(panel.height for panel in row)


def _choice_of_source() -> Document:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _choice(label: str, query: str) -> Document:
    return {
        "name": label.removeprefix("delaytopic_"),
        "label": label.removeprefix("delaytopic_"),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({query}, {label})", "refId": label},
        "refresh": 2,
        "sort": 1,
    }


def _links() -> Document:
    return {"title": "delaytopic", "type": "dashboards", "tags": ["delaytopic"], "asDropdown": True, "keepTime": True}
