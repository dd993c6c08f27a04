"""The platform team's documents: the values of the chart, and the class. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPERATOR_NAMESPACE = "delaytopic-system"
RELAY_NAMESPACE = "delay-relays"
INFRASTRUCTURE = "infrastructure"
BOOTSTRAP_SERVERS = f"kafka.{INFRASTRUCTURE}:9092"
REDIS_URL = f"redis://redis.{INFRASTRUCTURE}:6379/0"
ENABLED = "delaytopic.dev/enabled"
CLASS = "standard"
GATEWAY_SECRET = "gateway-kafka"
LEDGER = "audits"
LEDGER_ON_NODE = "/var/lib/delaytopic-e2e/audits"

Images = Mapping[str, str]
"""References by what is in them: operator, relay, gateway, audit, traffic."""

SMALL: dict[str, Any] = {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}}
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
NEVER = "0 0 1 1 *"
"""Audits are started by tests: one that came by itself would take a core from what is measured."""


def chart_values(images: Images) -> dict[str, Any]:
    """Two operators, quick to look, for a cluster of two cores."""
    return {
        "image": _image(images["operator"]),
        "relay": {"image": _image(images["relay"])},
        "audit": {"image": _image(images["audit"])},
        "relayNamespaces": [RELAY_NAMESPACE],
        "createRelayNamespaces": True,
        "monitoring": {"dashboards": {"enabled": True}},
        "resources": {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "384Mi"}},
        "operator": {
            "resync": "20s",
            "poll": "2s",
            "statusInterval": "2s",
            "relayResources": SMALL,
            "audit": {
                "schedule": NEVER,
                "volume": {"emptyDir": {}},
                "master": "local[2]",
                "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
            },
        },
    }


def gateway_values(images: Images) -> dict[str, Any]:
    """Add one gateway, which logs in to Kafka with the file of its Secret."""
    return {
        "gateway": {
            "enabled": True,
            "image": _image(images["gateway"]),
            "replicaCount": 1,
            "kafkaConfig": {"secret": GATEWAY_SECRET},
            "resources": SMALL,
        }
    }


def trial_values(images: Images, source: str, target: str) -> dict[str, Any]:
    """Add the pod of `helm test`, which logs in to Kafka as the gateway does."""
    return {
        "gateway": {"image": _image(images["gateway"])},
        "test": {"kafkaConfig": {"secret": GATEWAY_SECRET}, "source": source, "target": target},
    }


def executor_values(images: Images, executors: int) -> dict[str, Any]:
    """Have audits ask for so many executor pods; their ledger is the claim of `shared_ledger`."""
    operator = chart_values(images)["operator"]
    small = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    further = {
        "driverAccount": "audit-driver",
        "mode": "Kubernetes",
        "volume": {"persistentVolumeClaim": {"claimName": LEDGER}},
        "executors": {"min": executors, "max": executors, "resources": small},
    }
    return {"operator": {**operator, "audit": {**operator["audit"], **further}}}


def shared_ledger() -> list[dict[str, Any]]:
    """A folder of the one node, as a volume that driver and executors reach, and its claim where relays run."""
    of_both = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        **of_both,
        "capacity": {"storage": "1Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": RELAY_NAMESPACE, "name": LEDGER},
        "hostPath": {"path": LEDGER_ON_NODE, "type": "Directory"},
    }
    claim = {**of_both, "volumeName": LEDGER, "resources": {"requests": {"storage": "1Gi"}}}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": LEDGER}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": LEDGER, "namespace": RELAY_NAMESPACE},
            "spec": claim,
        },
    ]


def gateway_secret() -> dict[str, Any]:
    """The login of the gateway to Kafka."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": GATEWAY_SECRET, "namespace": OPERATOR_NAMESPACE},
        "stringData": {"kafka.yaml": f"bootstrapServers: {BOOTSTRAP_SERVERS}\n"},
    }


def delay_class() -> dict[str, Any]:
    """Return the class for the namespaces that are let in, each with the topics that begin with its name."""
    return {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": CLASS, "annotations": {"delaytopic.dev/is-default-class": "true"}},
        "spec": {
            "connection": {"bootstrapServers": BOOTSTRAP_SERVERS},
            "backend": {"type": "RedisZset", "redis": {"url": REDIS_URL}},
            "relayNamespace": RELAY_NAMESPACE,
            "access": {
                "namespaceSelector": {"matchLabels": {ENABLED: "true"}},
                "sourceTopics": ["{namespace}.*"],
                "targetTopics": ["{namespace}.*"],
            },
            "defaults": {"partitions": 4, "replicationFactor": 3},
        },
    }


def namespace(name: str, **labels: str) -> dict[str, Any]:
    """Return a namespace with Pod Security `restricted` enforced."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**RESTRICTED, **labels}}}


def _image(reference: str) -> dict[str, str]:
    repository, _, tag = reference.rpartition(":")
    return {"repository": repository, "tag": tag}
