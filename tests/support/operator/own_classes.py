"""Further classes of a platform team's: with other settings, and with a Kafka that asks for a password."""

from __future__ import annotations

import base64
from typing import Any

from tests.harness.shared_servers import SharedKafka
from tests.support.operator.platform import Platform
from tests.support.servers.secure_servers import PASSWORD, USERNAME


def own_class(platform: Platform, name: str, **spec: Any) -> str:
    """Apply a further class of the platform team's, and return its name."""
    usual = {
        "connection": {"bootstrapServers": platform.kafka.bootstrap_servers},
        "backend": {"type": "RedisZset", "redis": {"url": platform.redis.url}},
        "defaults": {"partitions": 2, "replicationFactor": 1},
    }
    of_class = f"{name}-{platform.namespace.rpartition('-')[2]}"
    platform.apply("DelayClass", of_class, {**usual, **spec})
    return of_class


def secret(platform: Platform, name: str, namespace: str | None = None, **values: str) -> None:
    """A Secret that holds these values, whether it is there already or not."""
    data = {key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in values.items()}
    path = f"/api/v1/namespaces/{namespace or platform.namespace}/secrets/{name}"
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
    platform.client.apply(path, document)


def guarded_connection(platform: Platform, kafka: SharedKafka, password: str = PASSWORD) -> dict[str, Any]:
    """Return a class's connection to the listener that asks for a password, which is in a Secret."""
    secret(platform, "kafka-authority", ca_crt=kafka.certificates.authority.read_text())
    secret(platform, "kafka-password", password=password)
    return {
        "bootstrapServers": kafka.listeners.sasl,
        "tls": {"trustedCertificates": [{"secretName": "kafka-authority", "certificate": "ca.crt"}]},
        "authentication": {
            "type": "ScramSha512",
            "username": USERNAME,
            "passwordSecret": {"secretName": "kafka-password", "password": "password"},
        },
    }
