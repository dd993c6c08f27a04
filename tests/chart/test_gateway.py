"""The gateway of the chart, rendered."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from charts.tools.kustomize import NAMESPACE
from charts.tools.places import CHART
from click.testing import CliRunner
from playground.kube.helm import Helm, HelmError
from tests.cluster.access import Access
from tests.support.chart.helm import EVERYTHING, ChartHelm, named
from tests.support.chart.rights import granted

from delaytopic_gateway.__main__ import gateway
from delaytopic_operator.config import GatewayConfig, OperatorConfig, TokenSecret

pytestmark = pytest.mark.integration

NAME = "delaytopic-gateway"
TOKEN = "delaytopic-relay-token"
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
    }


@pytest.mark.parametrize(
    ("values", "namespaces"),
    [
        ("gateway.enabled=true", [NAMESPACE]),
        ("relayNamespaces={relays-a,relays-b}", [NAMESPACE, "relays-a", "relays-b"]),
        ("relaysEverywhere=true", [NAMESPACE, "relays-a", "relays-b", "shop"]),
    ],
)
def test_it_lists_pods_where_relays_run_and_nowhere_else(helm: ChartHelm, values: str, namespaces: list[str]) -> None:
    documents = helm.template(*ON, "--set", values)

    pods = Access("list", "", "pods")
    asked = [NAMESPACE, "relays-a", "relays-b", "shop"]
    assert [each for each in asked if pods in granted(documents, NAME, each)] == namespaces


def test_no_rights_are_made_where_the_chart_makes_none(helm: ChartHelm) -> None:
    assert granted(helm.template(*ON, "--set", "rbac.create=false"), NAME, "shop") == set()


def test_the_values_become_options_that_the_command_takes(helm: ChartHelm) -> None:
    container = _container(helm.template("--values", str(EVERYTHING)))

    assert (container["command"], container["args"]) == (
        ["delaytopic-gateway"],
        [
            "--listen=0.0.0.0:8080",
            "--probe-listen=0.0.0.0:8081",
            "--kafka-config=/etc/delaytopic/kafka/kafka.yaml",
            "--relay-token-file=/etc/delaytopic/relays/token",
            "--jobs-topic=delaytopic.gateway.jobs",
            "--host=delays.example",
            "--user-header=X-Forwarded-User",
            "--groups-header=X-Forwarded-Groups",
            "--trusted-proxy=10.1.2.0/24",
        ],
    )
    known = CliRunner().invoke(gateway, ["--help"]).output
    assert [each for each in container["args"] if each.partition("=")[0] not in known] == []


def test_it_mounts_its_own_login_and_answers_its_probes_where_nobody_else_asks(helm: ChartHelm) -> None:
    documents = helm.template(*ON)
    container = _container(documents)

    pod = named(documents, "Deployment", NAME)["spec"]["template"]["spec"]
    assert pod["volumes"][0] == {"name": "kafka", "secret": {"secretName": "kafka"}}
    assert container["volumeMounts"][0] == {"name": "kafka", "mountPath": "/etc/delaytopic/kafka", "readOnly": True}
    assert container["ports"] == [
        {"name": "http", "containerPort": 8080, "protocol": "TCP"},
        {"name": "probes", "containerPort": 8081, "protocol": "TCP"},
    ]
    assert [container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")] == [
        {"path": "/healthz", "port": "probes"},
        {"path": "/healthz", "port": "probes"},
        {"path": "/readyz", "port": "probes"},
    ]


def _operator(documents: list[dict[str, Any]]) -> OperatorConfig:
    text = named(documents, "ConfigMap", "delaytopic")["data"]["operator.yaml"]
    return OperatorConfig.model_validate(yaml.safe_load(text))


def test_the_operator_is_told_which_secret_to_make_and_the_gateway_mounts_it(helm: ChartHelm) -> None:
    documents = helm.template(*ON, "--set", "gateway.relayToken.key=shown")
    pod = named(documents, "Deployment", NAME)["spec"]["template"]
    gateway = _operator(documents).gateway

    assert gateway is not None
    assert (gateway.token_sha256, gateway.token_secret) == (None, TokenSecret(name=TOKEN, key="shown"))
    assert gateway.labels.items() <= pod["metadata"]["labels"].items()
    assert pod["spec"]["volumes"][1] == {"name": "relays", "secret": {"secretName": TOKEN}}
    assert "--relay-token-file=/etc/delaytopic/relays/shown" in _container(documents)["args"]


def test_renderings_without_a_cluster_are_equal_byte_by_byte(helm: ChartHelm) -> None:
    arguments = ("template", "delaytopic", str(CHART), *ON)
    rendered = [Helm(helm.program, helm.home)(*arguments) for _ in range(2)]

    assert rendered[0] == rendered[1]


@pytest.mark.parametrize(
    ("values", "namespaces"),
    [
        ("gateway.enabled=true", [NAMESPACE]),
        ("relayNamespaces={delay-relays}", [NAMESPACE]),
        (f"gateway.relayToken.secret=own,gateway.relayToken.sha256={'0a' * 32}", []),
        ("gateway.enabled=false", []),
    ],
    ids=["a gateway", "relays elsewhere", "a token of one's own", "no gateway"],
)
def test_the_operator_may_make_secrets_beside_a_gateway_alone(
    helm: ChartHelm, values: str, namespaces: list[str]
) -> None:
    documents = helm.template(*ON, "--set", values)

    makes = Access("create", "", "secrets")
    asked = [NAMESPACE, "delay-relays", "shop"]
    assert [each for each in asked if makes in granted(documents, "delaytopic", each)] == namespaces


def test_a_token_of_ones_own_is_named_with_its_digest(helm: ChartHelm) -> None:
    own = ("--set", "gateway.relayToken.secret=own")
    documents = helm.template(*ON, *own, "--set", f"gateway.relayToken.sha256={'0a' * 32}")

    assert [each for each in documents if each["kind"] == "Secret"] == []
    assert named(documents, "Deployment", NAME)["spec"]["template"]["spec"]["volumes"][1] == {
        "name": "relays",
        "secret": {"secretName": "own"},
    }
    assert _operator(documents).gateway == GatewayConfig(
        token_sha256="0a" * 32,
        labels={
            "app.kubernetes.io/name": "delaytopic",
            "app.kubernetes.io/instance": "delaytopic",
            "app.kubernetes.io/component": "gateway",
        },
    )
    annotations = named(documents, "Deployment", NAME)["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"delaytopic.dev/relay-token": "0a" * 32}
    with pytest.raises(HelmError, match=r"gateway\.relayToken\.sha256: give the SHA-256"):
        helm.template(*ON, *own)


def test_without_a_gateway_relays_are_told_of_none(helm: ChartHelm) -> None:
    assert _operator(helm.template()).gateway is None


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


def test_its_pods_are_placed_by_values_of_their_own(helm: ChartHelm) -> None:
    documents = helm.template("--values", str(EVERYTHING))
    template = named(documents, "Deployment", NAME)["spec"]["template"]
    spec = template["spec"]

    placed = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName")
    values = yaml.safe_load(EVERYTHING.read_text(encoding="utf-8"))["gateway"]
    assert {name: spec[name] for name in placed} == {name: values[name] for name in placed}
    assert template["metadata"]["labels"]["network"] == "outside"
    assert template["metadata"]["annotations"] == {
        "example.com/note": "of the gateway",
        "delaytopic.dev/relay-token": "0a" * 32,
    }
