"""Edge: looks at a RecurringRecord, and at the source of its DelayTopic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delaytopic_api.errors import InvalidDocument
from delaytopic_api.relay import LastOccurrence
from delaytopic_operator.errors import NamespaceTerminating, OperatorError
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.kafka.credentials import kafka_settings
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model import kinds
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.cluster import ClusterObserver
from delaytopic_operator.observe.observation import Problem, RouteFacts
from delaytopic_operator.observe.relay_pages import RelayPages
from delaytopic_operator.observe.topics import problem_of
from delaytopic_operator.recurring.deliveries import asked_after
from delaytopic_operator.recurring.plan import (
    Hindrance,
    RecurringObservation,
    Source,
    hindrance,
    read_document,
)
from delaytopic_operator.recurring.told_occurrences import ToldOccurrences
from delaytopic_operator.rules.validate import Accepted


class RecurringObserver:
    """Thread-safe."""

    def __init__(self, cluster: ClusterObserver, kafka: KafkaClusters, store: ObjectCache, pages: RelayPages) -> None:
        """Take the observer of Kubernetes, the connections that DelayTopics use, too, and the pages of their relays."""
        self._cluster = cluster
        self._kafka = kafka
        self._store = store
        self._occurrences = ToldOccurrences(pages)

    def observe(self, key: Key, now_ms: int) -> tuple[RecurringObservation, KafkaCluster | None]:
        """Observe one RecurringRecord, and return the cluster that it is written to; None where it cannot be.

        What cannot be read or reached is a hindrance, and no error.
        """
        document = self._store.get(kinds.RECURRING_RECORD, *key)
        if document is None:
            self._occurrences.forget(key)
            return RecurringObservation(now_ms, None), None
        name = str((document.get("spec") or {}).get("delayTopic"))
        source, kafka, pods = self._source(Key(key.namespace, name), now_ms)
        return RecurringObservation(now_ms, document, source, self._told(key, document, pods, now_ms)), kafka

    def _source(
        self, key: Key, now_ms: int
    ) -> tuple[Source | Hindrance, KafkaCluster | None, Sequence[Mapping[str, Any]]]:
        try:
            found, fleet = self._cluster.observe(key, now_ms)
            hindrance = _hindrance(key, found)
            if hindrance is not None:
                return hindrance, None, fleet.pods
            return *self._reached(found, now_ms), fleet.pods
        except NamespaceTerminating as error:
            return Hindrance(problem_of(error), is_gone=True), None, ()
        except OperatorError as error:
            return Hindrance(problem_of(error)), None, ()

    def _told(
        self, key: Key, document: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], now_ms: int
    ) -> LastOccurrence | None:
        """Ask relays for the last delivery, if one may have left since they were asked."""
        try:
            known_ms = asked_after(read_document(document), now_ms)
        except InvalidDocument:
            return None
        return self._occurrences.latest(key, document["metadata"]["uid"], pods, known_ms) if known_ms else None

    def _reached(self, found: RouteFacts, now_ms: int) -> tuple[Source | Hindrance, KafkaCluster | None]:
        record, document = found.record, found.document
        assert record is not None
        assert record.source is not None
        assert document is not None
        assert isinstance(found.verdict, Accepted)
        connection, values = self._cluster.resolve_connection(record, now_ms)
        kafka = self._kafka.cluster(kafka_settings(connection, values))
        topic = kafka.view([record.source.name]).find(record.source.name)
        if topic is None:
            missing = Problem("TopicMissing", f"the topic {record.source.name} is missing, or may not be described")
            return Hindrance(missing), None
        uid = document["metadata"]["uid"]
        return Source(topic.name, topic.topic_id, topic.partitions, uid, found.verdict.settings), kafka


def _hindrance(key: Key, found: RouteFacts) -> Hindrance | None:
    if (reason := hindrance(key, found.document, found.verdict)) is not None:
        return reason
    if found.record is None or found.record.source is None:
        return Hindrance(Problem("DelayTopicNotReady", f"the DelayTopic {key} has no source yet", passing=True))
    return None
