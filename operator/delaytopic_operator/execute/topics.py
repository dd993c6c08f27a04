"""Edge: does to topics, groups and backlogs what a plan says."""

from __future__ import annotations

from collections.abc import Callable

from delaytopic_operator.errors import KafkaUnavailable
from delaytopic_operator.execute.purge import do_purge_step
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model.kinds import KAFKA_TOPIC
from delaytopic_operator.model.offsets_backup import KeptProgress
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.observe.topics import TopicsObserver, secret_values
from delaytopic_operator.redis.credentials import redis_target
from delaytopic_operator.rules.purges import DeleteObject, purge_steps
from delaytopic_operator.topics.actions import TopicAction


class TopicsExecutor:
    """Thread-safe; every step may be repeated."""

    def __init__(self, topics: TopicsObserver, kube: KubeApi) -> None:
        """`topics` has the connections; `kube` the topics that are objects."""
        self._topics = topics
        self._kube = kube

    def perform(self, seen: Observation, action: TopicAction) -> bool:
        """Do it; return whether there was anything to do."""
        assert seen.accepted is not None
        return self._topics.cluster(seen, seen.accepted).perform(action)

    def purge(self, seen: Observation, record: RouteRecord, *, topics: bool, guard: Callable[[], object]) -> None:
        """Remove a backlog; with `topics`, those that are owned, too. `guard` raises what ends it."""
        accepted = seen.accepted
        if accepted is None:
            raise KafkaUnavailable(
                f"the backlog {record.backend_id} cannot be removed: without valid settings and a DelayClass it is not "
                "known where it is; correct them, or set deletionPolicy to Retain"
            )
        cluster, values = self._topics.cluster(seen, accepted), secret_values(seen, accepted)
        redis = accepted.settings.backend.redis
        target = redis_target(redis, values) if redis is not None else None
        for step in purge_steps(record, topics=topics, strimzi=self._topics.strimzi(seen, accepted)):
            if isinstance(step, DeleteObject):
                metadata = step.document["metadata"]
                self._kube.delete(KAFKA_TOPIC, metadata["namespace"], metadata["name"], metadata["uid"])
            else:
                do_purge_step(step, cluster, target, guard)

    def restore(self, seen: Observation, group_id: str, kept: KeptProgress) -> bool:
        """Commit again what the group lost; nothing for a topic that was made anew.

        Return whether there was anything.
        """
        assert seen.accepted is not None
        cluster = self._topics.cluster(seen, seen.accepted)
        facts = cluster.view([kept.topic], fresh=True).find(kept.topic)
        if facts is None or facts.topic_id != kept.topic_id:
            return False
        return cluster.restore_progress(group_id, kept.topic, kept.partitions)
