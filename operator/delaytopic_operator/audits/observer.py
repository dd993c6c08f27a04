"""Edge: looks at the audit of a class, or of a namespace: whom it is about, what was made for it, what it tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from delaytopic_api import DelayClass, DelayTopic, load_document
from delaytopic_api.documents import ConditionType
from delaytopic_api.errors import ApiError
from delaytopic_operator.audits.plan import AuditObservation
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import TRUE
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.audit_verdict import VerdictMessage, parsed_slo
from delaytopic_operator.observe.cluster import ClusterObserver
from delaytopic_operator.observe.observation import PAUSE
from delaytopic_operator.observe.told_verdicts import ToldVerdicts
from delaytopic_operator.resources.identity import is_run_by_job
from delaytopic_operator.rules.delay_class import check_class

Document = Mapping[str, Any]


class _Parsed(NamedTuple):
    """A DelayTopic of this version; None for one that cannot be read."""

    version: tuple[str, int | None]
    topic: DelayTopic | None


class AuditObserver:
    """Thread-safe for different keys."""

    def __init__(
        self, cluster: ClusterObserver, store: ObjectCache, config: OperatorConfig, told: ToldVerdicts
    ) -> None:
        """`told` hears verdicts."""
        self._cluster = cluster
        self._store = store
        self._config = config
        self._told = told
        self._parsed: dict[Key, dict[Key, _Parsed]] = {}

    def observe(self, key: Key, now_ms: int) -> AuditObservation:
        """Observe the audit of one class or namespace, and hear what its pods say."""
        made = self._cluster.made_for_audit(key)
        objects = [each for each in made if each["kind"] != kinds.POD.name]
        of_class = self._class_of(key) if not key.namespace else None
        if of_class is None and not key.namespace:
            # Nothing is decided of a class that is not accepted; with the class, Kubernetes removes what was made.
            self._forget(key)
            return AuditObservation(key, now_ms, self._config, objects=objects)
        documents = self._documents(key)
        topics = self._accepted(key, documents.values())
        pods = [each for each in made if each["kind"] == kinds.POD.name and is_run_by_job(each)]
        self._told.refresh(key, pods, documents.keys(), lambda message: is_kept(message, documents.get(message.key)))
        return AuditObservation(
            key=key,
            now_ms=now_ms,
            config=self._config,
            is_known=True,
            of_class=of_class,
            topics=topics,
            waits_for=frozenset(each for each in documents if each not in self._parsed[key]),
            runs=any((pod.get("status") or {}).get("phase") in ("Pending", "Running") for pod in pods),
            objects=objects,
        )

    def note_failure(self, key: Key, failure: str | None) -> None:
        """Remember why the audit cannot be set up, for the status of its DelayTopics; None: it is set up."""
        self._told.note_failure(key, failure)

    def _forget(self, key: Key) -> None:
        self._told.forget(key)
        self._parsed.pop(key, None)

    def _class_of(self, key: Key) -> DelayClass | None:
        document = self._store.get(kinds.DELAY_CLASS, None, key.name)
        if document is None:
            return None
        verdict = check_class(document, self._cluster.all_classes(), self._config)
        return verdict if isinstance(verdict, DelayClass) else None

    def _documents(self, key: Key) -> dict[Key, Document]:
        """Return the DelayTopics that are part of the audit, whether they were accepted or not."""
        if key.namespace:
            found: Iterable[Document | None] = self._store.with_own_connection(key.namespace)
        else:
            found = (
                self._store.get(kinds.DELAY_TOPIC, *user) for user in sorted(self._cluster.users_of_class(key.name))
            )
        return {
            Key(each["metadata"]["namespace"], each["metadata"]["name"]): each
            for each in found
            if each is not None and "deletionTimestamp" not in each["metadata"]
        }

    def _accepted(self, audit: Key, documents: Iterable[Document]) -> list[DelayTopic]:
        before, found = self._parsed.get(audit, {}), dict[Key, _Parsed]()
        for document in documents:
            if not is_accepted(document):
                continue
            metadata = document["metadata"]
            key = Key(metadata["namespace"], metadata["name"])
            version = (metadata["uid"], metadata.get("generation"))
            known = before.get(key)
            found[key] = known if known and known.version == version else _Parsed(version, _parsed(document))
        self._parsed[audit] = found
        return [each.topic for each in found.values() if each.topic is not None]


def is_accepted(document: Document) -> bool:
    """Tell whether a DelayTopic was accepted as it is now: until then it may name what is not its own."""
    metadata = document["metadata"]
    if "deletionTimestamp" in metadata:
        return False
    return any(
        each.get("type") == ConditionType.POLICY_ACCEPTED
        and each.get("status") == TRUE
        and each.get("observedGeneration") == metadata.get("generation")
        for each in (document.get("status") or {}).get("conditions") or ()
    )


def is_kept(message: VerdictMessage, document: Document | None) -> bool:
    """Tell whether the DelayTopic's status has this verdict or a later one, or nobody writes it."""
    if (
        document is None
        or not is_accepted(document)
        or document["metadata"].get("annotations", {}).get(PAUSE) == "true"
    ):
        return True
    slo = parsed_slo((document.get("status") or {}).get("slo"))
    return slo is not None and slo.audited_at is not None and slo.audited_at >= message.audited_at


def _parsed(document: Document) -> DelayTopic | None:
    try:
        topic = load_document({name: part for name, part in document.items() if name != "status"})
    except ApiError:
        return None
    return topic if isinstance(topic, DelayTopic) else None
