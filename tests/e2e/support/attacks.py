"""Documents that a hostile team writes with the rights of its Role: DelayTopics, forged records, forged pods. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from playground.kube.kube_client import Object
from playground.platform.pod_runs import restricted_pod

CONFIRM: Final = "delaytopic.dev/confirm-delete"


def attacking_documents(
    namespace: str, victim: Object, record: Object, servers: str, round_number: int
) -> Iterator[Object]:
    """Yield everything that a team could apply in `namespace` against the DelayTopic `victim`, of which it knows all.

    `record` is the operator's own record of the victim, as the platform team sees it.
    """
    source, target = victim["spec"]["source"]["topic"], victim["spec"]["target"]["topic"]
    own = f"{namespace}.attack"
    for name, spec in {
        "takes-the-source": {"source": {"topic": source}},
        "empties-the-source": {"source": {"topic": source, "management": "Adopt", "config": {"retention.ms": "1"}}},
        "takes-the-target": {"target": {"topic": target, "management": "Adopt", "config": {"retention.ms": "1"}}},
        "buries-in-the-source": {"deadLetter": {"topic": source}},
        "sends-to-offsets": {"target": {"topic": "__consumer_offsets"}},
        "allows-itself-all": {"target": {"topic": own, "allowedTopics": ["*"]}},
        "joins-two-clusters": {"connection": {"bootstrapServers": f"{servers},other.{namespace}:9092"}},
        "asks-for-everything": {
            "source": {"topic": f"{own}.huge", "partitions": 100_000},
            "relay": {"replicas": 1_000, "resources": {"requests": {"cpu": "64", "memory": "1Ti"}}},
        },
    }.items():
        whole: dict[str, Any] = {"source": {"topic": f"{own}.{name}"}, "target": {"topic": own}, **spec}
        whole["deletionPolicy"] = "Delete"
        yield {
            "apiVersion": victim["apiVersion"],
            "kind": victim["kind"],
            "metadata": {"name": name, "namespace": namespace, "annotations": {CONFIRM: name}},
            "spec": whole,
        }
    yield _forged(record, namespace, record["metadata"]["name"])
    yield {**_forged(record, namespace, f"huge-{round_number}"), "data": {"record.json": "[" * 900_000}}


def forged_pod(pod: Object, namespace: str) -> Object:
    """Return a pod that calls itself one of the victim's relays."""
    return {
        **_forged(pod, namespace, pod["metadata"]["name"]),
        "spec": restricted_pod(pod["spec"]["containers"][0]["image"], ["sleep", "600"]),
    }


def _forged(original: Object, namespace: str, name: str) -> Object:
    forged = {part: copy.deepcopy(original[part]) for part in original if part not in ("status", "metadata")}
    labels = original["metadata"].get("labels", {})
    return {**forged, "metadata": {"name": name, "namespace": namespace, "labels": labels}}
