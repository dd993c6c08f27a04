"""The objectives of DelayTopics as OpenSLO's and Sloth's tools take them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.support.chart.metrics_in_code import named_series, served_series

from delaytopic_cli.__main__ import cli
from delaytopic_process.errors import InputError

TOPIC = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {{name: {name}, namespace: shop}}
spec:
  source: {{topic: orders.delayed}}
  target: {{topic: orders}}
  slo: {{lateness: 4s, objective: {objective}, window: {window}}}
"""
OF_TOPIC = 'delaytopic_namespace="shop", delaytopic_name="reminders"'
GOOD = f'delaytopic_lateness_seconds_bucket{{{OF_TOPIC}, le="5.0"}}'
TOTAL = f"delaytopic_lateness_seconds_count{{{OF_TOPIC}}}"


def topic(name: str = "reminders", objective: str = "99.95%", window: str = "720h") -> str:
    return TOPIC.format(name=name, objective=objective, window=window)


def exported(folder: Path, text: str, form: str, *more: str) -> list[dict[str, Any]]:
    """Return what the command prints."""
    (folder / "topics.yaml").write_text(text, encoding="utf-8")
    words = ["audit", "export", "-f", str(folder / "topics.yaml"), *([form] if form else []), *more]
    result = CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
    return list(yaml.safe_load_all(result.output))


def raised(folder: Path, text: str, form: str) -> str:
    with pytest.raises(InputError) as caught:
        exported(folder, text, form)
    return str(caught.value)


def test_openslo_has_the_periods_of_a_calendar_and_sloth_refuses_them(tmp_path: Path) -> None:
    text = topic().replace("window: 720h", "calendar: Month")

    [document] = exported(tmp_path, text, "--openslo")

    begin = {"startTime": "2024-01-01 00:00:00", "timeZone": "UTC"}
    assert document["spec"]["timeWindow"] == [{"duration": "1M", "calendar": begin, "isRolling": False}]
    [berlin] = exported(tmp_path, text.replace("Month", "Month, timeZone: Europe/Berlin"), "--openslo")
    assert berlin["spec"]["timeWindow"][0]["calendar"] == begin | {"timeZone": "Europe/Berlin"}
    assert raised(tmp_path, text, "--sloth").startswith("shop/reminders: slo.calendar: Sloth has rolling windows only")


@pytest.mark.parametrize("form", ["--openslo", "--sloth"])
def test_exclusions_are_refused_as_neither_form_has_any(tmp_path: Path, form: str) -> None:
    exclusion = '{from: "2026-11-21T02:00:00Z", until: "2026-11-21T03:00:00Z", reason: upgrade}'
    text = topic().replace("window: 720h", f"window: 720h, exclusions: [{exclusion}]")

    assert raised(tmp_path, text, form).startswith("shop/reminders: slo.exclusions: neither OpenSLO nor Sloth has")


def test_openslo_has_good_and_all_records_as_counters_over_the_window(tmp_path: Path) -> None:
    assert exported(tmp_path, topic(), "--openslo") == [
        {
            "apiVersion": "openslo/v1",
            "kind": "SLO",
            "metadata": {"name": "shop-reminders-timely", "displayName": "shop/reminders on time"},
            "spec": {
                "description": "Records of orders.delayed arrive on orders at most 4s late.",
                "service": "shop-reminders",
                "indicator": {
                    "metadata": {"name": "shop-reminders-timely"},
                    "spec": {
                        "ratioMetric": {
                            "counter": True,
                            "good": {"metricSource": {"type": "Prometheus", "spec": {"query": f"sum({GOOD})"}}},
                            "total": {"metricSource": {"type": "Prometheus", "spec": {"query": f"sum({TOTAL})"}}},
                        }
                    },
                },
                "timeWindow": [{"duration": "30d", "isRolling": True}],
                "budgetingMethod": "Occurrences",
                "objectives": [{"displayName": "at most 4s late", "target": 0.9995}],
            },
        }
    ]


def several() -> str:
    return topic().replace("window: 720h", "window: 720h, thresholds: [{lateness: 100ms, objective: 99%}]")


def test_openslo_has_a_document_for_each_threshold(tmp_path: Path) -> None:
    timely, fast = exported(tmp_path, several(), "--openslo")

    assert [timely] == exported(tmp_path, topic(), "--openslo")
    assert fast["metadata"] == {"name": "shop-reminders-timely-100ms", "displayName": "shop/reminders within 100ms"}
    good = f'sum(delaytopic_lateness_seconds_bucket{{{OF_TOPIC}, le="0.1"}})'
    ratio = fast["spec"]["indicator"]["spec"]["ratioMetric"]
    assert ratio["good"] == {"metricSource": {"type": "Prometheus", "spec": {"query": good}}}
    assert fast["spec"]["description"] == "Records of orders.delayed arrive on orders at most 100ms late."
    assert fast["spec"]["objectives"] == [{"displayName": "at most 100ms late", "target": 0.99}]


def test_sloth_has_an_slo_for_each_threshold_in_one_document(tmp_path: Path) -> None:
    [document] = exported(tmp_path, several(), "--sloth")

    assert [(each["name"], each["objective"]) for each in document["slos"]] == [("timely", 99.95), ("timely-100ms", 99)]
    assert 'le="0.1"' in document["slos"][1]["sli"]["events"]["error_query"]


def test_sloth_has_late_and_all_records_over_its_own_windows(tmp_path: Path) -> None:
    total = f"sum(rate({TOTAL}[{{{{.window}}}}]))"
    summary = "No longer met soon: Records of orders.delayed arrive on orders at most 4s late."
    assert exported(tmp_path, topic(), "--sloth") == [
        {
            "version": "prometheus/v1",
            "service": "shop-reminders",
            "labels": {"delaytopic_namespace": "shop", "delaytopic_name": "reminders"},
            "slos": [
                {
                    "name": "timely",
                    "objective": 99.95,
                    "sli": {
                        "events": {
                            "error_query": f"({total} - sum(rate({GOOD}[{{{{.window}}}}])))",
                            "total_query": total,
                        }
                    },
                    "alerting": {
                        "name": "DelayTopicLate",
                        "annotations": {"summary": summary},
                        "page_alert": {"labels": {"severity": "critical"}},
                        "ticket_alert": {"labels": {"severity": "warning"}},
                    },
                }
            ],
        }
    ]


@pytest.mark.parametrize("form", ["--openslo", "--sloth"])
def test_every_series_in_a_query_is_served(tmp_path: Path, form: str) -> None:
    text = re.sub(r"delaytopic_(name|namespace)", "", str(exported(tmp_path, topic(), form)))

    assert named_series(text)
    assert named_series(text) <= served_series()


@pytest.mark.parametrize(("window", "duration"), [("672h", "28d"), ("36h", "36h"), ("90m", "90m"), ("1h1m", "61m")])
def test_windows_are_written_in_the_one_unit_that_openslo_takes(tmp_path: Path, window: str, duration: str) -> None:
    [document] = exported(tmp_path, topic(window=window), "--openslo")

    assert document["spec"]["timeWindow"] == [{"duration": duration, "isRolling": True}]


def test_names_are_labels_as_in_dns_and_differ_where_they_are_cut(tmp_path: Path) -> None:
    long = [topic(name).replace("shop", "n" * 63) for name in ("x" * 40, "x" * 39 + "y")]
    documents = [exported(tmp_path, text, "--openslo")[0] for text in [topic(), *long]]

    found = [each["metadata"]["name"] for each in documents]
    assert found[0] == "shop-reminders-timely"
    assert all(re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in found)
    assert len({*found}) == len({each["spec"]["service"] for each in documents}) == 3


def test_every_delay_topic_of_a_file_is_written_or_the_one_that_is_named(tmp_path: Path) -> None:
    both = topic() + "---" + topic("invoices")

    names = [each["service"] for each in exported(tmp_path, both, "--sloth")]
    named = [each["service"] for each in exported(tmp_path, both, "--sloth", "--name", "shop/invoices")]

    assert (names, named) == (["shop-reminders", "shop-invoices"], ["shop-invoices"])


def test_what_these_tools_cannot_express_is_refused(tmp_path: Path) -> None:
    strict, odd = topic(objective="100%"), topic(window="1h0m1s")

    assert raised(tmp_path, strict, "--openslo") == (
        "shop/reminders: an objective of 100% has no error budget, and these tools take none; the operator's alert"
        " DelayPromiseBroken is for it"
    )
    assert raised(tmp_path, strict, "--sloth") == raised(tmp_path, strict, "--openslo")
    assert raised(tmp_path, odd, "--openslo") == "slo.window: 1h0m1s is no whole number of minutes, which OpenSLO needs"
    assert raised(tmp_path, topic(), "") == "choose one of --openslo and --sloth"
