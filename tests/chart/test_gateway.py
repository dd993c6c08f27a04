"""The gateway of the chart, rendered."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from tests.chart.helm import EVERYTHING, ChartHelm, named
from tests.chart.rights import granted
from tests.cluster.access import Access
from tests.cluster.helm import HelmError

from delaytopic_cli.commands.gateway import gateway

pytestmark = pytest.mark.integration

NAME = "delaytopic-gateway"
ON = ("--set", "gateway.enabled=true,gateway.kafkaConfig.secret=kafka")


def _container(documents: list[dict[str, Any]]) -> dict[str, Any]:
    containers = named(documents, "Deployment", NAME)["spec"]["template"]["spec"]["containers"]
    return dict(containers[0])


def test_there_is_none_unless_it_is_asked_for(helm: ChartHelm) -> None:
    documents = helm.template()

    assert [each["kind"] for each in documents if "gateway" in each["metadata"]["name"]] == []


def test_without_a_login_to_kafka_the_chart_says_what_is_missing(helm: ChartHelm) -> None:
    with pytest.raises(HelmError, match=r"gateway\.kafkaConfig\.secret: name the Secret"):
        helm.template("--set", "gateway.enabled=true")


def test_it_may_ask_who_somebody_is_and_what_he_may_do_and_list_what_it_serves_and_nothing_else(
    helm: ChartHelm,
) -> None:
    found = granted(helm.template(*ON), NAME, "shop")

    assert found == {
        Access("create", "authentication.k8s.io", "tokenreviews"),
        Access("create", "authorization.k8s.io", "subjectaccessreviews"),
        Access("list", "delaytopic.dev", "delaytopics"),
        Access("list", "delaytopic.dev", "delayclasses"),
        Access("list", "", "pods"),
    }


def test_no_rights_are_made_where_the_chart_makes_none(helm: ChartHelm) -> None:
    assert granted(helm.template(*ON, "--set", "rbac.create=false"), NAME, "shop") == set()


def test_the_values_become_options_that_the_command_takes(helm: ChartHelm) -> None:
    container = _container(helm.template("--values", str(EVERYTHING)))

    assert (container["command"], container["args"]) == (
        ["delaytopic", "gateway"],
        [
            "--listen=0.0.0.0:8080",
            "--kafka-config=/etc/delaytopic/kafka/kafka.yaml",
            "--host=delays.example",
            "--user-header=X-Forwarded-User",
            "--groups-header=X-Forwarded-Groups",
            "--trusted-proxy=10.1.2.0/24",
        ],
    )
    known = CliRunner().invoke(gateway, ["--help"]).output
    assert [each for each in container["args"] if each.partition("=")[0] not in known] == []


def test_it_mounts_its_own_login_and_answers_its_probes_where_it_listens(helm: ChartHelm) -> None:
    documents = helm.template(*ON)
    container = _container(documents)

    pod = named(documents, "Deployment", NAME)["spec"]["template"]["spec"]
    assert pod["volumes"][0] == {"name": "kafka", "secret": {"secretName": "kafka"}}
    assert container["volumeMounts"][0] == {"name": "kafka", "mountPath": "/etc/delaytopic/kafka", "readOnly": True}
    assert container["ports"] == [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]
    assert [container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")] == [
        "/healthz",
        "/readyz",
    ]


def test_its_network_policy_lets_in_whom_the_values_name(helm: ChartHelm) -> None:
    spec = named(helm.template("--values", str(EVERYTHING)), "NetworkPolicy", NAME)["spec"]

    assert spec["ingress"] == [
        {
            "ports": [{"port": "http", "protocol": "TCP"}],
            "from": [{"podSelector": {"matchLabels": {"app": "oauth2-proxy"}}}],
        }
    ]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "gateway"


def test_its_pods_are_not_taken_for_the_operators(helm: ChartHelm) -> None:
    documents = helm.template(*ON)

    operator = named(documents, "Deployment", "delaytopic")["spec"]["selector"]["matchLabels"]
    pods = named(documents, "Deployment", NAME)["spec"]["template"]["metadata"]["labels"]

    assert not operator.items() <= pods.items()
