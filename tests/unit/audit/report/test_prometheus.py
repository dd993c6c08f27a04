"""The report as metrics."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from tests.unit.audit.sample_report import NOW_MS, sample_report

from delaytopic_audit.report.prometheus import HELP, prometheus_text
from delaytopic_audit.report.reporting import no_verdict


def test_metrics_are_prometheus_text() -> None:
    families = list(text_string_to_metric_families(prometheus_text(sample_report())))

    samples = {(s.name, *_own(s.labels).values()): s.value for family in families for s in family.samples}
    assert {family.name for family in families} == {f"delaytopic_slo_{name}" for name in HELP}
    assert {family.type for family in families} == {"gauge"}
    assert samples[("delaytopic_slo_verdict",)] == 0
    assert samples["delaytopic_slo_records", "lost"] == 3


def test_every_metric_names_its_delay_topic_as_those_of_relays_do() -> None:
    families = list(text_string_to_metric_families(prometheus_text(sample_report())))

    names = {(s.labels["delaytopic_namespace"], s.labels["delaytopic_name"]) for f in families for s in f.samples}
    assert names == {("shop", "order-reminders")}


def test_metrics_without_a_verdict_say_only_that() -> None:
    families = list(text_string_to_metric_families(prometheus_text(no_verdict("shop/orders", ["gone"], NOW_MS))))

    labels = {"delaytopic_namespace": "shop", "delaytopic_name": "orders"}
    assert [(s.name, s.labels, s.value) for family in families for s in family.samples] == [
        ("delaytopic_slo_verdict", labels, -1),
        ("delaytopic_slo_generated_timestamp_seconds", labels, NOW_MS / 1000),
    ]


def _own(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in ("delaytopic_namespace", "delaytopic_name")}
