"""Which DelayTopics are in each other's way, over all that were seen: kept up to date at the cost of what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, NamedTuple

from delaytopic_api.metadata import DEFAULT_CLASS_ANNOTATION
from delaytopic_operator import kinds
from delaytopic_operator.conditions import instant_ms
from delaytopic_operator.keys import Key
from delaytopic_operator.routes import Route, RouteConflict, conflicts, servers_of
from delaytopic_operator.store import Ref, Store


class _Entry(NamedTuple):
    version: int
    class_name: str | None
    route: Route


class RouteBook:
    """Thread-safe. A DelayTopic is judged once it is seen itself, and everything older was seen before it."""

    def __init__(self, store: Store, operator_namespace: str) -> None:
        """`store` is where DelayTopics and classes are seen."""
        self._store = store
        self._operator_namespace = operator_namespace
        self._lock = Lock()
        self._entries: dict[Ref, _Entry] = {}
        self._classes: dict[Ref, int] = {}
        self._conflicts: dict[Key, RouteConflict] = {}
        self._elders: dict[Key, int] = {}
        self._seen: tuple[int, int] | None = None

    def rival(self, key: Key) -> str | None:
        """What an older DelayTopic has to do with the topics of this one; a sentence."""
        with self._lock:
            self._refresh()
            conflict = self._conflicts.get(key)
        return conflict.sentence if conflict is not None else None

    def elder_siblings(self, key: Key) -> int:
        """How many older DelayTopics of its namespace have the same class."""
        with self._lock:
            self._refresh()
            return self._elders.get(key, 0)

    def _refresh(self) -> None:
        seen = self._store.revision(kinds.DELAY_CLASS), self._store.revision(kinds.DELAY_TOPIC)
        if seen == self._seen:
            return
        self._read_again()
        self._seen = seen

    def _read_again(self) -> None:
        classes = self._store.versions(kinds.DELAY_CLASS)
        if classes != self._classes:
            self._classes = classes
            self._entries.clear()
        versions = self._store.versions(kinds.DELAY_TOPIC)
        gone = [ref for ref in self._entries if ref not in versions]
        changed = [ref for ref, version in versions.items() if _version(self._entries.get(ref)) != version]
        if not gone and not changed:
            return
        for ref in gone:
            del self._entries[ref]
        news = bool(gone)
        by_name = {document["metadata"]["name"]: document for document in self._store.list(kinds.DELAY_CLASS)}
        for ref in changed:
            document = self._store.get(kinds.DELAY_TOPIC, ref.namespace, ref.name)
            entry = _entry(document, versions[ref], by_name, self._operator_namespace) if document else None
            before = self._entries.pop(ref, None)
            if entry is not None:
                self._entries[ref] = entry
            news = news or _matters(before) != _matters(entry)
        if news:
            self._conflicts = conflicts(entry.route for entry in self._entries.values())
            self._elders = _elders(self._entries.values())


def _elders(entries: Iterable[_Entry]) -> dict[Key, int]:
    """How many older ones of its namespace and class each has."""
    elders: dict[Key, int] = {}
    met: Counter[tuple[str, str | None]] = Counter()
    for entry in sorted(entries, key=lambda entry: (entry.route.created_ms, entry.route.key)):
        group = entry.route.key.namespace, entry.class_name
        elders[entry.route.key] = met[group]
        met[group] += 1
    return elders


def _matters(entry: _Entry | None) -> object:
    """What of it others are concerned with."""
    return entry[1:] if entry is not None else None


def _version(entry: _Entry | None) -> int | None:
    return entry.version if entry is not None else None


def _entry(
    document: Mapping[str, Any], version: int, classes: Mapping[str, Mapping[str, Any]], operator_namespace: str
) -> _Entry | None:
    """What matters of a DelayTopic to others, whether or not all of it is valid."""
    metadata, spec = document["metadata"], document.get("spec") or {}
    source, target = ((spec.get(role) or {}).get("topic") for role in ("source", "target"))
    if not source or not target:
        return None
    class_name = None if spec.get("connection") else spec.get("delayClassName") or _default(classes)
    of_class = (classes.get(class_name) or {}).get("spec") or {} if class_name else {}
    connection = spec.get("connection") or of_class.get("connection") or {}
    namespace = metadata["namespace"] if class_name is None else of_class.get("relayNamespace") or operator_namespace
    servers = connection.get("bootstrapServers", "")
    dead_letter = (spec.get("deadLetter") or {}).get("topic") or f"{source}.dlq"
    route = Route(
        Key(metadata["namespace"], metadata["name"]),
        instant_ms(metadata["creationTimestamp"]),
        servers_of(servers, namespace),
        source,
        (target, dead_letter),
    )
    return _Entry(version, class_name, route)


def _default(classes: Mapping[str, Mapping[str, Any]]) -> str | None:
    marked = [
        name
        for name, document in classes.items()
        if (document["metadata"].get("annotations") or {}).get(DEFAULT_CLASS_ANNOTATION) == "true"
    ]
    return marked[0] if len(marked) == 1 else None
