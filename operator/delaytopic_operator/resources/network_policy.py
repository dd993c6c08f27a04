"""The NetworkPolicies of relays and audits: who may reach them, and what they may reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import parse_redis_url
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.resources.identity import (
    Document,
    RelayIdentity,
    metadata,
    selector,
)

DNS_PORTS: Final = (53, 5353)
"""Rules see the pod behind a Service: OpenShift's name servers listen on 5353. Any address: node-local caches have
one of the node's."""
_WEB_PORTS: Final = {"http": 80, "https": 443}


def network_policy(identity: RelayIdentity, relay: RelayConfig, config: OperatorConfig) -> Document:
    """Return the policy of relays. In: the pages, for the operator, for a gateway that the relays know, and for
    monitoring.

    Out: DNS, and the ports of Kafka and Redis, anywhere: brokers may be anywhere, so that addresses cannot be told.
    Where the Redis URL is in a Secret, every TCP port is open: a wrong guess would stop delivery, and the policy must
    not tell what the Secret holds.
    """
    ports = _ports(relay, config)
    own = [config.operator_labels]
    if config.gateway is not None and relay.http.pending_token_sha256 is not None:
        own.append(config.gateway.labels)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(identity, identity.relays_name),
        "spec": {
            "podSelector": {"matchLabels": selector(identity.key)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "from": [
                        *(_own_pods(labels, config) for labels in own),
                        _namespaces(config.monitoring_namespaces),
                    ],
                    "ports": [_port("TCP", relay.http.port)],
                }
            ],
            "egress": [_dns(), _open_to(ports)],
        },
    }


def audit_network_policy(
    own: Document, labels: Mapping[str, str], port: int, ports: Sequence[int], config: OperatorConfig
) -> Document:
    """Return the policy of an audit. In: the operator, which reads verdicts on this port; and the pods of the same
    audit on `ports`, if any. Out: everything, as a ledger may be in any store.

    `own` is the policy's metadata, `labels` are those of the pods.
    """
    pods = {"matchLabels": dict(labels)}
    ingress = [{"from": [_own_pods(config.operator_labels, config)], "ports": [_port("TCP", port)]}]
    if ports:
        ingress.append({"from": [{"podSelector": pods}], "ports": [_port("TCP", each) for each in ports]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": own,
        "spec": {"podSelector": pods, "policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": [{}]},
    }


def _ports(relay: RelayConfig, config: OperatorConfig) -> list[int] | None:
    """None: any."""
    ports = {int(server.rpartition(":")[2]) for server in relay.kafka.bootstrap_servers.split(",")}
    oauth, redis = relay.kafka.security.oauth, relay.backend.redis
    if oauth is not None:
        issuer = urlsplit(oauth.token_endpoint_url)
        ports.add(issuer.port or _WEB_PORTS[issuer.scheme])
    if redis is not None:
        if redis.url is None:
            return None
        ports.add(parse_redis_url(redis.url).port)
    return sorted(ports | set(config.relay_egress_ports))


def _dns() -> Document:
    return {"ports": [_port(protocol, port) for port in DNS_PORTS for protocol in ("UDP", "TCP")]}


def _open_to(ports: list[int] | None) -> Document:
    return {"ports": [{"protocol": "TCP"}] if ports is None else [_port("TCP", port) for port in ports]}


def _port(protocol: str, port: int) -> Document:
    return {"protocol": protocol, "port": port}


def _own_pods(labels: dict[str, str], config: OperatorConfig) -> Document:
    """Pods with these labels in the operator's namespace."""
    return {
        **_namespaces({"kubernetes.io/metadata.name": config.namespace}),
        "podSelector": {"matchLabels": labels},
    }


def _namespaces(labels: dict[str, str]) -> Document:
    return {"namespaceSelector": {"matchLabels": labels}}
