"""Edge: the Kafka clusters that DelayTopics live in, what is there, and what is done there."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from delaytopic_operator.errors import OperatorError
from delaytopic_operator.kafka.cache import KEPT_S, GroupMembers, Recall, TopicMemory
from delaytopic_operator.kafka.client import TIMEOUT_S, KafkaClient, Observe
from delaytopic_operator.kafka.ends import EndsTogether, SourceEnds
from delaytopic_operator.kafka.members import member_names, remove_members
from delaytopic_operator.kafka.read import (
    read_cluster_id,
    read_committed,
    read_offsets,
    read_offsets_at,
    read_offsets_retention,
    read_settings,
    read_sources,
    read_topics,
    with_committed,
)
from delaytopic_operator.kafka.write import (
    add_partitions,
    commit_offsets,
    create_topic,
    delete_group,
    delete_topic,
    set_config,
)
from delaytopic_operator.model.kafka_view import Committed, KafkaView, NewRecord, PartitionOffsets
from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic, GrowTopic, SetConfig, TopicAction

MOST_CLUSTERS: Final = 64
"""Each connection has some threads and sockets; the one that was not used for longest is closed."""
UNUSED_S: Final = 900.0
POLL_S: Final = 15.0
SETTINGS_KEPT_S: Final = 300.0
RETENTION_KEPT_S: Final = 3_600.0
"""A setting of brokers hardly ever changes."""


def nothing_observed(what: str, result: str, seconds: float) -> None:
    """Count nothing, for a caller who counts no requests."""


def anybody_writes() -> None:
    """Allow everything, for a caller who is the only operator."""


class KafkaClusters:
    """One admin client for each connection; any thread may use it."""

    def __init__(
        self,
        before_write: Callable[[], object] = anybody_writes,
        observe: Observe = nothing_observed,
        timeout_s: float = TIMEOUT_S,
        poll_s: float = POLL_S,
        settings_kept_s: float = SETTINGS_KEPT_S,
    ) -> None:
        """`before_write` raises if this operator must not write now, because it does not lead.

        `poll_s` is the time between two looks at a DelayTopic; `settings_kept_s` the one for which the settings of a
        topic count.
        """
        self._before_write = before_write
        self._observe = observe
        self._timeout_s = timeout_s
        self._poll_s = poll_s
        self._settings_kept_s = settings_kept_s
        self._lock = threading.Lock()
        self._clusters: OrderedDict[frozenset[tuple[str, str]], tuple[float, KafkaCluster]] = OrderedDict()

    def cluster(self, settings: Mapping[str, str]) -> KafkaCluster:
        """The cluster that a connection (`kafka_settings`) leads to. Raises `KafkaNotAuthenticated` for bad keys."""
        key = frozenset(settings.items())
        with self._lock:
            known = self._clusters.get(key)
            cluster = known[1] if known is not None else self._connect(settings)
            self._clusters[key] = (time.monotonic(), cluster)
            self._clusters.move_to_end(key)
            self._close_unused()
            return cluster

    def close(self) -> None:
        """Let all connections go."""
        with self._lock:
            self._clusters.clear()

    def __len__(self) -> int:
        """Return how many connections there are."""
        return len(self._clusters)

    def _connect(self, settings: Mapping[str, str]) -> KafkaCluster:
        client = KafkaClient(settings, self._observe, self._timeout_s)
        return KafkaCluster(client, self._before_write, self._poll_s, self._settings_kept_s)

    def _close_unused(self) -> None:
        """The client of one that another thread still uses ends with its last use."""
        oldest_s = time.monotonic() - UNUSED_S
        while len(self._clusters) > MOST_CLUSTERS or next(iter(self._clusters.values()))[0] < oldest_s:
            self._clusters.popitem(last=False)


class KafkaCluster:
    """One cluster, as one user."""

    def __init__(
        self,
        client: KafkaClient,
        before_write: Callable[[], object] = anybody_writes,
        poll_s: float = POLL_S,
        settings_kept_s: float = SETTINGS_KEPT_S,
    ) -> None:
        self._client = client
        self._before_write = before_write
        self._memory = TopicMemory(settings_kept_s)
        self._ends = EndsTogether(partial(read_sources, client), poll_s)
        self._members = GroupMembers(partial(member_names, client))
        self._reading = threading.Lock()
        self._retention: tuple[float, int | None] | None = None
        self._cluster_id: tuple[float, str | None] | None = None

    def view(self, names: Iterable[str], *, fresh: bool = False) -> KafkaView:
        """Return what is there of these topics: known for up to a minute, their settings for longer, or as of now
        (`fresh`).

        What is missing or forbidden is always as of now. Raises `KafkaUnavailable`, `KafkaNotAuthenticated`,
        `KafkaNotAuthorized`, `TopicRejected`.
        """
        wanted = list(names)
        known = self._memory.known(wanted, time.monotonic()) if not fresh else None
        if known is not None:
            return KafkaView(known)
        with self._reading:  # whoever waits here finds what the one before has read
            now_s = time.monotonic()
            known, asked = Recall({}, wanted) if fresh else self._memory.recall(wanted, now_s)
            if not asked:
                return KafkaView(known)
            described = read_topics(self._client, asked)
            settings = {} if fresh else self._memory.settings_of(described.topics.values(), now_s)
            seen = read_settings(self._client, described, settings)
            self._memory.remember(seen, now_s, settings.keys())
        return KafkaView({**known, **seen.topics}, seen.missing, seen.forbidden).of(wanted)

    def offsets(self, names: Iterable[str], group_id: str | None = None) -> dict[str, dict[int, PartitionOffsets]]:
        """Offsets of all partitions of those of the topics that exist, with what the group has committed.

        A partition that has no leader is left out. Raises as `view` does.
        """
        topics = list(self.view(names).topics.values())
        offsets = read_offsets(self._client, topics)
        if group_id is None:
            return offsets
        return with_committed(offsets, read_committed(self._client, group_id, topics))

    def source(self, name: str) -> SourceEnds | None:
        """Return where a topic begins and ends, and up to where relays can read, as of some seconds ago at most.

        None where there is no such topic, or nothing answered. Raises as `view` does.
        """
        facts = self.view([name]).find(name)
        return self._ends.of(facts, time.monotonic) if facts is not None else None

    def offsets_at(self, name: str, times_ms: Iterable[int]) -> dict[int, dict[int, int | None]]:
        """Return by timestamp and partition the first offset of that time or later that relays can read; None at the
        end.

        Raises as `view` does.
        """
        times = list(times_ms)
        facts = self.view([name]).find(name) if times else None
        return {at_ms: read_offsets_at(self._client, facts, at_ms) for at_ms in times} if facts is not None else {}

    def perform(self, action: TopicAction) -> bool:
        """Do it; whether there was anything to do. To be repeated after any error.

        Raises `KafkaUnavailable` (it may have happened nevertheless), `KafkaNotAuthorized` naming the topic,
        `TopicRejected` with Kafka's own reason, and what `before_write` raises.
        """
        self._before_write()
        try:
            match action:
                case CreateTopic():
                    return create_topic(self._client, action)
                case GrowTopic():
                    return add_partitions(self._client, action)
                case SetConfig():
                    return set_config(self._client, action)
                case DeleteTopic():
                    return self._delete(action)
        finally:
            self._memory.forget(action.name, time.monotonic())

    def write(self, record: NewRecord) -> None:
        """Write a record to a topic. Raises as `perform` does; it may have been written nevertheless."""
        self._before_write()
        self._client.write(record)

    def delete_group(self, group_id: str) -> bool:
        """Delete a consumer group and its offsets; whether there was one.

        Raises `KafkaUnavailable` while it has members, and as `perform` does.
        """
        self._before_write()
        return delete_group(self._client, group_id)

    def remove_members(self, group_id: str, topic: str, names: Collection[str]) -> list[str]:
        """Take members whose processes are gone out of a group that reads a topic; return those that were in it.

        Raises as `perform` does.
        """
        self._before_write()
        return remove_members(self._client, group_id, topic, names)

    def committed(self, group_id: str, topic: str) -> dict[int, Committed]:
        """Return what a group has committed of a topic, by partition, with the relays' own text beside each offset.

        A group without members forgets it after the brokers' `offsets.retention.minutes`, a week by default.
        """
        committed = read_committed(self._client, group_id, self.view([topic]).topics.values())
        return {number: found for (_, number), found in committed.items()}

    def member_names(self, group_id: str, *, fresh: bool = False) -> Sequence[str]:
        """Return the own names of the members of a group, of those that have one: as of some seconds ago, or as of now
        (`fresh`).

        Raises `KafkaUnavailable`, `KafkaNotAuthenticated`, and `KafkaNotAuthorized`.
        """
        return self._members.of(group_id, time.monotonic(), fresh=fresh)

    def cluster_id(self, *, fresh: bool = False) -> str | None:
        """Return what the cluster calls itself, as of a minute ago at most, or as of now; None where it does not
        say.
        """
        known = self._cluster_id
        if fresh or known is None or time.monotonic() - known[0] >= KEPT_S:
            try:
                found = read_cluster_id(self._client)
            except OperatorError:
                # Without it, clusters are told apart by their servers.
                found = None
            known = self._cluster_id = (time.monotonic(), found)
        return known[1]

    def reach(self) -> None:
        """Ask the cluster who it is, unless it has told within a minute.

        Raises `KafkaUnavailable` and `KafkaNotAuthenticated`.
        """
        known = self._cluster_id
        if known is None or known[1] is None or time.monotonic() - known[0] >= KEPT_S:
            found = read_cluster_id(self._client)
            self._cluster_id = (time.monotonic(), found)

    def offsets_retention_ms(self) -> int | None:
        """The brokers' `offsets.retention.minutes`, as of an hour ago at most; None where it may not be read."""
        known = self._retention
        if known is None or time.monotonic() - known[0] >= RETENTION_KEPT_S:
            try:
                found = read_offsets_retention(self._client)
            except OperatorError:
                # It is for an advice only: whatever is wrong shows elsewhere.
                found = None
            known = self._retention = (time.monotonic(), found)
        return known[1]

    def restore_offsets(self, group_id: str, topic: str, offsets: Mapping[int, Committed]) -> frozenset[int]:
        """Commit again what was forgotten; nothing where there is something. Return the partitions.

        Raises `KafkaUnavailable` while the group has members, and as `perform` does.
        """
        known = self.committed(group_id, topic)
        forgotten = {one: found for one, found in offsets.items() if one not in known}
        self._commit(group_id, topic, forgotten)
        return frozenset(forgotten)

    def skip_to_end(self, group_id: str, topic: str) -> bool:
        """Commit the ends of a topic, so that nothing that is there now is delivered any more. Raises as above."""
        ends = read_offsets(self._client, self.view([topic], fresh=True).topics.values()).get(topic, {})
        wanted = {number: Committed(found.end) for number, found in ends.items()}
        known = self.committed(group_id, topic)
        return self._commit(group_id, topic, {one: end for one, end in wanted.items() if known.get(one) != end})

    def _commit(self, group_id: str, topic: str, offsets: Mapping[int, Committed]) -> bool:
        if not offsets:
            return False
        self._before_write()
        commit_offsets(self._client, group_id, topic, offsets)
        return True

    def _delete(self, action: DeleteTopic) -> bool:
        facts = self.view([action.name], fresh=True).find(action.name)
        if facts is None or action.topic_id not in (None, facts.topic_id):
            return False
        return delete_topic(self._client, action.name)
