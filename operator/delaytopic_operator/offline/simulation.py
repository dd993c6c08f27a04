"""The operator's passes in thought, until nothing is left to do: its own planner, no cluster.

Its actions become the steps that a plan shows. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from delaytopic_operator.decide.drift import drift
from delaytopic_operator.decide.plan import (
    FINALIZER,
    Action,
    AddFinalizer,
    Apply,
    Delete,
    DoTopic,
    Plan,
    RemoveFinalizer,
    StopRelays,
    WriteRecord,
)
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.decide.relay_configs import config_place, is_relay_config
from delaytopic_operator.model.kafka_view import KafkaView
from delaytopic_operator.model.kinds import KAFKA_TOPIC
from delaytopic_operator.model.record import record_document, record_name
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.offline.changes import NOT_SET, shown
from delaytopic_operator.offline.documents import Document
from delaytopic_operator.offline.observation import made_topic
from delaytopic_operator.offline.outcome import Change, Step
from delaytopic_operator.resources.identity import APPLIED_HASH
from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic, GrowTopic, SetConfig, TopicAction
from delaytopic_operator.topics.strimzi import StrimziTopics

_PART = re.compile(r'\["(?P<quoted>[^"]+)"\]|\[(?P<index>\d+)\]|\.?(?P<name>[A-Za-z0-9_-]+)')
_MISSING = object()
MOST_PASSES = 10


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
    """Return the observation after the action."""
    match action:
        case AddFinalizer() | RemoveFinalizer():
            return _held(seen, [FINALIZER] if isinstance(action, AddFinalizer) else [])
        case WriteRecord(record, memory):
            fleet = replace(seen.fleet, saved_memory=memory)
            return replace(seen, route=replace(seen.route, record=record), fleet=fleet)
        case DoTopic(step):
            return _with_topic(seen, step)
        case Apply(document):
            return _with_object(seen, document)
        case Delete(document):
            return _without_object(seen, document)
        case StopRelays(document):
            return _with_object(seen, {**document, "spec": {**document["spec"], "replicas": 0}})
        case _:
            return seen


def _is_done(action: Action, seen: Observation) -> bool:
    """Tell whether the action only writes what is there already."""
    if isinstance(action, WriteRecord):
        return action.record == seen.route.record
    return isinstance(action, Apply) and action.document in seen.route.objects


def _held(seen: Observation, finalizers: list[str]) -> Observation:
    assert seen.route.document is not None
    metadata = {**seen.route.metadata, "finalizers": finalizers}
    return replace(seen, route=replace(seen.route, document={**seen.route.document, "metadata": metadata}))


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
    return seen.route.accepted is not None and seen.route.accepted.settings.source.topic == topic


def _with_object(seen: Observation, document: Document) -> Observation:
    seen = _without_object(seen, document)
    seen = replace(seen, route=replace(seen.route, objects=[*seen.route.objects, document]))
    if document["kind"] == KAFKA_TOPIC.name:
        return _with_kafka_topic(seen, document)
    return _with_deployment(seen, document) if document["kind"] == "Deployment" else seen


def _without_object(seen: Observation, document: Document) -> Observation:
    kept = [each for each in seen.route.objects if _address(each) != _address(document)]
    gone = document["kind"] == "Deployment"
    seen = _with_deployment(seen, None) if gone else seen
    return replace(seen, route=replace(seen.route, objects=kept))


def _with_deployment(seen: Observation, document: Document | None) -> Observation:
    return replace(seen, fleet=replace(seen.fleet, deployment=document, pods=(), pages=()))


def _with_kafka_topic(seen: Observation, document: Document) -> Observation:
    """Make the topic of a KafkaTopic, as Strimzi does."""
    assert seen.topics is not None
    strimzi, spec = seen.topics.strimzi, document.get("spec") or {}
    name = str(spec.get("topicName") or document["metadata"]["name"])
    made = CreateTopic(name, spec.get("partitions") or -1, spec.get("replicas") or -1, spec.get("config") or {})
    seen = _with_topic(seen, made)
    assert strimzi is not None
    assert seen.topics is not None
    known = StrimziTopics(strimzi.place, {**strimzi.live, name: document})
    return replace(seen, topics=replace(seen.topics, strimzi=known))


def steps_of(actions: Iterable[Action], seen: Observation, record_is_there: bool) -> list[Step]:
    """Return one step for each object, in the order in which it is first touched; `seen` is how it was before."""
    found: dict[tuple[str, str], Step] = {}
    for action in actions:
        step = _step(action, seen, record_is_there)
        found[step.action, step.object] = step
    return list(found.values())


def _step(action: Action, seen: Observation, record_is_there: bool) -> Step:
    planned = action.planned()
    match action:
        case WriteRecord(record):
            place = f"ConfigMap {seen.config.namespace}/{record_name(record.key)}"
            document = record_document(record, seen.config.namespace)
            word = "Update" if record_is_there else "Create"
            return Step(word, place, "what is owned, kept beyond the DelayTopic", document=document)
        case Apply(document, differences, exists):
            live = _live(document, seen.route.objects) if exists else _former_config(document, seen.route.objects)
            # A configuration of another name is told by what it says.
            told = differences if exists else drift({"data": document.get("data")}, live or {})
            changes = list(_changes(document, live, told)) if live is not None else []
            restarts = exists and any(".template." in f".{path}" for path in differences)
            return Step(planned.action, planned.object, None, changes, restarts, document)
        case Delete():
            return Step(planned.action, planned.object, None)
        case _:
            return Step(planned.action, planned.object, planned.detail)


def _live(document: Document, objects: Sequence[Document]) -> Document | None:
    address = _address(document)
    return next((each for each in objects if _address(each) == address), None)


def _former_config(document: Document, objects: Sequence[Document]) -> Document | None:
    """Return what relays start from now, if the document is what they will start from."""
    deployment = next((each for each in objects if each["kind"] == "Deployment"), None)
    place = config_place(deployment) if deployment is not None and is_relay_config(document) else None
    return next((each for each in objects if place is not None and _address(each) == ("ConfigMap", *place)), None)


def _address(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def _changes(document: Document, live: Document, paths: Sequence[str]) -> Iterator[Change]:
    """Yield the changes without the digest of the document, unless nothing else tells of a change."""
    told = [path for path in paths if APPLIED_HASH not in path] or list(paths)
    for path in told:
        before, now = value_at(live, path), value_at(document, path)
        if isinstance(before, str) and isinstance(now, str) and "\n" in before + now:
            yield from _line_changes(path, before, now)
        else:
            yield Change(path, *(NOT_SET if value is _MISSING else shown(value) for value in (before, now)))


def _line_changes(path: str, before: str, now: str) -> Iterator[Change]:
    """Yield the lines of a text that changed."""
    olds, news = before.splitlines(), now.splitlines()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Change(
                path, *(shown("; ".join(map(str.strip, lines)) or NOT_SET) for lines in (olds[a:b], news[c:d]))
            )


def value_at(document: Document, path: str) -> Any:
    """Return the value at a path of `drift`; a marker of its own when the path leads nowhere."""
    found: Any = document
    for match in _PART.finditer(path):
        if match["index"] is not None:
            place = int(match["index"])
            found = found[place] if isinstance(found, list) and place < len(found) else _MISSING
        else:
            name = match["quoted"] or match["name"]
            found = found.get(name, _MISSING) if isinstance(found, Mapping) else _MISSING
    return found
