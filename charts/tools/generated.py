"""All generated files, with what has to be in them; reading is all that it does."""

from __future__ import annotations

from pathlib import Path

import yaml
from charts.tools.argo_config import argo_config
from charts.tools.dashboards import dashboards
from charts.tools.pages import (
    access_table,
    alerts_table,
    metrics_table,
    settings_table,
    values_table,
    with_part,
)
from charts.tools.places import CHART, CRDS, DOCS, GITOPS, text_of
from charts.tools.values_schema import values_schema
from charts.tools.values_text import described_values

from delaytopic_operator.report import metric_names

_CLASS = "delaytopic.dev_delayclasses.yaml"
_ARGO = GITOPS / "argocd/resource_customizations/delaytopic.dev"


def generated_files() -> dict[Path, str]:
    """Path and text of each."""
    values = described_values(text_of(CHART / "values.yaml"))
    readme = with_part(text_of(CHART / "README.md"), "values", values_table(values))
    readme = with_part(readme, "settings", settings_table())
    access = access_table(yaml.safe_load(text_of(CHART / "files/access.yaml")))
    rules = yaml.safe_load(text_of(CHART / "rules/delaytopic.rules.yaml"))
    monitoring = DOCS / "reference/monitoring.md"
    monitored = with_part(text_of(monitoring), "operator metrics", metrics_table(metric_names.OPERATOR))
    monitored = with_part(monitored, "slo metrics", metrics_table(metric_names.SLO))
    security = DOCS / "explanation/security.md"
    return {
        **{CHART / "files/crds" / path.name: text_of(path) for path in sorted(CRDS.glob("delaytopic.dev_*.yaml"))},
        **{CHART / "dashboards" / name: text for name, text in dashboards().items()},
        CHART / "values.schema.json": values_schema(values, yaml.safe_load(text_of(CRDS / _CLASS))),
        CHART / "README.md": readme,
        monitoring: with_part(monitored, "alerts", alerts_table(rules["groups"])),
        security: with_part(text_of(security), "access", access),
        GITOPS / "argocd/argocd-cm.yaml": argo_config(_scripts()),
    }


def _scripts() -> dict[str, str]:
    return {str(path.relative_to(_ARGO)): text_of(path) for path in sorted(_ARGO.rglob("*.lua"))}
