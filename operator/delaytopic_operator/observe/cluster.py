"""Edge: looks at everything that concerns one DelayTopic; a part that cannot be had now is a problem, and no error."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from delaytopic_api import DelayClass, load_document
from delaytopic_api.documents import DelayClassSpec, KafkaConnection
from delaytopic_api.errors import ApiError
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.errors import ConnectionUnknown, NamespaceTerminating, RecordUnreadable, SecretMissing
from delaytopic_operator.kafka.credentials import kafka_secrets
from delaytopic_operator.kafka.ttl_cache import TTLCache
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kube_cluster import mark_of
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import (
    COMPONENT,
    RouteRecord,
    find_record,
    record_name,
    record_of,
)
from delaytopic_operator.model.secret_values import SecretValues
from delaytopic_operator.observe.fleet import FleetFacts, RelayPage
from delaytopic_operator.observe.observation import NamespaceFacts, Observation, Problem, RouteFacts, identity_of
from delaytopic_operator.observe.relay_pages import RelayPages
from delaytopic_operator.observe.route_index import RouteIndex
from delaytopic_operator.resources import class_files, relays_name, secrets_version
from delaytopic_operator.resources.connection_files import SecretFile, connection_files
from delaytopic_operator.resources.identity import is_of_audit, is_relay
from delaytopic_operator.rules.conflicts import RouteConflict
from delaytopic_operator.rules.revoked import Revoked, revoked
from delaytopic_operator.rules.validate import Accepted, Refusal, Subject, check
from delaytopic_operator.scaling.state import memory_in

log = structlog.get_logger()

PAGES_DEADLINE_S = 3.0
NAMESPACE_AGE_MS = 15_000
SECRET_AGE_MS = 30_000
RELAY_COMPONENT = "relay"
OLDEST_NAMESPACE = "kube-system"
COMPONENT_LABEL = "app.kubernetes.io/component"

Document = dict[str, Any]


class ClusterObserver:
    """Reads from the store, and from the API server what is not watched."""

    def __init__(self, kube: KubeApi, store: ObjectCache, pages: RelayPages, config: OperatorConfig) -> None:
        """Take the clients; `pages` reads what relays say of themselves."""
        self._kube = kube
        self._store = store
        self._pages = pages
        self._config = config
        self._labels: dict[str, Mapping[str, str]] = {}
        self._routes = RouteIndex(store, config, self._labels_of)
        self._told: dict[Key, RouteConflict] = {}
        self._namespaces: TTLCache[str, Document | None] = TTLCache(
            lambda name: kube.get(kinds.NAMESPACE, None, name), NAMESPACE_AGE_MS
        )
        self._secrets: TTLCache[tuple[str, str], Document | None] = TTLCache(
            lambda place: kube.get(kinds.SECRET, *place), SECRET_AGE_MS
        )
        self._classes: dict[tuple[str, str], DelayClass] = {}
        self._mark: str | None = None

    def observe(self, key: Key, now_ms: int) -> tuple[RouteFacts, FleetFacts]:
        """Observe the objects of one DelayTopic, and those that run relays for it.

        Raises `OperatorError` when the API server cannot be asked.
        """
        document = self._store.get(kinds.DELAY_TOPIC, *key) or self._kube.get(kinds.DELAY_TOPIC, *key)
        if document is not None:
            self._store.put(document)  # nothing is judged that others are not judged by
        classes = self.all_classes()
        made = self._made(key, classes)
        if document is None or "deletionTimestamp" in document["metadata"] or "status" not in document:
            self._namespaces.forget(key.namespace)
        namespace = self._namespace(key.namespace, now_ms)
        record_document, record, problem = self._record(key, made)
        verdict = self._verdict(key, document, namespace, classes) if document is not None else None
        # What relays say is heard only from where the operator runs them for this DelayTopic.
        running = [each for each in made if each["metadata"]["namespace"] in self._relay_places(key, document, classes)]
        pods = [each for each in running if each["kind"] == kinds.POD.name]
        route = RouteFacts(
            document=document,
            namespace=namespace,
            verdict=verdict,
            record=record,
            record_problem=problem,
            kube_cluster=self._kube_cluster(),
            revoked=_revoked(verdict, record, namespace, classes),
            objects=[each for each in made if each["kind"] != kinds.POD.name and _component(each) != COMPONENT],
        )
        fleet = FleetFacts(
            _deployment(running, key),
            [pod for pod in pods if _component(pod) == RELAY_COMPONENT and is_relay(pod, key)],
            saved_memory=memory_in(record_document),
        )
        return route, fleet

    def judged_by(self, key: Key) -> Hashable:
        """Return what the objects of one DelayTopic are judged by: the same while nothing of it has changed."""
        return self._store.changes_of(key), self._routes.judged_by(key)

    def is_as_before(self, seen: Observation) -> bool:
        """Tell if what is not watched is now as it was seen: the namespace, and what the Secrets hold.

        Raises `OperatorError` when the API server cannot be asked.
        """
        assert isinstance(seen.route.verdict, Accepted)
        namespace = identity_of(seen, seen.route.verdict).namespace
        secrets = {name: self._secrets.get((namespace, name), seen.now_ms) for name in seen.route.secrets}
        facts = self._namespace(seen.key.namespace, seen.now_ms)
        return facts == seen.route.namespace and _versions(secrets) == _versions(seen.route.secrets)

    def pages(self, seen: Observation) -> FleetFacts:
        """Return the same relays with what they say now."""
        return replace(seen.fleet, pages=self._read_pages(seen.fleet.pods))

    def learn(self, key: Key, cluster_id: str) -> bool:
        """Remember what the Kafka of a DelayTopic calls itself; return whether that is news."""
        return self._routes.learn(key, cluster_id)

    def validated(self, seen: Observation) -> Accepted | Refusal | None:
        """Return the verdict by what is known now."""
        if seen.route.document is None:
            return seen.route.verdict
        return self._verdict(seen.key, seen.route.document, seen.route.namespace, self.all_classes())

    def _made(self, key: Key, classes: Iterable[DelayClass]) -> list[Document]:
        """List the objects that carry the labels, where the operator makes any: a tenant could write them elsewhere.

        Those in the namespace of the DelayTopic may be the tenant's: they are removed when they are not wanted, and
        nothing in them is believed unless relays run there.
        """
        places = {key.namespace, *self._platform_places(classes)}
        return [each for each in self._store.objects_of(key) if each["metadata"].get("namespace") in places]

    def made_for_audit(self, audit: Key) -> list[Document]:
        """List the objects of this operator for the audit of a class or of a namespace, and their pods, where it makes
        any.
        """
        places = {audit.namespace} if audit.namespace else self._platform_places(self.all_classes())
        made = (each for each in self._store.objects_of_audit(audit) if each["metadata"].get("namespace") in places)
        return [each for each in made if is_of_audit(each, audit, self._config.namespace)]

    def _platform_places(self, classes: Iterable[DelayClass]) -> set[str]:
        return {self._config.namespace, *(each.spec.relay_namespace for each in classes if each.spec.relay_namespace)}

    def _relay_places(self, key: Key, document: Document | None, classes: Iterable[DelayClass]) -> set[str]:
        """Return where its relays may run: in its own namespace only if it has a connection of its own."""
        has_class = document is not None and not (document.get("spec") or {}).get("connection")
        return self._platform_places(classes) | (set() if has_class else {key.namespace})

    def with_secrets(self, seen: Observation, accepted: Accepted) -> Observation:
        """Add the Secrets that relays need, the version of what they hold, and what is missing of them."""
        files = connection_files(accepted.settings)
        namespace = identity_of(seen, accepted).namespace
        values, secrets = self._read_secrets(namespace, files.files, seen.now_ms)
        route = replace(
            seen.route,
            secrets=secrets,
            secrets_version=secrets_version(files.read_once, secrets),
            secrets_problem=_missing(files.files, values),
        )
        return replace(seen, route=route)

    def secrets_of_class(self, spec: DelayClassSpec, now_ms: int) -> tuple[SecretValues, Problem | None]:
        """Return the Secrets that relays of a class need, where they run, and what is missing of them.

        Raises `OperatorError` when they cannot be read.
        """
        files = class_files(spec)
        values, _ = self._read_secrets(spec.relay_namespace or self._config.namespace, files, now_ms)
        return values, _missing(files, values)

    def _read_secrets(
        self, namespace: str, files: Iterable[SecretFile], now_ms: int
    ) -> tuple[SecretValues, dict[str, Document | None]]:
        names = sorted({file.secret for file in files})
        secrets = {name: self._secrets.get((namespace, name), now_ms) for name in names}
        return SecretValues(namespace, secrets), secrets

    def users_of_class(self, name: str) -> frozenset[Key]:
        """List the DelayTopics that use a class, and those gone whose relays still have to be stopped by it."""
        return self._routes.users(name)

    def all_classes(self) -> list[DelayClass]:
        """List the DelayClasses that can be read; the API server refuses others, but not those before a rule."""
        known = self._classes
        classes = {}
        for document in self._store.list(kinds.DELAY_CLASS):
            version = (document["metadata"]["name"], document["metadata"].get("resourceVersion", ""))
            parsed = known.get(version) or _class_of(document)
            if parsed is not None:
                classes[version] = parsed
        self._classes = classes
        return list(classes.values())

    def resolve_connection(self, record: RouteRecord, now_ms: int) -> tuple[KafkaConnection, SecretValues]:
        """Return the connection to the topics of a route; its DelayTopic may be gone.

        Raises `ConnectionUnknown` without the class, and `OperatorError` when the API server cannot be asked.
        """
        connection, namespace = record.connection, record.namespace
        if record.class_name is not None:
            of_class = next((one for one in self.all_classes() if one.metadata.name == record.class_name), None)
            if of_class is None:
                raise ConnectionUnknown(f"the DelayClass {record.class_name} of {record.key} is gone")
            connection, namespace = of_class.spec.connection, of_class.spec.relay_namespace or self._config.namespace
        if connection is None:
            raise ConnectionUnknown(f"how to reach the Kafka of {record.key} was not written down")
        secrets = {name: self._secrets.get((namespace, name), now_ms) for name in kafka_secrets(connection)}
        return connection, SecretValues(namespace, secrets)

    def _read_pages(self, pods: Sequence[Mapping[str, Any]]) -> list[RelayPage]:
        living = [dict(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return self._pages.read(living, PAGES_DEADLINE_S) if living else []

    def _verdict(
        self, key: Key, document: Mapping[str, Any], namespace: NamespaceFacts | None, classes: Sequence[DelayClass]
    ) -> Accepted | Refusal:
        if namespace is None:
            raise NamespaceTerminating(f"the namespace {key.namespace} is gone")
        if self._labels.get(key.namespace) != namespace.labels:
            self._labels[key.namespace] = namespace.labels
            self._routes.forget_namespace(key.namespace)
        conflict = self._routes.conflict(key)
        self._tell(key, conflict)
        subject = Subject(
            key=key,
            document=document,
            classes=classes,
            namespace_labels=namespace.labels,
            quota_usage=self._routes.quota_usage(key),
            conflict=conflict.sentence if conflict is not None else None,
            config=self._config,
        )
        return check(subject)

    def _labels_of(self, document: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what the namespace was labelled with when it was looked at last."""
        name = document["metadata"]["namespace"]
        if name not in self._labels:
            found = self._kube.get(kinds.NAMESPACE, None, name)
            self._labels[name] = (found["metadata"].get("labels") or {}) if found is not None else {}
        return self._labels[name]

    def _tell(self, key: Key, conflict: RouteConflict | None) -> None:
        """Log what the status must not say: whom of other namespaces it gives way to."""
        if conflict is None:
            self._told.pop(key, None)
        elif self._told.get(key) != conflict:
            self._told[key] = conflict
            log.warning("gives way", delaytopic=str(key), to=[*map(str, conflict.others)], because=conflict.sentence)

    def _kube_cluster(self) -> str | None:
        """Return the mark of this Kubernetes cluster: its oldest namespace is that of no other one."""
        if self._mark is None:
            found = self._kube.get(kinds.NAMESPACE, None, OLDEST_NAMESPACE)
            self._mark = mark_of(found["metadata"]["uid"]) if found is not None else None
        return self._mark

    def _namespace(self, name: str, now_ms: int) -> NamespaceFacts | None:
        document = self._namespaces.get(name, now_ms)
        if document is None:
            return None
        metadata = document["metadata"]
        return NamespaceFacts(metadata["uid"], metadata.get("labels") or {}, "deletionTimestamp" in metadata)

    def _record(self, key: Key, made: list[Document]) -> tuple[Document | None, RouteRecord | None, Problem | None]:
        name = record_name(key)
        document = find_record(made, key, self._config.namespace)
        if document is None:
            # What is not seen yet must not look as if nothing had been written down.
            document = self._kube.get(kinds.CONFIG_MAP, self._config.namespace, name)
        if document is None:
            return None, None, None
        try:
            return document, record_of(document, key), None
        except RecordUnreadable as error:
            return document, None, Problem(error.reason, str(error), stalled=True)


def _deployment(running: Iterable[Document], key: Key) -> Document | None:
    """Return the Deployment of the relays, by its name."""
    deployments = (each for each in running if each["kind"] == kinds.DEPLOYMENT.name)
    return next((each for each in deployments if each["metadata"]["name"] == relays_name(key)), None)


def _versions(secrets: Mapping[str, Mapping[str, Any] | None]) -> dict[str, str | None]:
    return {
        name: document["metadata"].get("resourceVersion") if document is not None else None
        for name, document in secrets.items()
    }


def _revoked(
    verdict: Accepted | Refusal | None,
    record: RouteRecord | None,
    namespace: NamespaceFacts | None,
    classes: Iterable[DelayClass],
) -> Revoked | None:
    if not isinstance(verdict, Refusal) or record is None or namespace is None:
        return None
    return revoked(record, classes, namespace.labels)


def _missing(files: Iterable[SecretFile], values: SecretValues) -> Problem | None:
    """Find the first file that no Secret holds."""
    for secret, key in files:
        try:
            values.text(secret, key)
        except SecretMissing as error:
            return Problem(error.reason, str(error))
    return None


def _class_of(document: Document) -> DelayClass | None:
    try:
        parsed = load_document({name: part for name, part in document.items() if name != "status"})
    except ApiError:
        return None
    assert isinstance(parsed, DelayClass)
    return parsed


def _component(document: Document) -> str | None:
    labels: dict[str, str] = document["metadata"].get("labels") or {}
    return labels.get(COMPONENT_LABEL)
