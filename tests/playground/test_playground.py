"""The sample of `make up` is one that the class lets in, and its last words name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from charts.tools.places import CHART, ROOT
from click import Context
from playground.next_steps import OPERATOR_PORT, RELAY_PORT, next_steps
from playground.platform.installation import delay_class
from playground.sample import DAY_SECONDS, TRAFFIC, sample_team, sender
from playground.traffic.plan import Plan

from delaytopic_cli.kubectl.__main__ import cli

IMAGES = {"traffic": "traffic:1"}
SAID = next_steps(Path("/state/kubeconfig"), [Path("/venv/bin"), Path("/kubernetes")])


def test_the_delay_topic_is_of_three_lines_and_in_a_namespace_that_the_class_lets_in() -> None:
    namespace, topic = sample_team()
    selector = delay_class()["spec"]["access"]["namespaceSelector"]["matchLabels"]

    assert selector.items() <= namespace["metadata"]["labels"].items()
    assert topic == {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": "order-reminders", "namespace": "shop"},
        "spec": {"source": {"topic": "shop.order-reminders.delayed"}, "target": {"topic": "shop.order-reminders"}},
    }


def test_the_sender_sends_to_its_source_topic_for_a_day() -> None:
    [container] = sender(IMAGES)["spec"]["template"]["spec"]["containers"]
    *_, broker, topic, plan = container["command"]

    assert (container["image"], broker, topic) == ("traffic:1", "kafka.infrastructure:9092", sample_source())
    assert Plan.decode(plan) == TRAFFIC
    assert TRAFFIC.records / TRAFFIC.per_second == DAY_SECONDS


def test_the_last_words_can_be_typed() -> None:
    assert "export KUBECONFIG=/state/kubeconfig\n" in SAID
    assert "export PATH=/venv/bin:/kubernetes:$PATH\n" in SAID
    assert set(re.findall(r"kubectl delaytopic (\S+)", SAID)) <= set(cli.list_commands(Context(cli)))


def test_the_last_words_name_ports_and_folders_that_there_are() -> None:
    operator = (CHART / "templates" / "operator-deployment.yaml").read_text(encoding="utf-8")
    dashboards = re.search(r"(\S+)/\*\.json", SAID)

    assert f"containerPort: {OPERATOR_PORT}" in operator
    assert f"EXPOSE {RELAY_PORT}" in (ROOT / "images" / "relay.Dockerfile").read_text(encoding="utf-8")
    assert dashboards
    assert list((ROOT / dashboards[1]).glob("*.json"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert values["monitoring"]["dashboards"]["labels"] == {"grafana_dashboard": "1"}


def sample_source() -> str:
    """Of the DelayTopic."""
    return str(sample_team()[1]["spec"]["source"]["topic"])
