"""The tables of the chart's documentation, and putting them between the marks of a page. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from charts.tools.values_schema import FROM_THE_RELEASE
from charts.tools.values_text import Value

from delaytopic_api.documents.descriptions import described
from delaytopic_operator.config import AuditConfig, ExecutorsConfig, OperatorConfig
from delaytopic_operator.report.metric_names import MetricName

Rule = dict[str, Any]
_SETTINGS: Final = ((OperatorConfig, ""), (AuditConfig, "audit."), (ExecutorsConfig, "audit.executors."))
"""The parts of OperatorConfig that the table has field by field."""


def values_table(values: list[Value]) -> str:
    """All values of the chart."""
    rows = [(f"`{value.path}`", _shown(value.default), value.description) for value in values]
    return _table(("value", "default", "what it says"), rows)


def settings_table() -> str:
    """All fields of OperatorConfig that the value `operator` takes."""
    rows = []
    for model, prefix in _SETTINGS:
        defaults = model().model_dump(mode="json", by_alias=True)
        for field in described(model).model_fields.values():
            name = str(field.alias)
            if name in FROM_THE_RELEASE or any(f"{prefix}{name}." == inner for _, inner in _SETTINGS):
                continue
            rows.append(
                (f"`operator.{prefix}{name}`", _shown(defaults[name]), " ".join((field.description or "").split()))
            )
    return _table(("value", "default", "what it says"), rows)


def access_table(rules: Iterable[Rule]) -> str:
    """Return the table of the operator's rights."""
    rows = []
    for rule in rules:
        group = rule["apiGroup"] or "core"
        names = f", only {', '.join(rule['names'])}" if "names" in rule else ""
        rows.append(
            (rule["scope"], f"{group}: {', '.join(rule['resources'])}{names}", ", ".join(rule["verbs"]), rule["why"])
        )
    return _table(("scope", "what", "verbs", "why"), rows)


def metrics_table(metrics: Iterable[MetricName]) -> str:
    """Return the table of metrics that the operator serves."""
    rows = [
        (
            f"`{each.name}{'_total' if each.type == 'counter' else ''}`",
            each.type,
            ", ".join(f"`{label}`" for label in each.labels),
            each.text,
        )
        for each in metrics
    ]
    return _table(("metric", "type", "labels", "what it says"), rows)


def alerts_table(groups: Iterable[Rule]) -> str:
    """The alerts, with their pages."""
    rows = []
    for rule in (rule for group in groups for rule in group["rules"] if "alert" in rule):
        page = rule["annotations"]["runbook_url"].removeprefix("docs/")
        rows.append((f"[{rule['alert']}](../{page})", rule["labels"]["severity"], rule.get("for", "at once")))
    return _table(("alert", "severity", "after"), rows)


def with_part(page: str, name: str, part: str) -> str:
    """The page with the part between its marks `<!-- name -->` and `<!-- end of name -->`; KeyError without them."""
    pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if not pattern.search(page):
        raise KeyError(name)
    return pattern.sub(lambda marks: f"{marks[1]}\n{part}\n{marks[2]}", page)


def _shown(value: Any) -> str:
    return "" if value in ("", None) else f"`{json.dumps(value)}`"


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [_row(titles), _row("---" for _ in titles), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
