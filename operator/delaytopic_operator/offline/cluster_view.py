"""The cluster as it is, or would be once the documents were applied, and the operator's verdicts in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delaytopic_api import DelayClass, DelayTopic, Settings, class_for, class_in_force, load_document
from delaytopic_api.documents import DelayTopicSpec
from delaytopic_api.errors import ApiError
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.route_index import RouteIndex
from delaytopic_operator.offline.changes import applied
from delaytopic_operator.offline.documents import Document, Documents
from delaytopic_operator.rules.validate import Accepted, Refusal, Subject, check


@dataclass(frozen=True)
class ClusterState:
    """The cluster, as far as it may be read; without one, only the configuration that the operator is taken to have."""

    config: OperatorConfig
    is_there: bool = False
    """False for a plan without a cluster."""
    topics: Sequence[Document] = ()
    classes: Sequence[Document] = ()
    namespaces: Mapping[str, Document | None] = field(default_factory=dict)
    """None for one that does not exist; one that may not be read is not among them."""
    recurring: Sequence[Document] = ()
    """RecurringRecords of the namespaces of those in the files."""
    made: Sequence[Document] = ()
    """Objects that the operator made, records of routes among them."""
    unseen: frozenset[str] = frozenset()
    """Namespaces whose objects may not be read."""
    notes: Sequence[str] = ()
    """Parts of the cluster that could not be read."""


@dataclass(frozen=True)
class LiveTopic:
    """A DelayTopic as the cluster has it."""

    settings: Settings
    spec: DelayTopicSpec
    status: Mapping[str, Any]


@dataclass(frozen=True)
class ClusterView:
    """Everything that a DelayTopic is judged by; `routes` knows all DelayTopics of it."""

    state: ClusterState
    topics: Mapping[Key, Document]
    classes: Sequence[Document]
    namespaces: Mapping[str, Document | None]
    routes: RouteIndex
    now_ms: int

    @property
    def parsed_classes(self) -> list[DelayClass]:
        """The classes that can be read."""
        return [each for each in map(_parsed_class, self.classes) if each is not None]


def view_before(state: ClusterState, now_ms: int) -> ClusterView:
    """Return the cluster as it is."""
    return _view(state, {key_of(each): each for each in state.topics}, list(state.classes), state.namespaces, now_ms)


def view_after(documents: Documents, state: ClusterState, now_ms: int) -> ClusterView:
    """Return the cluster as it would be."""
    live = {key_of(each): each for each in state.topics}
    # They are made in this order, and of two that are in each other's way the younger gives way.
    written_topics = [(each, now_ms + place * 1_000) for place, each in enumerate(documents.topics)]
    topics = live | {key_of(each): applied(each, live.get(key_of(each)), at_ms) for each, at_ms in written_topics}
    there = {each["metadata"]["name"]: each for each in state.classes}
    written = {each["metadata"]["name"]: each for each in documents.classes}
    classes = there | {name: applied(each, there.get(name), now_ms) for name, each in written.items()}
    namespaces = dict(state.namespaces)
    for each in documents.namespaces:
        name = each["metadata"]["name"]
        namespaces[name] = applied(each, namespaces.get(name), now_ms)
    return _view(state, topics, list(classes.values()), namespaces, now_ms)


def key_of(document: Mapping[str, Any]) -> Key:
    """Return the key of a DelayTopic or a RecurringRecord."""
    return Key(document["metadata"]["namespace"], document["metadata"]["name"])


def judge(view: ClusterView, key: Key) -> Accepted | Refusal:
    """Return the operator's own verdict."""
    document = view.topics[key]
    subject = Subject(
        key=key,
        document=document,
        classes=view.parsed_classes,
        namespace_labels=namespace_labels(view, document),
        quota_usage=view.routes.quota_usage(key),
        conflict=view.routes.conflict_sentence(key),
        config=view.state.config,
    )
    return check(subject)


def namespace_labels(view: ClusterView, document: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels of a DelayTopic's namespace; where nobody says any, those that its class asks for."""
    return _labels(view.namespaces, view.parsed_classes, document)


def lacks_namespace(view: ClusterView, key: Key) -> bool:
    """Tell whether its namespace is known not to exist."""
    return key.namespace in view.namespaces and view.namespaces[key.namespace] is None


def takes_labels_for_granted(view: ClusterView, key: Key) -> bool:
    """Tell whether the labels of its namespace are unknown."""
    return view.namespaces.get(key.namespace) is None


def live_topic(view: ClusterView, key: Key) -> LiveTopic | None:
    """Return the DelayTopic as this view has it, if it is there and valid."""
    if key not in view.topics:
        return None
    verdict = judge(view, key)
    if isinstance(verdict, Refusal):
        return None
    return LiveTopic(verdict.settings, verdict.topic.spec, view.topics[key].get("status") or {})


def _view(
    state: ClusterState,
    topics: Mapping[Key, Document],
    classes: list[Document],
    namespaces: Mapping[str, Document | None],
    now_ms: int,
) -> ClusterView:
    store = ObjectCache(state.config.namespace)
    for document in [*classes, *filter(_can_be_stored, topics.values()), *state.made]:
        store.put(document)
    parsed = [each for each in map(_parsed_class, classes) if each is not None]
    book = RouteIndex(store, state.config, lambda document: _labels(namespaces, parsed, document))
    return ClusterView(state, topics, classes, namespaces, book, now_ms)


def _can_be_stored(document: Document) -> bool:
    """Tell whether the API server would take it: a document that it refuses is in nobody's way."""
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        return False
    parts = (spec.get(name) for name in ("source", "target", "deadLetter", "schedule", "connection"))
    return all(part is None or isinstance(part, Mapping) for part in parts)


def _parsed_class(document: Document) -> DelayClass | None:
    try:
        parsed = load_document({name: part for name, part in document.items() if name != "status"})
    except ApiError:
        return None
    return parsed if isinstance(parsed, DelayClass) else None


def _labels(
    namespaces: Mapping[str, Document | None], classes: Sequence[DelayClass], document: Mapping[str, Any]
) -> Mapping[str, str]:
    """Return the namespace's; where nobody says any, those that the class asks for."""
    name = document["metadata"]["namespace"]
    namespace = namespaces.get(name)
    own = {"kubernetes.io/metadata.name": name}
    if namespace is not None:
        return {**(namespace["metadata"].get("labels") or {}), **own}
    try:
        parsed = load_document({part: content for part, content in document.items() if part != "status"})
        of_class = class_for(parsed, classes, class_in_force(document)) if isinstance(parsed, DelayTopic) else None
    except ApiError:
        return own
    selector = of_class.spec.access.namespace_selector if of_class is not None else None
    return {**own, **(selector.match_labels if selector is not None else {})}
