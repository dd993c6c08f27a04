"""What the operator would do, pass after pass, until nothing is left to do: its own planner, and no cluster. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from delaytopic_cli.planning.assumed_topics import made_topic
from delaytopic_operator.decide.actions import FINALIZER, Action, Apply, DoTopic, Hold, Release, Remove, WriteRecord
from delaytopic_operator.decide.plan import Plan
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.kafka.model import KafkaView
from delaytopic_operator.kube.kinds import KAFKA_TOPIC
from delaytopic_operator.observe.fleet import Fleet
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic, GrowTopic, SetConfig, TopicAction
from delaytopic_operator.topics.strimzi import StrimziTopics

MOST_PASSES = 10
Document = dict[str, Any]


@dataclass(frozen=True)
class Simulated:
    """All actions in order, and the pass after the last of them."""

    actions: Sequence[Action]
    last: Plan
    seen: Observation


def simulate(seen: Observation) -> Simulated:
    """Do everything that the planner wants done, in thought."""
    done: list[Action] = []
    planned = plan(seen)
    for _ in range(MOST_PASSES):
        actions = [action for action in planned.actions if not _is_done(action, seen)]
        if not actions:
            break
        done += actions
        for action in actions:
            seen = after(seen, action)
        planned = plan(seen)
    return Simulated(done, planned, seen)


def after(seen: Observation, action: Action) -> Observation:
    """What would be seen once the action was done."""
    match action:
        case Hold() | Release():
            return _held(seen, [FINALIZER] if isinstance(action, Hold) else [])
        case WriteRecord(record, memory):
            return replace(seen, record=record, saved_memory=memory)
        case DoTopic(step):
            return _with_topic(seen, step)
        case Apply(document):
            return _with_child(seen, document)
        case Remove(document):
            return _without_child(seen, document)
        case _:
            return seen


def _is_done(action: Action, seen: Observation) -> bool:
    """Whether it only writes what is there already."""
    if isinstance(action, WriteRecord):
        return action.record == seen.record
    return isinstance(action, Apply) and action.document in seen.children


def _held(seen: Observation, finalizers: list[str]) -> Observation:
    assert seen.document is not None
    metadata = {**seen.metadata, "finalizers": finalizers}
    return replace(seen, document={**seen.document, "metadata": metadata})


def _with_topic(seen: Observation, step: TopicAction) -> Observation:
    assert seen.topics is not None
    topics, missing = dict(seen.topics.view.topics), set(seen.topics.view.missing)
    match step:
        case CreateTopic(name):
            topics[name] = made_topic(step)
            missing.discard(name)
        case GrowTopic(name, partitions):
            topics[name] = replace(topics[name], partitions=partitions)
        case SetConfig(name, config):
            topics[name] = replace(topics[name], config={**(topics[name].config or {}), **config})
        case DeleteTopic(name):
            topics.pop(name, None)
            missing.add(name)
    return _with_view(seen, KafkaView(topics, frozenset(missing)))


def _with_view(seen: Observation, view: KafkaView) -> Observation:
    assert seen.topics is not None
    partitions = [facts.partitions for name, facts in view.topics.items() if _is_source(seen, name)]
    fleet = replace(seen.fleet, partitions=partitions[0] if partitions else seen.fleet.partitions)
    return replace(seen, topics=replace(seen.topics, view=view), fleet=fleet)


def _is_source(seen: Observation, topic: str) -> bool:
    return seen.accepted is not None and seen.accepted.settings.source.topic == topic


def _with_child(seen: Observation, document: Document) -> Observation:
    seen = _without_child(seen, document)
    seen = replace(seen, children=[*seen.children, document])
    if document["kind"] == KAFKA_TOPIC.name:
        return _with_kafka_topic(seen, document)
    return _with_deployment(seen, document) if document["kind"] == "Deployment" else seen


def _without_child(seen: Observation, document: Document) -> Observation:
    kept = [each for each in seen.children if _address(each) != _address(document)]
    gone = document["kind"] == "Deployment"
    return replace(_with_deployment(seen, None) if gone else seen, children=kept)


def _with_deployment(seen: Observation, document: Document | None) -> Observation:
    return replace(seen, fleet=Fleet(document, (), (), seen.fleet.partitions))


def _with_kafka_topic(seen: Observation, document: Document) -> Observation:
    """Strimzi makes the topic of a KafkaTopic."""
    assert seen.topics is not None
    strimzi, spec = seen.topics.strimzi, document.get("spec") or {}
    name = str(spec.get("topicName") or document["metadata"]["name"])
    made = CreateTopic(name, spec.get("partitions") or -1, spec.get("replicas") or -1, spec.get("config") or {})
    seen = _with_topic(seen, made)
    assert strimzi is not None
    assert seen.topics is not None
    known = StrimziTopics(strimzi.place, {**strimzi.live, name: document})
    return replace(seen, topics=replace(seen.topics, strimzi=known))


def _address(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]
