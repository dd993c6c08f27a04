"""The documents for KEDA on its page: metrics that are served and queries that Prometheus takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.chart.keda_page import DOCUMENTS, SCALED
from tests.support.chart.metrics_in_code import named_series, served_series

from delaytopic_api import DelayTopic, load_document

QUERIES = [
    trigger["metadata"]["query"]
    for document in SCALED
    for trigger in document["spec"]["triggers"]
    if trigger["type"] == "prometheus"
]


def test_every_metric_of_a_query_is_served() -> None:
    assert len(QUERIES) == 2
    assert [named_series(query) - served_series() for query in QUERIES] == [set(), set()]


def test_a_lag_of_one_marker_in_each_partition_wakes_nobody() -> None:
    [of_target] = [each["spec"] for each in SCALED if any(one["type"] == "kafka" for one in each["spec"]["triggers"])]
    [lag] = [trigger["metadata"] for trigger in of_target["triggers"] if trigger["type"] == "kafka"]

    assert int(lag["activationLagThreshold"]) >= of_target["maxReplicaCount"]


def test_relays_are_scaled_by_keda_only_where_their_own_scaling_is_off() -> None:
    topics = [load_document(document) for document in DOCUMENTS if document["kind"] == "DelayTopic"]
    scaled = [each["spec"]["scaleTargetRef"] for each in SCALED if "kind" in each["spec"]["scaleTargetRef"]]

    assert [(each["kind"], each["name"]) for each in scaled] == [
        ("DelayTopic", topic.metadata.name) for topic in topics
    ]
    assert [topic.spec.autoscaling.mode for topic in topics if isinstance(topic, DelayTopic)] == ["External"]


@pytest.mark.integration
def test_prometheus_finds_every_query_well_formed(promtool: Path, tmp_path: Path) -> None:
    rules = [{"record": f"keda:query_{place}", "expr": query} for place, query in enumerate(QUERIES)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "keda", "rules": rules}]}))

    command = [str(promtool), "check", "rules", str(tmp_path / "rules.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr) == (0, "")
    assert "2 rules found" in result.stdout
