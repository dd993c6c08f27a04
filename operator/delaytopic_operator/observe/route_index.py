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
from delaytopic_operator.kube.object_cache import NEVER, News, ObjectCache, Ref
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import instant_ms
from delaytopic_operator.model.kinds import Kind
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import DATA_KEY, RecordState, Role, RouteRecord, is_record, parse_record
from delaytopic_operator.rules.conflicts import (
    Connection,
    Network,
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
Group = tuple[str, str | None]
"""A namespace and a class."""


class _Entry(NamedTuple):
    """A DelayTopic; one that may not be acted upon uses nothing."""

    version: int
    content: Hashable
    """A value that is the same while all that it is judged by is the same."""
    key: Key
    created_ms: int
    class_name: str | None
    limit: int | None = None
    """The most that its class allows in a namespace."""
    partitions: int = 0
    """The partitions of all of its topics."""
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
        self._revisions: dict[Kind, int] = {}
        self._network = Network()
        self._met: Counter[Group] = Counter()
        self._partitions: Counter[Group] = Counter()
        """The DelayTopics of a namespace and class, and the partitions of those that it has room for."""
        self._class_versions: dict[Ref, int] = {}
        self._classes: dict[str, DelayClass] = {}
        self._ids: dict[Connection, str] = {}
        self._users: defaultdict[str, set[Key]] = defaultdict(set)
        self._elders: dict[Key, QuotaUsage] = {}
        self._terms = 0
        """Grows with each change of what classes say."""

    def conflict(self, key: Key) -> RouteConflict | None:
        """Return the conflict with other DelayTopics about the topics of this one."""
        with self._lock:
            self._refresh()
            return self._network.refused.get(key)

    def conflict_sentence(self, key: Key) -> str | None:
        """Return the conflict as a sentence for whoever wrote the DelayTopic."""
        conflict = self.conflict(key)
        return conflict.sentence if conflict is not None else None

    def quota_usage(self, key: Key) -> QuotaUsage:
        """Count the older DelayTopics of its namespace with the same class, and their partitions."""
        with self._lock:
            self._refresh()
            return self._elders.get(key, QuotaUsage(0, 0))

    def judged_by(self, key: Key) -> Hashable:
        """Return what this one is judged by beside itself: the same while nothing of that has changed."""
        with self._lock:
            self._refresh()
            return self._terms, self._network.refused.get(key), self._elders.get(key)

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
            self._revisions.pop(kinds.DELAY_TOPIC, None)

    def _refresh(self) -> None:
        if self._store.revision(kinds.DELAY_CLASS) != self._revisions.get(kinds.DELAY_CLASS):
            self._revisions[kinds.DELAY_CLASS] = self._store.revision(kinds.DELAY_CLASS)
            self._read_classes()
        topics = self._read_topics(self._news(kinds.DELAY_TOPIC))
        records = self._read_records(self._news(kinds.CONFIG_MAP))
        if topics is None or records is None or not self._append(topics, records):
            self._compare()

    def _news(self, kind: Kind) -> News:
        news = self._store.news(kind, self._revisions.get(kind, NEVER))
        self._revisions[kind] = news.revision
        return news

    def _read_classes(self) -> None:
        versions = self._store.versions(kinds.DELAY_CLASS)
        if versions != self._class_versions:
            self._class_versions = versions
            parsed = map(_parsed_class, self._store.list(kinds.DELAY_CLASS))
            classes = {each.metadata.name: each for each in parsed if each is not None}
            # A class whose status alone has changed is no reason to judge its thousand DelayTopics again.
            if _terms_of(classes) != _terms_of(self._classes):
                self._entries.clear()
                self._revisions.pop(kinds.DELAY_TOPIC, None)
                self._terms += 1
            self._classes = classes

    def _read_topics(self, news: News) -> list[_Entry] | None:
        """Read what changed of DelayTopics; return those that are new, or None where others are concerned."""
        versions = dict(news.versions)
        if news.is_all:
            versions |= dict.fromkeys(self._entries.keys() - versions.keys())
        added: list[_Entry] = []
        concerned = False
        for ref, version in versions.items():
            before = self._entries.get(ref)
            if before is not None and before.version == version:
                continue
            document = self._store.get(kinds.DELAY_TOPIC, ref.namespace, ref.name) if version is not None else None
            entry = self._entry(document, version or 0, before) if document is not None else None
            self._entries.pop(ref, None)
            if entry is not None:
                self._entries[ref] = entry
            if before is None and entry is not None:
                added.append(entry)
            concerned = concerned or (before is not None and _matters(before) != _matters(entry))
        return None if concerned or news.is_all else added

    def _read_records(self, news: News) -> list[_Written] | None:
        """Read what changed of records; return those that are new, or None where others are concerned."""
        versions = {ref: each for ref, each in news.versions.items() if ref.namespace == self._config.namespace}
        if news.is_all:
            versions |= dict.fromkeys(self._written.keys() - versions.keys())
        added: list[_Written] = []
        concerned = False
        for ref, version in versions.items():
            before = self._written.pop(ref, None)
            written = self._read_record(ref) if version is not None else None
            if written is not None:
                self._written[ref] = written
            if before is None and written is not None:
                concerned = concerned or self._is_contested(written)
                self._note_users(written.record.key, written.uses)
                added.append(written)
            concerned = concerned or (before is not None and _claimed(before) != _claimed(written))
        return None if concerned else added

    def _is_contested(self, written: _Written) -> bool:
        """Tell if others use what a record binds: each new DelayTopic has one, of what nobody else uses."""
        own = {written.record.key}
        return any(self._users[use.name] - own for use in written.uses if use.manages or use.role is Role.SOURCE)

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

    def _append(self, topics: Iterable[_Entry], records: Iterable[_Written]) -> bool:
        """Admit new DelayTopics after all others, and enter records that bind nobody else.

        Return False where one does not come last.
        """
        written_down = {written.record.key for written in self._written.values()} if topics else set()
        if any(entry.key in written_down for entry in topics):
            # What is written down of it was of one that is gone.
            return False
        ordered = sorted(topics, key=_age)
        for entry in ordered:
            self._elders[entry.key] = self._quota_usage(entry)
            self._note_users(entry.key, entry.uses)
        for written in records:
            self._network.keep(self._route_of(written))
        for entry in ordered:
            route = self._route(entry, None)
            if not self._network.comes_last(route):
                return False
            if self._is_allowed(entry):
                self._network.admit(route)
        return True

    def _note_users(self, key: Key, uses: Iterable[Use]) -> None:
        for use in uses:
            self._users[use.name].add(key)

    def _is_allowed(self, entry: _Entry) -> bool:
        """Tell if it may be acted upon, but for conflicts, and its class has room for it beside the older ones."""
        older = self._elders[entry.key]
        fits = entry.most_partitions is None or older.partitions + entry.partitions <= entry.most_partitions
        return bool(entry.uses) and fits and (entry.limit is None or older.topics < entry.limit)

    def _quota_usage(self, entry: _Entry) -> QuotaUsage:
        """Count the older ones of its namespace and class, and enter it among them."""
        group = entry.key.namespace, entry.class_name
        older = QuotaUsage(self._met[group], self._partitions[group])
        self._met[group] += 1
        # One that is refused has no topics.
        if entry.most_partitions is None or older.partitions + entry.partitions <= entry.most_partitions:
            self._partitions[group] += entry.partitions
        return older

    def _compare(self) -> None:
        """Compare all with each other."""
        self._met.clear()
        self._partitions.clear()
        self._elders = {entry.key: self._quota_usage(entry) for entry in sorted(self._entries.values(), key=_age)}
        self._users.clear()
        for entry in self._entries.values():
            self._note_users(entry.key, entry.uses)
        for written in self._written.values():
            self._note_users(written.record.key, written.uses)
        allowed = [entry for entry in self._entries.values() if self._is_allowed(entry)]
        connections = {entry.connection for entry in allowed}
        self._ids = {connection: each for connection, each in self._ids.items() if connection in connections}
        ids = {written.record.key: written.record.cluster_id for written in self._written.values()}
        routes = [self._route(entry, ids.get(entry.key)) for entry in allowed]
        self._network = Network.of(routes, [self._route_of(written) for written in self._written.values()])

    def _route(self, entry: _Entry, recorded_id: str | None) -> Route:
        clusters = clusters_of(entry.connection, self._ids, recorded_id)
        return Route(entry.key, entry.created_ms, clusters, entry.uses, entry.connection.by_class)

    def _route_of(self, written: _Written) -> Route:
        """Make a route of a record, as old as its first writing, however old its DelayTopic is."""
        record = written.record
        living = self._entries.get(Ref(kinds.DELAY_TOPIC.plural, *record.key))
        return Route(
            record.key,
            written.since_ms,
            clusters_of(self._connection_of(record), self._ids, record.cluster_id),
            written.uses,
            by_class=record.class_name is not None,
            is_refused=living is not None and not self._is_allowed(living),
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


def _age(entry: _Entry) -> tuple[int, Key]:
    return entry.created_ms, entry.key


def _matters(entry: _Entry | None) -> object:
    """Return the part of it that concerns others."""
    return entry[2:] if entry is not None else None


def _claimed(written: _Written | None) -> object:
    """Return the part of a record that concerns others."""
    if written is None:
        return None
    record = written.record
    is_empty = record.state is RecordState.RETAINED and record.pending == 0
    return written.since_ms, written.uses, record.class_name, record.connection, record.cluster_id, is_empty


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
        **({Role.OUTCOMES: settings.outcomes} if settings.outcomes is not None else {}),
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
