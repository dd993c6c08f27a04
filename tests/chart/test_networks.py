"""The NetworkPolicies of the chart: what its pods may connect to."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.chart.helm import EVERYTHING, ChartHelm, named, settings

from delaytopic_operator.observe.relay_pages import DEFAULT_PORT
from delaytopic_operator.resources.network_policy import DNS_PORTS

pytestmark = pytest.mark.integration

OPERATOR, GATEWAY, REDIS = "delaytopic", "delaytopic-gateway", "delaytopic-redis"
ON = ("--set", "gateway.enabled=true,gateway.kafkaConfig.secret=kafka,redis.enabled=true")
DNS = {(protocol, port) for protocol in ("UDP", "TCP") for port in DNS_PORTS}
API_SERVER, KAFKA, OTHER_REDIS = {443, 6443, 8443}, {9092, 9093, 9094, 9096, 9098}, {6379, 6380}


def _spec(documents: list[dict[str, Any]], name: str) -> dict[str, Any]:
    spec: dict[str, Any] = named(documents, "NetworkPolicy", name)["spec"]
    return spec


def _let_out(documents: list[dict[str, Any]], name: str) -> set[tuple[str, int]]:
    """Protocols and ports, at any address."""
    rules = _spec(documents, name)["egress"]
    assert not any("to" in rule for rule in rules)
    return {(port["protocol"], port["port"]) for rule in rules for port in rule["ports"]}


@pytest.mark.parametrize(
    ("name", "ports"),
    [
        (OPERATOR, API_SERVER | KAFKA | OTHER_REDIS | {DEFAULT_PORT}),
        (GATEWAY, API_SERVER | KAFKA | {DEFAULT_PORT}),
    ],
)
def test_pods_reach_name_servers_and_the_ports_of_what_they_work_with_and_nothing_else(
    helm: ChartHelm, name: str, ports: set[int]
) -> None:
    documents = helm.template(*ON)

    assert _spec(documents, name)["policyTypes"] == ["Ingress", "Egress"]
    assert _let_out(documents, name) == DNS | {("TCP", port) for port in ports}


@pytest.mark.parametrize("name", [OPERATOR, GATEWAY])
def test_ports_are_given_and_those_of_brokers_that_relays_reach_are_added(helm: ChartHelm, name: str) -> None:
    given = settings(
        networkPolicy__egressPorts="[443]",
        gateway__networkPolicy__egressPorts="[443]",
        operator__relayEgressPorts="[31092]",
    )

    documents = helm.template(*ON, *given)

    assert _let_out(documents, name) == DNS | {("TCP", 443), ("TCP", 31092)}


@pytest.mark.parametrize("name", [OPERATOR, GATEWAY])
@pytest.mark.parametrize("rules", ["[{}]", '[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]'], ids=["all", "a network"])
def test_rules_that_are_given_take_the_place_of_ports(helm: ChartHelm, name: str, rules: str) -> None:
    given = settings(networkPolicy__egress=rules, gateway__networkPolicy__egress=rules)

    documents = helm.template(*ON, *given)

    assert str(_spec(documents, name)["egress"]) == rules.replace('"', "'")


def test_the_redis_for_trying_reaches_nothing(helm: ChartHelm) -> None:
    spec = _spec(helm.template(*ON), REDIS)

    assert (spec["policyTypes"], spec.get("egress")) == (["Ingress", "Egress"], None)


@pytest.mark.parametrize("name", [OPERATOR, GATEWAY])
def test_further_volumes_are_mounted(helm: ChartHelm, name: str) -> None:
    pod = named(helm.template("--values", str(EVERYTHING)), "Deployment", name)["spec"]["template"]["spec"]

    assert pod["volumes"][-1] == {"name": "authorities", "configMap": {"name": "authorities"}}
    assert pod["containers"][0]["volumeMounts"][-1] == {
        "name": "authorities",
        "mountPath": "/etc/authorities",
        "readOnly": True,
    }
