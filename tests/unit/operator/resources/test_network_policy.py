"""Tests of who may reach relays, and what they may reach."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.support.operator.routes import INLINE, Route, route

from delaytopic_api import load_relay_config

DNS = {(protocol, port) for protocol in ("UDP", "TCP") for port in (53, 5353)}
URL = {"type": "RedisZset", "redis": {"url": "redis://redis/0"}}
SECRET_URL = {"type": "RedisZset", "redis": {"urlSecret": {"secretName": "redis"}}}


def with_tokens_of(url: str) -> dict[str, Any]:
    oauth = {"tokenEndpointUrl": url, "credentials": {"secretName": "client"}}
    return {"authentication": {"type": "OAuthBearer", "oauth": oauth}}


def known_token(given: Route) -> str | None:
    """The digest in the configuration of its relays."""
    return load_relay_config(given.relay_object("ConfigMap")["data"]["relay.yaml"]).http.pending_token_sha256


def let_out(given: Route) -> set[tuple[str, int | None]]:
    """Protocols and ports; None for any port."""
    rules = given.relay_object("NetworkPolicy")["spec"]["egress"]
    assert not any("to" in rule for rule in rules)
    return {(port["protocol"], port.get("port")) for rule in rules for port in rule["ports"]}


@pytest.mark.parametrize(
    ("spec", "config", "ports"),
    [
        ({"connection": {"bootstrapServers": "a:9092,b:9093,[::1]:9094"}}, {}, {9092, 9093, 9094}),
        ({"backend": URL}, {}, {9092, 6379}),
        ({"backend": URL | {"redis": {"url": "rediss://redis:6380"}}}, {}, {9092, 6380}),
        ({"backend": SECRET_URL}, {}, {None}),
        ({"connection": INLINE | with_tokens_of("https://login.test/token")}, {}, {9092, 443}),
        ({"connection": INLINE | with_tokens_of("http://login:8180/token")}, {}, {9092, 8180}),
        ({"connection": INLINE}, {"relayEgressPorts": [31000, 31001]}, {9092, 31000, 31001}),
    ],
)
def test_relays_reach_name_servers_and_the_ports_of_kafka_redis_and_the_issuer_of_tokens(
    spec: dict[str, Any], config: dict[str, Any], ports: set[int | None]
) -> None:
    assert let_out(route(config=config, **spec)) == DNS | {("TCP", port) for port in ports}


def test_relays_pages_are_for_the_operators_pods_and_for_monitoring() -> None:
    labels = {"app.kubernetes.io/name": "delays", "app.kubernetes.io/component": "operator"}
    config = {"namespace": "ops", "operatorLabels": labels, "monitoringNamespaces": {"purpose": "monitoring"}}
    given = route(config=config)

    (rule,) = given.relay_object("NetworkPolicy")["spec"]["ingress"]

    assert rule == {
        "from": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ops"}},
                "podSelector": {"matchLabels": labels},
            },
            {"namespaceSelector": {"matchLabels": {"purpose": "monitoring"}}},
        ],
        "ports": [{"protocol": "TCP", "port": 8080}],
    }


def test_a_gateway_that_relays_know_reaches_those_of_a_class_and_no_others() -> None:
    gateway = {"tokenSha256": "0a" * 32, "labels": {"app": "gateway"}}
    of_class, own = route(config={"gateway": gateway}, of_class={}), route(config={"gateway": gateway})
    pods = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "delaytopic-system"}},
        "podSelector": {"matchLabels": {"app": "gateway"}},
    }

    (rule,), (others,) = (each.relay_object("NetworkPolicy")["spec"]["ingress"] for each in (of_class, own))

    assert (rule["from"].count(pods), others["from"].count(pods)) == (1, 0)
    assert (known_token(of_class), known_token(own)) == ("0a" * 32, None)


def test_the_policy_is_about_these_relays_only() -> None:
    given = route()

    selectors = {
        "policy": given.relay_object("NetworkPolicy")["spec"]["podSelector"],
        "budget": given.relay_object("PodDisruptionBudget")["spec"]["selector"],
        "deployment": given.relay_object("Deployment")["spec"]["selector"],
    }

    assert len({str(selector) for selector in selectors.values()}) == 1
    assert selectors["policy"]["matchLabels"].items() <= given.pod()["metadata"]["labels"].items()


def test_an_audit_reaches_its_ledger_anywhere() -> None:
    audit = {"schedule": "0 * * * *", "ledger": "s3a://audits"}
    policy = route(config={"audit": audit}).audit_object("NetworkPolicy")["spec"]

    assert (policy["policyTypes"], policy["egress"]) == (["Ingress", "Egress"], [{}])


def test_driver_and_executors_of_an_audit_reach_each_other_on_two_ports_and_nobody_else_does() -> None:
    audit = {"schedule": "0 * * * *", "ledger": "s3a://audits", "mode": "Kubernetes", "driverAccount": "driver"}
    given = route(config={"audit": audit})

    policy = given.audit_object("NetworkPolicy")["spec"]

    ports = [{"protocol": "TCP", "port": port} for port in (7078, 7079)]
    assert policy["ingress"][1:] == [{"from": [{"podSelector": policy["podSelector"]}], "ports": ports}]
    template = yaml.safe_load(given.audit_object("ConfigMap")["data"]["executor.yaml"])
    job = given.audit_object("CronJob")["spec"]["jobTemplate"]["spec"]["template"]
    for pod in (template, job):
        assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_an_operator_can_be_told_to_make_none() -> None:
    audit = {"schedule": "0 * * * *", "ledger": "s3a://audits"}
    given = route(config={"networkPolicy": "None", "audit": audit})

    assert "NetworkPolicy" not in {document["kind"] for document in given.documents()}
