"""Documents of an app team and a platform team, and clusters in which the operator has done what was planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.offline.changes import applied
from delaytopic_operator.offline.cluster_view import ClusterState
from delaytopic_operator.offline.documents import Documents, sorted_out
from delaytopic_operator.offline.outcome import Outcome, TopicOutcome
from delaytopic_operator.offline.planner import make_plan

Document = dict[str, Any]
NOW_MS = 1_795_270_000_000
API = "delaytopic.dev/v1beta1"
SERVERS = {"bootstrapServers": "kafka.platform:9093"}
CLASS = {"connection": SERVERS, "defaults": {"partitions": 4, "replicationFactor": 3}}
REDIS = {"type": "RedisZset", "redis": {"url": "redis://redis.platform:6379"}}
SECRET = {"type": "ScramSha512", "username": "delay", "passwordSecret": {"secretName": "delay-scram"}}


def delay_class(name: str = "standard", **spec: Any) -> Document:
    metadata = {"name": name, "annotations": {"delaytopic.dev/is-default-class": "true"}}
    return {"apiVersion": API, "kind": "DelayClass", "metadata": metadata, "spec": {**CLASS, **spec}}


def delay_topic(name: str = "reminders", namespace: str = "shop", **spec: Any) -> Document:
    usual = {"source": {"topic": f"{namespace}.{name}.delayed"}, "target": {"topic": f"{namespace}.{name}"}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": API, "kind": "DelayTopic", "metadata": metadata, "spec": {**usual, **spec}}


def namespace(name: str = "shop", **labels: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def files(*documents: Document) -> Documents:
    return sorted_out([("topics.yaml", each) for each in documents], "default")


def offline(*documents: Document) -> Outcome:
    """The plan without a cluster."""
    return make_plan(files(*documents), ClusterState(OperatorConfig()), NOW_MS)


def against(state: ClusterState, *documents: Document) -> Outcome:
    """The plan against a cluster."""
    return make_plan(files(*documents), state, NOW_MS)


def only(outcome: Outcome) -> TopicOutcome:
    (topic,) = outcome.topics
    return topic


def steps(outcome: Outcome) -> list[str]:
    return [f"{step.action} {step.object.split()[0]}" for step in only(outcome).steps]


def converged(
    *documents: Document, config: OperatorConfig | None = None, labels: Mapping[str, str] | None = None
) -> ClusterState:
    """A cluster to which the documents were applied, and in which the operator has nothing left to do."""
    state = ClusterState(config or OperatorConfig(), is_there=True)
    places = {each["metadata"]["namespace"] for each in documents if each["kind"] == "DelayTopic"}
    spaces = {name: applied(namespace(name, **(labels or {})), None, NOW_MS) for name in places}
    made, topics = [], []
    for outcome in make_plan(files(*documents), replace(state, namespaces=spaces), NOW_MS).topics:
        written = next(each for each in documents if each["metadata"].get("name") == outcome.key.name)
        made += [step.document for step in outcome.steps if step.document and step.document is not written]
        topics.append(living(written, outcome))
    classes = [applied(each, None, NOW_MS) for each in documents if each["kind"] == "DelayClass"]
    objects = [each for each in made if each["kind"] not in ("DelayTopic", "DelayClass")]
    return replace(state, namespaces=spaces, topics=topics, classes=classes, made=objects)


def living(written: Document, outcome: TopicOutcome) -> Document:
    """The DelayTopic as the API server has it once the operator has made its topics."""
    document = applied(written, None, NOW_MS - 60_000)
    in_force = {each.field: each.value for each in outcome.in_force}
    topics = {
        role: {
            "topicId": "known-after-apply",
            "partitions": int(in_force[f"spec.{role}.partitions"]),
            "ownership": "Created",
        }
        for role in ("source", "target", "deadLetter")
    }
    metadata = {**document["metadata"], "finalizers": ["delaytopic.dev/drain"]}
    return {**document, "metadata": metadata, "status": {**topics, "relay": {"replicas": 1}}}


def changes_of(outcome: Outcome, kind: str) -> list[tuple[str, str | None, str | None]]:
    """Of the only step about an object of this kind."""
    (step,) = (each for each in only(outcome).steps if each.object.startswith(f"{kind} "))
    return [(each.path, each.before, each.after) for each in step.changes]


def without(documents: Iterable[Document], kind: str) -> list[Document]:
    return [each for each in documents if each["kind"] != kind]


def with_annotation(document: Document, part: Mapping[str, str]) -> Document:
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **part}}}
