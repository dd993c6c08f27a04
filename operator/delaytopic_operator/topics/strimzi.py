"""Topics as KafkaTopic objects, for clusters whose topics belong to Strimzi's Topic Operator. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from delaytopic_operator.model.kinds import KAFKA_TOPIC
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.topics.ownership import TopicProblem

CLUSTER_LABEL: Final = "strimzi.io/cluster"
_BOOTSTRAP: Final = re.compile(r"(?P<cluster>[a-z0-9][-a-z0-9]*)-kafka-bootstrap(?:\.(?P<namespace>[-a-z0-9]+)[^:]*)?:")
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253


class StrimziPlace(NamedTuple):
    """The namespace and the label of a cluster's KafkaTopics."""

    namespace: str
    cluster: str


@dataclass(frozen=True)
class StrimziTopics:
    """The place, and the KafkaTopic objects that are there, by the topic that each describes."""

    place: StrimziPlace
    live: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class StrimziTopic(NamedTuple):
    """One topic as it should be; None for the broker's default."""

    name: str
    partitions: int | None
    replication_factor: int | None
    config: Mapping[str, str]


def strimzi_place(bootstrap_servers: str, namespace: str) -> StrimziPlace | None:
    """Return the place that the address of a cluster of Strimzi tells,
    `<cluster>-kafka-bootstrap.<namespace>.svc:9093`.

    A short address is one of the `namespace` where the relays run. None if the address is another.
    """
    match = _BOOTSTRAP.match(bootstrap_servers.split(",", maxsplit=1)[0].strip())
    return StrimziPlace(match["namespace"] or namespace, match["cluster"]) if match else None


def strimzi_topics(place: StrimziPlace, documents: Iterable[Mapping[str, Any]]) -> StrimziTopics:
    """Return the KafkaTopics of the place's namespace; those of other clusters are left out."""
    of_cluster = [
        document for document in documents if document["metadata"].get("labels", {}).get(CLUSTER_LABEL) == place.cluster
    ]
    return StrimziTopics(place, {_topic_of(document): document for document in of_cluster})


def strimzi_object_name(topic: str) -> str:
    """The KafkaTopic of a topic: its name where Kubernetes allows it, else the nearest that is, and a hash."""
    if len(topic) <= _LONGEST_NAME and _OBJECT_NAME.fullmatch(topic):
        return topic
    plain = re.sub(r"[^-a-z0-9]+", "-", topic.lower()).strip("-")[:200].rstrip("-")
    return f"{plain or 'topic'}---{hashlib.sha256(topic.encode()).hexdigest()[:12]}"


def strimzi_document(topic: StrimziTopic, place: StrimziPlace, key: Key) -> dict[str, Any]:
    """The KafkaTopic to apply."""
    name = strimzi_object_name(topic.name)
    spec: dict[str, Any] = {
        "topicName": topic.name if topic.name != name else None,
        "partitions": topic.partitions,
        "replicas": topic.replication_factor,
        "config": dict(sorted(topic.config.items())) or None,
    }
    return {
        "apiVersion": KAFKA_TOPIC.api_version,
        "kind": KAFKA_TOPIC.name,
        "metadata": {"name": name, "namespace": place.namespace, "labels": _labels(place, key)},
        "spec": {field: value for field, value in spec.items() if value is not None},
    }


def own_document(strimzi: StrimziTopics, topic: str, key: Key) -> Mapping[str, Any] | None:
    """The KafkaTopic that was made for a topic of this DelayTopic, if it is there."""
    document = strimzi.live.get(topic)
    return document if document is not None and _is_ours(document, key) else None


def strimzi_problems(strimzi: StrimziTopics, topics: Iterable[str], key: Key) -> Iterator[TopicProblem]:
    """Return what the Topic Operator says of these topics, and which of them somebody else describes."""
    by_name = {document["metadata"]["name"]: document for document in strimzi.live.values()}
    for topic in topics:
        document = strimzi.live.get(topic) or by_name.get(strimzi_object_name(topic))
        if document is None:
            continue
        if not _is_ours(document, key):
            # Whose it is, and where, is not for whoever writes a DelayTopic to know.
            yield TopicProblem(
                "TopicExists",
                f"another KafkaTopic describes the topic {topic} already, or has its name: set management: Observe to "
                "use it as it is, or ask who looks after that object to delete it (annotated strimzi.io/managed: "
                '"false" first, so that the topic stays)',
            )
            continue
        said = _not_ready(document)
        if said is not None:
            where = f"{document['metadata'].get('namespace')}/{document['metadata']['name']}"
            yield TopicProblem("KafkaTopicNotReady", f"the KafkaTopic {where} is not ready: {said}", stalled=False)


def _labels(place: StrimziPlace, key: Key) -> dict[str, str]:
    return {
        CLUSTER_LABEL: place.cluster,
        "app.kubernetes.io/managed-by": "delaytopic-operator",
        "delaytopic.dev/namespace": key.namespace,
        "delaytopic.dev/name": key.name,
    }


def _topic_of(document: Mapping[str, Any]) -> str:
    return str(document.get("spec", {}).get("topicName") or document["metadata"]["name"])


def _is_ours(document: Mapping[str, Any], key: Key) -> bool:
    labels = document["metadata"].get("labels", {})
    return (labels.get("delaytopic.dev/namespace"), labels.get("delaytopic.dev/name")) == key


def _not_ready(document: Mapping[str, Any]) -> str | None:
    """Return what its condition says; None when it is ready, or nothing was said of this generation yet."""
    status = document.get("status", {})
    if status.get("observedGeneration") != document["metadata"].get("generation"):
        return None
    ready = next((condition for condition in status.get("conditions", ()) if condition.get("type") == "Ready"), None)
    if ready is None or ready.get("status") == "True":
        return None
    return str(ready.get("message") or ready.get("reason") or "no reason is given")
