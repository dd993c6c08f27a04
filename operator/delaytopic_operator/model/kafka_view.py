"""The topics of a Kafka cluster, as far as they are known. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

UNLIMITED_MS = -1
"""retention.ms of a topic whose records are kept for ever."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic that exists."""

    name: str
    topic_id: str
    """Kafka's id: a topic that is made anew under the same name has another."""
    partitions: int
    replication_factor: int
    """The copies of the partition that has the fewest."""
    config: Mapping[str, str] | None
    """Every setting in force, the broker's defaults among them; None where the user may not read them."""
    own_config: frozenset[str] = frozenset()
    """The settings that are set on the topic itself."""


@dataclass(frozen=True, slots=True)
class KafkaView:
    """Some topics of one cluster at one time; every topic that was asked for is in exactly one of the three."""

    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    """They do not exist."""
    forbidden: frozenset[str] = frozenset()
    """The user may not describe them: they may exist or not."""

    def of(self, topics: Iterable[str]) -> KafkaView:
        """These topics only."""
        names = frozenset(topics)
        there = {name: facts for name, facts in self.topics.items() if name in names}
        return KafkaView(there, self.missing & names, self.forbidden & names)

    def find(self, topic: str) -> TopicFacts | None:
        """The topic; None if it is missing or forbidden. Raises KeyError for one that was not asked for."""
        if topic in self.missing or topic in self.forbidden:
            return None
        return self.topics[topic]


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """The offsets of one partition."""

    begin: int
    """The offset of the first record that is still there."""
    end: int
    """The offset of the next record."""
    committed: int | None = None
    """The offset of the group that was asked about; None if it has committed nothing."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit of a relay for one partition: the offset, and its own text beside it."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to write to a topic."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    timestamp_ms: int


def hold_nothing(offsets: Mapping[str, Mapping[int, PartitionOffsets]], ids: str = "") -> frozenset[str]:
    """The topics, of those whose offsets were read, that provably hold no record.

    The topic of `ids`, in which relays ask for the time, too, is of no more use once all others hold nothing.
    """
    empty = frozenset(
        topic
        for topic, partitions in offsets.items()
        if partitions and all(partition.begin == partition.end for partition in partitions.values())
    )
    return empty | {ids} if ids in offsets and offsets.keys() - {ids} <= empty else empty
