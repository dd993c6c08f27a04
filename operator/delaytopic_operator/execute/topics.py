"""Edge: does to topics, groups and backlogs what a plan says, also when everything of one goes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import redis
from redis.cluster import RedisCluster

from delaytopic_operator.errors import KafkaUnavailable, OtherOwner, RedisUnavailable
from delaytopic_operator.kafka.admin import KafkaCluster
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model.kinds import KAFKA_TOPIC
from delaytopic_operator.model.offsets_backup import OffsetsBackup
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.observe.topics import TopicsObserver, other_clusters, secret_values
from delaytopic_operator.redis.client import RedisTarget, opened, primaries, redis_target
from delaytopic_operator.rules.purges import BacklogStep, DeleteGroup, DeleteKeys, DeleteObject, SkipToEnd, purge_steps
from delaytopic_operator.topics.actions import DeleteTopic, TopicAction

SCAN_COUNT: Final = 1_000
"""Keys that Redis looks at for one answer: some 0.3 ms of its one thread."""
_SPECIAL: Final = re.compile(r"([*?\[\]\\])")

CLOCKS_MS: Final = 60_000
"""The brokers' clock and the operator's may differ by so much."""
Going = Callable[[], object]
"""Asked before each request; raises what ends the purge."""
Together = Callable[[Sequence[bytes]], list[Sequence[bytes]]]
"""The keys that may go in one command."""


class Restored(NamedTuple):
    """Offsets that were committed again."""

    as_of_ms: int
    """The time up to which they tell what was delivered."""
    outdated: bool
    """True if the target topic has later records, some of which may come again."""


def do_purge_step(step: BacklogStep, cluster: KafkaCluster, target: RedisTarget | None, going: Going) -> int:
    """Do it; how many topics, keys or groups went. Raises errors of the operator's tree, to be repeated later.

    `target` is needed where Redis keys go.
    """
    match step:
        case DeleteKeys(backend_id):
            if target is None:
                raise RedisUnavailable(f"the keys of {backend_id} cannot be deleted: it is not known where Redis is")
            return delete_keys(target, backend_id, going)
        case DeleteGroup(group_id):
            return int(cluster.delete_group(group_id))
        case SkipToEnd(group_id, topic):
            return int(cluster.skip_to_end(group_id, topic))
        case DeleteTopic():
            return int(cluster.perform(step))


def delete_keys(target: RedisTarget, backend_id: str, going: Going) -> int:
    """Delete every key of a backend id, in batches; how many there were.

    Raises `RedisUnavailable`, `RedisNotAuthenticated`, and what `going` raises.
    """
    with opened(target) as client:
        together = _by_tag if isinstance(client, RedisCluster) else _all_at_once
        pattern = _pattern(backend_id)
        return sum(_delete_of(server, pattern, together, going) for _, server in primaries(client, target))


def _delete_of(server: redis.Redis, pattern: str, together: Together, going: Going) -> int:
    gone = cursor = 0
    while True:
        going()
        answer: Any = server.scan(cursor, match=pattern, count=SCAN_COUNT)
        cursor, keys = answer
        for batch in together(keys):
            going()
            gone += int(server.unlink(*batch))
        if cursor == 0:
            return gone


def _pattern(backend_id: str) -> str:
    """The hash tag of any shard; the colon keeps away from ids that begin alike."""
    return "{" + _SPECIAL.sub(r"\\\1", backend_id) + ":*"


def _all_at_once(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [keys] if keys else []


def _by_tag(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Group the keys of a cluster: only those of one shard, which share a hash tag, may go in one command."""
    tagged: dict[bytes, list[bytes]] = defaultdict(list)
    for key in keys:
        tagged[key.partition(b"}")[0]].append(key)
    return list(tagged.values())


class TopicsExecutor:
    """Thread-safe; every step may be repeated."""

    def __init__(self, topics: TopicsObserver, kube: KubeApi) -> None:
        """`topics` has the connections; `kube` the topics that are objects."""
        self._topics = topics
        self._kube = kube

    def perform(self, seen: Observation, action: TopicAction) -> bool:
        """Do it; return whether there was anything to do."""
        assert seen.route.accepted is not None
        return self._topics.cluster(seen, seen.route.accepted).perform(action)

    def purge(self, seen: Observation, record: RouteRecord, *, topics: bool, guard: Callable[[], object]) -> None:
        """Remove a backlog; with `topics`, those that are owned, too. `guard` raises what ends it."""
        accepted = seen.route.accepted
        if accepted is None:
            raise KafkaUnavailable(
                f"the backlog {record.backend_id} cannot be removed: without valid settings and a DelayClass it is not "
                "known where it is; correct them, or set deletionPolicy to Retain"
            )
        cluster, values = self._topics.cluster(seen, accepted), secret_values(seen, accepted)
        if other_clusters(cluster, record.group_id, seen.route.kube_cluster, fresh=True):
            raise OtherOwner(
                f"relays of another Kubernetes cluster are in the group {record.group_id}, and use its topics and "
                "offsets: nothing is removed until they have gone; set deletionPolicy to Retain to leave it to them"
            )
        connection = accepted.settings.backend.redis
        target = redis_target(connection, values) if connection is not None else None
        for step in purge_steps(record, topics=topics, strimzi=self._topics.strimzi(seen, accepted)):
            if isinstance(step, DeleteObject):
                metadata = step.document["metadata"]
                self._kube.delete(KAFKA_TOPIC, metadata["namespace"], metadata["name"], metadata["uid"])
            else:
                do_purge_step(step, cluster, target, guard)

    def remove_members(self, seen: Observation, group_id: str, names: Sequence[str]) -> list[str]:
        """Take relays that are gone out of their group; return those that were in it."""
        assert seen.route.accepted is not None
        topic = seen.route.accepted.settings.source.topic
        return self._topics.cluster(seen, seen.route.accepted).remove_members(group_id, topic, names)

    def restore(self, seen: Observation, group_id: str, kept: OffsetsBackup) -> Restored | None:
        """Commit again what the group lost; nothing for a topic that was made anew. None if there was nothing."""
        assert seen.route.accepted is not None
        cluster = self._topics.cluster(seen, seen.route.accepted)
        facts = cluster.view([kept.topic], fresh=True).find(kept.topic)
        if facts is None or facts.topic_id != kept.topic_id:
            return None
        # Asked before: what cannot be told now is told when it is tried again.
        later_ms = kept.as_of_ms(kept.partitions) + CLOCKS_MS
        later = cluster.offsets_at(seen.route.accepted.settings.target.topic, [later_ms]).get(later_ms, {})
        restored = cluster.restore_offsets(group_id, kept.topic, kept.partitions)
        if not restored:
            return None
        return Restored(kept.as_of_ms(restored), any(offset is not None for offset in later.values()))
