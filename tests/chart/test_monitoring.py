"""Alerts and dashboards: they name metrics that are served, and Prometheus itself checks their rules."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from charts.tools.dashboards import dashboards
from charts.tools.places import CHART, DOCS, ROOT, text_of
from tests.support.chart.metrics_in_code import AUDIT_METRICS, named_series, served_series

from delaytopic_operator.report import metric_names

RULES = CHART / "rules/delaytopic.rules.yaml"
RULES_TESTS = tuple(ROOT / "tests/data/chart" / name for name in ("rules_test.yaml", "rules_of_slo_test.yaml"))
MONITORING = DOCS / "reference/monitoring.md"
SECTIONS = ("## What it means", "## Is it hurting anybody", "## Look", "## Do", "## Afterwards")


def _rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text_of(RULES))["groups"] for rule in group["rules"]]


def _alerts() -> list[dict[str, Any]]:
    return [rule for rule in _rules() if "alert" in rule]


def _audit_section() -> str:
    """Of the reference, what is in the files of an audit."""
    return text_of(MONITORING).partition("## The audit's metrics")[2].partition("\n## ")[0]


def _panels() -> list[tuple[str, dict[str, Any]]]:
    return [(name, panel) for name, text in dashboards().items() for panel in json.loads(text)["panels"]]


def _expressions() -> list[str]:
    """Of all dashboards, with the variables of Grafana replaced by something."""
    found = [target["expr"] for _, panel in _panels() for target in panel["targets"]]
    return [re.sub(r"\$(namespace|name)\b", "any", each.replace("$__rate_interval", "5m")) for each in found]


def test_every_metric_in_an_alert_is_served() -> None:
    assert named_series("".join(rule["expr"] for rule in _rules())) - served_series() == set()


def test_what_is_recorded_is_what_rules_read() -> None:
    read = {name for rule in _rules() for name in re.findall(r"\bdelaytopic:[a-z0-9_]+:[a-z0-9]+\b", rule["expr"])}

    assert read == {rule["record"] for rule in _rules() if "record" in rule}


def test_alerts_on_the_audit_take_what_the_operator_serves_and_nothing_that_a_push_gateway_could() -> None:
    of_operator = {each.name for each in metric_names.SLO}

    for rule in _rules():
        for name in {each for each in named_series(rule["expr"]) if each.startswith("delaytopic_slo_")}:
            led = rf"{name}(?:\{{[^}}]*\}})?\[10m\]\)\s+and on \(instance\) delaytopic:operator_led:last10m"
            assert name in of_operator
            assert len(re.findall(led, rule["expr"])) == len(re.findall(rf"\b{name}\b", rule["expr"]))


def test_every_metric_in_a_dashboard_is_served() -> None:
    assert named_series("\n".join(_expressions())) - served_series() == set()


def test_every_variable_of_a_dashboard_takes_its_values_from_a_metric_that_is_served() -> None:
    queries = [
        variable["query"]["query"]
        for text in dashboards().values()
        for variable in json.loads(text)["templating"]["list"]
        if variable["type"] == "query"
    ]

    assert len(queries) == 2
    assert named_series("".join(queries)) - served_series() == set()


def test_every_metric_of_operator_and_audit_is_in_the_reference_with_its_meaning() -> None:
    page = text_of(MONITORING)

    audits = _audit_section()
    operator = [each.name for each in metric_names.ALL if f"| `{each.name}" not in page or each.text not in page]
    audit = [
        name for name, text in AUDIT_METRICS.items() if f"| `delaytopic_slo_{name}`" not in audits or text not in audits
    ]

    assert (operator, audit) == ([], [])


def test_the_reference_names_no_metric_of_the_audit_that_there_is_not() -> None:
    rows = re.findall(r"\| `delaytopic_slo_(\w+)`", _audit_section())

    assert sorted(rows) == sorted(AUDIT_METRICS)


@pytest.mark.parametrize("rule", _alerts(), ids=lambda rule: rule["alert"])
def test_every_alert_has_a_page_for_whoever_it_wakes(rule: dict[str, Any]) -> None:
    page = text_of(ROOT / rule["annotations"]["runbook_url"])

    places = [page.find(section) for section in SECTIONS]

    assert rule["alert"] in page
    assert places == sorted(places)
    assert -1 not in places
    assert "kubectl" in page


def test_every_page_belongs_to_an_alert() -> None:
    pages = {f"docs/runbooks/{path.name}" for path in (DOCS / "runbooks").glob("*.md")}

    assert pages == {rule["annotations"]["runbook_url"] for rule in _alerts()}


def test_every_alert_is_tested_for_firing_and_all_have_a_severity() -> None:
    cases = [case for path in RULES_TESTS for case in yaml.safe_load(text_of(path))["tests"]]

    fired = {each["alertname"] for case in cases for each in case["alert_rule_test"] if each["exp_alerts"]}

    assert fired == {rule["alert"] for rule in _alerts()}
    assert {rule["labels"]["severity"] for rule in _alerts()} == {"critical", "warning", "info"}


def test_panels_of_a_dashboard_have_places_and_numbers_of_their_own_and_say_what_they_mean() -> None:
    for name in dashboards():
        panels = [panel for of, panel in _panels() if of == name]
        cells = [
            (x, y)
            for panel in panels
            for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
        ]

        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) == 23
        assert len({panel["id"] for panel in panels}) == len(panels)
        assert all(panel["description"] for panel in panels)


@pytest.mark.integration
def test_prometheus_finds_the_rules_well_formed(promtool: Path) -> None:
    result = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr) == (0, "")
    assert f"{len(_rules())} rules found" in result.stdout


@pytest.mark.integration
@pytest.mark.takes_long("evaluates the rules for each minute of some days")
def test_alerts_fire_when_they_should_and_not_for_what_looks_alike(promtool: Path) -> None:
    result = subprocess.run([promtool, "test", "rules", *RULES_TESTS], capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.integration
def test_prometheus_finds_every_expression_of_a_dashboard_well_formed(promtool: Path, tmp_path: Path) -> None:
    rules = [{"record": f"panel:expression_{place}", "expr": each} for place, each in enumerate(_expressions())]
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))

    command = [str(promtool), "check", "rules", str(tmp_path / "panels.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(rules)} rules found" in result.stdout
