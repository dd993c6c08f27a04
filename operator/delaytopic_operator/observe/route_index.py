"""The index of DelayTopics that are in each other's way, kept up to date at the cost of what changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, NamedTuple

from delaytopic_api import DelayClass, Settings, class_in_force, load_document
from delaytopic_api.documents import Ownership
from delaytopic_api.errors import ApiError
from delaytopic_api.values import Management, TopicProvisioning
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.errors import RecordUnreadable
from delaytopic_operator.kube.object_cache import ObjectCache, Ref
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import instant_ms
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import DATA_KEY, RecordState, Role, RouteRecord, is_record, parse_record
from delaytopic_operator.rules.conflicts import (
    Connection,
    Route,
    RouteConflict,
    Use,
    clusters_of,
    conflicts,
    servers_of,
)
from delaytopic_operator.rules.validate import Accepted, QuotaUsage, Subject, check
from delaytopic_operator.topics.desired import partition_count

Document = Mapping[str, Any]
LabelsOf = Callable[[Document], Mapping[str, str]]
"""The labels of the namespace that a DelayTopic is in."""
NOWHERE: Final[frozenset[str]] = frozenset()


class _Entry(NamedTuple):
    """A DelayTopic; one that may not be acted upon uses nothing."""

    version: int
    content: Hashable
    """The same while all that it is judged by is the same."""
    key: Key
    created_ms: int
    class_name: str | None
    limit: int | None = None
    """The most that its class allows in a namespace."""
    partitions: int = 0
    """Of all of its topics."""
    most_partitions: int | None = None
    """The partitions that its class allows all DelayTopics of the namespace."""
    connection: Connection = Connection(NOWHERE, by_class=False)
    uses: tuple[Use, ...] = ()


class _Written(NamedTuple):
    """A record."""

    since_ms: int
    record: RouteRecord
    uses: tuple[Use, ...]


class RouteIndex:
    """Thread-safe. A DelayTopic is judged once it is seen itself, and everything older was seen before it."""

    def __init__(self, store: ObjectCache, config: OperatorConfig, labels_of: LabelsOf) -> None:
        """Take `store`, where DelayTopics, classes and records are seen."""
        self._store = store
        self._config = config
        self._labels_of = labels_of
        self._lock = Lock()
        self._entries: dict[Ref, _Entry] = {}
        self._written: dict[Ref, _Written] = {}
        self._config_maps: dict[Ref, int] = {}
        self._class_versions: dict[Ref, int] = {}
        self._classes: dict[str, DelayClass] = {}
        self._ids: dict[Connection, str] = {}
        self._users: defaultdict[str, set[Key]] = defaultdict(set)
        self._conflicts: dict[Key, RouteConflict] = {}
        self._elders: dict[Key, QuotaUsage] = {}
        self._seen: tuple[int, ...] | None = None

    def conflict(self, key: Key) -> RouteConflict | None:
        """Return the conflict with other DelayTopics about the topics of this one."""
        with self._lock:
            self._refresh()
            return self._conflicts.get(key)

    def conflict_sentence(self, key: Key) -> str | None:
        """Return the conflict as a sentence for whoever wrote the DelayTopic."""
        conflict = self.conflict(key)
        return conflict.sentence if conflict is not None else None

    def quota_usage(self, key: Key) -> QuotaUsage:
        """Count the older DelayTopics of its namespace with the same class, and their partitions."""
        with self._lock:
            self._refresh()
            return self._elders.get(key, QuotaUsage(0, 0))

    def users(self, class_name: str) -> frozenset[Key]:
        """List the DelayTopics that use a class, and those gone whose relays still have to be stopped by it."""
        with self._lock:
            self._refresh()
            named = {entry.key for entry in self._entries.values() if entry.class_name == class_name}
            records = [written.record for written in self._written.values()]
        left = {
            record.key
            for record in records
            if record.class_name == class_name and record.state is not RecordState.RETAINED
        }
        return frozenset(named | left)

    def learn(self, key: Key, cluster_id: str) -> bool:
        """Remember what the Kafka of a DelayTopic calls itself; return whether that is news."""
        with self._lock:
            self._refresh()
            entry = self._entries.get(Ref(kinds.DELAY_TOPIC.plural, *key))
            if entry is None or not entry.uses or self._ids.get(entry.connection) == cluster_id:
                return False
            self._ids[entry.connection] = cluster_id
            self._compare()
            return True

    def forget_namespace(self, name: str) -> None:
        """Judge its DelayTopics anew: its labels are others now."""
        with self._lock:
            self._entries = {ref: entry for ref, entry in self._entries.items() if ref.namespace != name}
            self._seen = None

    def _refresh(self) -> None:
        watched = (kinds.DELAY_CLASS, kinds.DELAY_TOPIC, kinds.CONFIG_MAP)
        seen = tuple(self._store.revision(kind) for kind in watched)
        if seen == self._seen:
            return
        self._read_classes()
        news = [self._read_topics(), self._read_records()]
        if any(news):
            self._compare()
        self._seen = seen

    def _read_classes(self) -> None:
        versions = self._store.versions(kinds.DELAY_CLASS)
        if versions != self._class_versions:
            self._class_versions = versions
            parsed = map(_parsed_class, self._store.list(kinds.DELAY_CLASS))
            classes = {each.metadata.name: each for each in parsed if each is not None}
            # A class whose status alone has changed is no reason to judge its thousand DelayTopics again.
            if _terms_of(classes) != _terms_of(self._classes):
                self._entries.clear()
            self._classes = classes

    def _read_topics(self) -> bool:
        """Read what changed of DelayTopics; return whether it concerns others."""
        versions = self._store.versions(kinds.DELAY_TOPIC)
        gone = [ref for ref in self._entries if ref not in versions]
        for ref in gone:
            del self._entries[ref]
        news = bool(gone)
        for ref, version in versions.items():
            before = self._entries.get(ref)
            if before is not None and before.version == version:
                continue
            document = self._store.get(kinds.DELAY_TOPIC, ref.namespace, ref.name)
            entry = self._entry(document, version, before) if document is not None else None
            self._entries.pop(ref, None)
            if entry is not None:
                self._entries[ref] = entry
            news = news or _matters(before) != _matters(entry)
        return news

    def _read_records(self) -> bool:
        """Read what changed of records; return whether it concerns others."""
        versions = self._store.versions(kinds.CONFIG_MAP)
        news = [self._replace_record(ref, None) for ref in self._written.keys() - versions.keys()]
        for ref, version in versions.items():
            if ref.namespace == self._config.namespace and self._config_maps.get(ref) != version:
                news.append(self._replace_record(ref, self._read_record(ref)))
        self._config_maps = versions
        return any(news)

    def _replace_record(self, ref: Ref, written: _Written | None) -> bool:
        """Replace a record; return True if others' topics are concerned: each new DelayTopic has a record written."""
        before = self._written.pop(ref, None)
        if written is not None:
            self._written[ref] = written
        contested = False
        for one in filter(None, (before, written)):
            for use in one.uses:
                users = self._users[use.name]
                contested = contested or bool(users - {one.record.key})
                users.add(one.record.key)
        return contested

    def _read_record(self, ref: Ref) -> _Written | None:
        document = self._store.get(kinds.CONFIG_MAP, ref.namespace, ref.name)
        if document is None or not is_record(document, self._config.namespace):
            return None
        try:
            record = parse_record({**document, "data": {DATA_KEY: (document.get("data") or {}).get(DATA_KEY)}})
        except RecordUnreadable:
            return None  # its DelayTopic tells of it, and is not acted upon
        created = document["metadata"].get("creationTimestamp")
        return _Written(instant_ms(created) if created else 0, record, _uses_of_record(record))

    def _entry(self, document: Document, version: int, before: _Entry | None) -> _Entry:
        metadata, spec = document["metadata"], document.get("spec") or {}
        generation = metadata.get("generation")
        content = (metadata.get("uid"), generation) if generation is not None else version
        if before is not None and before.content == content:
            return before._replace(version=version)
        key = Key(metadata["namespace"], metadata["name"])
        named = spec.get("delayClassName") or class_in_force(document) or _default(self._classes.values())
        class_name = None if spec.get("connection") else named
        entry = _Entry(version, content, key, instant_ms(metadata["creationTimestamp"]), class_name)
        classes = list(self._classes.values())
        subject = Subject(key, document, classes, self._labels_of(document), QuotaUsage(0, 0), None, self._config)
        verdict = check(subject)
        return self._with_topics(entry, verdict) if isinstance(verdict, Accepted) else entry

    def _with_topics(self, entry: _Entry, accepted: Accepted) -> _Entry:
        settings, of_class = accepted.settings, accepted.delay_class
        assert settings.connection is not None
        namespace = entry.key.namespace if of_class is None else self._place_of(of_class)
        return entry._replace(
            limit=of_class.spec.limits.max_delay_topics_per_namespace if of_class is not None else None,
            partitions=partition_count(settings),
            most_partitions=of_class.spec.limits.max_partitions_per_namespace if of_class is not None else None,
            connection=Connection(servers_of(settings.connection.bootstrap_servers, namespace), of_class is not None),
            uses=_uses_of(settings),
        )

    def _place_of(self, of_class: DelayClass) -> str:
        return of_class.spec.relay_namespace or self._config.namespace

    def _compare(self) -> None:
        self._elders = _elders(self._entries.values())
        self._users.clear()
        for key, uses in [
            *((entry.key, entry.uses) for entry in self._entries.values()),
            *((written.record.key, written.uses) for written in self._written.values()),
        ]:
            for use in uses:
                self._users[use.name].add(key)
        allowed = {
            entry.key: entry
            for entry in self._entries.values()
            if entry.uses and _has_room(entry, self._elders[entry.key])
        }
        connections = {entry.connection for entry in allowed.values()}
        self._ids = {connection: each for connection, each in self._ids.items() if connection in connections}
        ids = {written.record.key: written.record.cluster_id for written in self._written.values()}
        routes = [self._route(entry, ids.get(entry.key)) for entry in allowed.values()]
        self._conflicts = conflicts(routes, [self._route_of(written, allowed) for written in self._written.values()])

    def _route(self, entry: _Entry, recorded_id: str | None) -> Route:
        clusters = clusters_of(entry.connection, self._ids, recorded_id)
        return Route(entry.key, entry.created_ms, clusters, entry.uses, entry.connection.by_class)

    def _route_of(self, written: _Written, allowed: Mapping[Key, _Entry]) -> Route:
        """Make a route of a record, as old as its first writing, however old its DelayTopic is."""
        record = written.record
        living = self._entries.get(Ref(kinds.DELAY_TOPIC.plural, *record.key))
        return Route(
            record.key,
            written.since_ms,
            clusters_of(self._connection_of(record), self._ids, record.cluster_id),
            written.uses,
            by_class=record.class_name is not None,
            is_refused=living is not None and record.key not in allowed,
            is_gone=living is None,
            is_empty=living is None and record.state is RecordState.RETAINED and record.pending == 0,
        )

    def _connection_of(self, record: RouteRecord) -> Connection:
        if record.class_name is None:
            servers = record.connection.bootstrap_servers if record.connection is not None else ""
            return Connection(servers_of(servers, record.namespace), by_class=False)
        of_class = self._classes.get(record.class_name)
        if of_class is None:
            return Connection(NOWHERE, by_class=True)
        servers = of_class.spec.connection.bootstrap_servers
        return Connection(servers_of(servers, self._place_of(of_class)), by_class=True)


def _elders(entries: Iterable[_Entry]) -> dict[Key, QuotaUsage]:
    """Count for each the older ones of its namespace and class, and their partitions."""
    quota_usage: dict[Key, QuotaUsage] = {}
    met: Counter[tuple[str, str | None]] = Counter()
    partitions: Counter[tuple[str, str | None]] = Counter()
    for entry in sorted(entries, key=lambda entry: (entry.created_ms, entry.key)):
        group = entry.key.namespace, entry.class_name
        quota_usage[entry.key] = QuotaUsage(met[group], partitions[group])
        met[group] += 1
        # One that is refused has no topics.
        if entry.most_partitions is None or partitions[group] + entry.partitions <= entry.most_partitions:
            partitions[group] += entry.partitions
    return quota_usage


def _has_room(entry: _Entry, quota_usage: QuotaUsage) -> bool:
    """Tell whether its class has room for it beside the older ones."""
    together = quota_usage.partitions + entry.partitions
    fits = entry.most_partitions is None or together <= entry.most_partitions
    return fits and (entry.limit is None or quota_usage.topics < entry.limit)


def _matters(entry: _Entry | None) -> object:
    """Return the part of it that concerns others."""
    return entry[2:] if entry is not None else None


def conflicts_among(all_settings: Sequence[Settings]) -> dict[Key, RouteConflict]:
    """The DelayTopics of one Kafka that are refused beside each other; those that come first are the older ones."""
    one_cluster = frozenset({"the only one"})
    routes = [
        Route(Key(settings.namespace, settings.name), place, one_cluster, _uses_of(settings))
        for place, settings in enumerate(all_settings)
    ]
    return conflicts(routes)


def _uses_of(settings: Settings) -> tuple[Use, ...]:
    topics = {
        Role.SOURCE: settings.source,
        Role.TARGET: settings.target,
        Role.DEAD_LETTER: settings.dead_letter,
        **({Role.HISTORY: settings.history} if settings.history is not None else {}),
    }
    made = settings.topic_provisioning is not TopicProvisioning.NONE
    return tuple(
        Use(role, topic.topic, made and topic.management is not Management.OBSERVE) for role, topic in topics.items()
    )


def _uses_of_record(record: RouteRecord) -> tuple[Use, ...]:
    topics = ((role, record.of_role(role)) for role in Role)
    return tuple(
        Use(role, topic.name, topic.ownership is not Ownership.OBSERVED) for role, topic in topics if topic is not None
    )


def _parsed_class(document: Document) -> DelayClass | None:
    try:
        parsed = load_document({name: part for name, part in document.items() if name != "status"})
    except ApiError:
        return None
    return parsed if isinstance(parsed, DelayClass) else None


def _terms_of(classes: Mapping[str, DelayClass]) -> object:
    """Return what DelayTopics are judged by."""
    return {name: (each.is_default, each.spec) for name, each in classes.items()}


def _default(classes: Iterable[DelayClass]) -> str | None:
    marked = [each.metadata.name for each in classes if each.is_default]
    return marked[0] if len(marked) == 1 else None
