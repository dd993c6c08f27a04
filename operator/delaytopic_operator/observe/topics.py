"""Edge: what Kafka and Redis have to say about one DelayTopic, and what is done there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delaytopic_api import Settings
from delaytopic_api.documents import KafkaConnection
from delaytopic_api.values import BackendType, TopicProvisioning, ids_name
from delaytopic_operator.errors import KafkaUnavailable, OperatorError, Rejected, Unavailable
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.kafka.credentials import kafka_settings
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model.conditions import Condition
from delaytopic_operator.model.kafka_view import KafkaView, hold_nothing
from delaytopic_operator.model.kinds import KAFKA_TOPIC
from delaytopic_operator.model.kube_cluster import marks_in
from delaytopic_operator.model.offsets_backup import OffsetsBackup
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.model.secret_values import SecretValues
from delaytopic_operator.observe.observation import Observation, Problem, Topics, identity_of
from delaytopic_operator.observe.redis import RedisObserver
from delaytopic_operator.rules.validate import Accepted
from delaytopic_operator.scaling.signals import PartitionOffsets, SourceOffsets, times_to_ask
from delaytopic_operator.topics.desired import needed_buckets
from delaytopic_operator.topics.plan import topic_names
from delaytopic_operator.topics.strimzi import CLUSTER_LABEL, StrimziTopics, strimzi_place, strimzi_topics
from delaytopic_process.open_transactions import OpenTransaction, StableEnds


@dataclass(frozen=True)
class TopicsSeen:
    """The topics and the backend, as far as they could be seen."""

    topics: Topics | None = None
    problem: Problem | None = None
    partitions: int | None = None
    """The partitions of the source."""
    offsets: SourceOffsets | None = None
    backend: Condition | None = None


class TopicsObserver:
    """Thread-safe."""

    def __init__(self, kafka: KafkaClusters, kube: KubeApi) -> None:
        """Take `kafka`, a connection for each cluster and user, and `kube`, which has the topics that are objects."""
        self._kafka = kafka
        self._kube = kube
        self._redis = RedisObserver()
        self._stable: dict[Key, StableEnds] = {}
        self._others: dict[Key, frozenset[str]] = {}

    def observe(
        self, seen: Observation, accepted: Accepted, *, fresh: bool = False, members: bool = True
    ) -> TopicsSeen:
        """Observe topics and the source's offsets; a failure is a problem. What exists was read up to a minute ago, its
        settings up to a resync ago, or both are read now (`fresh`). Without `members` nobody is asked who is in the
        relays' group: it is as it was.
        """
        settings = accepted.settings
        backend = self._redis.observe(accepted, secret_values(seen, accepted), seen.now_ms)
        try:
            cluster = self.cluster(seen, accepted)
            buckets = needed_buckets(settings)
            view = cluster.view(topic_names(settings, seen.route.record, buckets), fresh=fresh)
            strimzi = self.strimzi(seen, accepted)
        except OperatorError as error:
            return TopicsSeen(problem=problem_of(error), backend=backend)
        source = view.find(settings.source.topic)
        offsets: SourceOffsets | None = None
        transactions: dict[int, OpenTransaction] = {}
        if source is not None:
            offsets, transactions = self._offsets(seen, cluster, settings, source.partitions)
        return TopicsSeen(
            topics=Topics(
                view,
                needed_buckets(settings, source),
                released=_released(seen, cluster, view),
                strimzi=strimzi,
                cluster_id=cluster.cluster_id(fresh=fresh),
                offsets_retention_ms=cluster.offsets_retention_ms(),
                open_transactions=transactions,
                other_clusters=self._other_clusters(seen, cluster, settings.group_id, ask=members),
            ),
            partitions=source.partitions if source is not None else None,
            backend=backend,
            offsets=offsets,
        )

    def forget(self, key: Key) -> None:
        """Forget what was seen of a DelayTopic that is gone."""
        self._stable.pop(key, None)
        self._others.pop(key, None)

    def _offsets(
        self, seen: Observation, cluster: KafkaCluster, settings: Settings, partitions: int
    ) -> tuple[SourceOffsets | None, dict[int, OpenTransaction]]:
        """Return what relays can read of the source, and the transactions that keep them from reading the rest."""
        topic, delay, now_ms = settings.source.topic, settings.schedule.fixed_delay, seen.now_ms
        times_ms = times_to_ask(now_ms, delay.ms, settings.autoscaling.look_ahead.ms) if delay is not None else ()
        try:
            ends = cluster.source(topic)
            by_time = cluster.offsets_at(topic, times_ms)
        except KafkaUnavailable:
            # A partition without a leader while all else is well: scaling holds, as without any signal.
            return None, {}
        if ends is None:
            return None, {}
        stable, as_of_ms = ends.stable, ends.as_of_ms
        found = {each: of for each, of in ends.offsets.items() if each in stable}
        known = self._stable.setdefault(seen.key, StableEnds())
        known.keep({each for each, of in found.items() if stable[each] < of.end})
        for each, of in found.items():
            if stable[each] < of.end:
                known.told(each, stable[each], as_of_ms)
        of_partitions = {each: _for_scaling(of.begin, stable[each], each, by_time) for each, of in found.items()}
        return SourceOffsets(as_of_ms, partitions, of_partitions), known.open(
            {each: of.end for each, of in found.items()}
        )

    def _other_clusters(self, seen: Observation, cluster: KafkaCluster, group_id: str, *, ask: bool) -> frozenset[str]:
        """Return the other Kubernetes clusters in the relays' group, as of some seconds ago where it may be asked."""
        known = self._others.get(seen.key)
        if known is not None and not ask:
            return known
        found = self._others[seen.key] = other_clusters(cluster, group_id, seen.route.kube_cluster)
        return found

    def strimzi(self, seen: Observation, accepted: Accepted) -> StrimziTopics | None:
        """Return the KafkaTopic objects, and where they are; None unless topics are made as objects."""
        settings = accepted.settings
        if settings.topic_provisioning is not TopicProvisioning.STRIMZI_KAFKA_TOPIC or settings.connection is None:
            return None
        place = strimzi_place(settings.connection.bootstrap_servers, identity_of(seen, accepted).namespace)
        if place is None:
            return None
        labels = {CLUSTER_LABEL: place.cluster}
        return strimzi_topics(place, self._kube.list(KAFKA_TOPIC, place.namespace, labels))

    def committed(self, record: RouteRecord, connection: KafkaConnection, values: SecretValues) -> OffsetsBackup | None:
        """Read what the relays' group has committed; None when the source is not the record's. Raises as Kafka."""
        assert record.source is not None
        name, topic_id = record.source.name, record.source.topic_id
        cluster = self._kafka.cluster(kafka_settings(connection, values))
        facts = cluster.view([name], fresh=True).find(name)
        if facts is None or facts.topic_id != topic_id:
            return None
        return OffsetsBackup(name, facts.topic_id, cluster.committed(record.group_id, name))

    def cluster(self, seen: Observation, accepted: Accepted) -> KafkaCluster:
        """Return the connection to its Kafka. Raises errors of credentials."""
        connection = accepted.settings.connection
        assert connection is not None
        return self._kafka.cluster(kafka_settings(connection, secret_values(seen, accepted)))


def other_clusters(cluster: KafkaCluster, group_id: str, mark: str | None, *, fresh: bool = False) -> frozenset[str]:
    """Return the marks of other Kubernetes clusters whose relays are in a group; none where that is not known."""
    if mark is None:
        return frozenset()
    try:
        return marks_in(cluster.member_names(group_id, fresh=fresh)) - {mark}
    except OperatorError:
        # Who may not describe the group, or finds Kafka away, is told so by what needs it more.
        return frozenset()


def secret_values(seen: Observation, accepted: Accepted) -> SecretValues:
    """Return the Secrets that were read, of the namespace where the relays run."""
    return SecretValues(identity_of(seen, accepted).namespace, seen.route.secrets)


def _released(seen: Observation, cluster: KafkaCluster, view: KafkaView) -> frozenset[str]:
    """List bucket topics of a former backend that hold nothing any more."""
    assert seen.route.accepted is not None
    former = list(seen.route.record.buckets) if seen.route.record is not None else []
    if not former or seen.route.accepted.settings.backend.type is BackendType.KAFKA_BUCKETS:
        return frozenset()
    offsets = cluster.offsets([name for name in former if view.find(name) is not None])
    return hold_nothing(offsets, ids_name(seen.route.accepted.settings.backend.id))


def _for_scaling(
    begin: int, end: int, number: int, by_time: Mapping[int, Mapping[int, int | None]]
) -> PartitionOffsets:
    """Drop what is committed, which relays say themselves; before there are any nothing is known to be unread."""
    reached = {at_ms: answers[number] for at_ms, answers in by_time.items() if number in answers}
    return PartitionOffsets.answered(begin, end, reached)


def problem_of(error: OperatorError) -> Problem:
    """Describe an error as a problem."""
    rejected, passing = isinstance(error, Rejected), isinstance(error, Unavailable)
    return Problem(error.reason, str(error), stalled=rejected, passing=passing)
