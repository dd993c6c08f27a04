"""The topics of the KafkaBuckets backend: how many there are, what they are called, and how they are kept. Pure.

They are named by the backend's id, as keys in Redis are: two DelayTopics on one source have topics of their own. What
a DelayTopic of the same name left behind on another source is told apart by a mark in every record (`source_mark`).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from delaytopic_api.values.topic_config import MOST_MESSAGE_BYTES

MARGIN_MS: Final = 7 * 86_400_000
"""Kept beyond the time at which a segment is read: that long relays may stand still."""
LARGEST_BATCH_BYTES: Final = 16 << 20
"""A segment may hold a record that came compressed: it is judged by its size in memory, as a broker compares what is
compressed, and how large that is nobody knows beforehand."""
SPARE_BUCKETS: Final = 1
"""Beyond those that the longest delay needs: it takes over a part of the farthest range when that is too full."""


class BucketTopic(NamedTuple):
    """One topic, with as many partitions as the source."""

    name: str
    config: dict[str, str]


def bucket_count(horizon_ms: int, max_delay_ms: int) -> int:
    """Bucket k takes what is due in at least horizon * 2^k; enough for the longest delay, at least one, and a spare."""
    return max(1, (max_delay_ms // horizon_ms).bit_length()) + SPARE_BUCKETS


def bucket_name(backend_id: str, number: int) -> str:
    """The name of one bucket's topic."""
    return f"{backend_id}.delay.{number}"


def bucket_names(backend_id: str, horizon_ms: int, max_delay_ms: int) -> list[str]:
    """The names of the bucket topics, the nearest first."""
    return [bucket_name(backend_id, number) for number in range(bucket_count(horizon_ms, max_delay_ms))]


def ids_name(backend_id: str) -> str:
    """The name of the compacted topic that holds what is known of ids."""
    return f"{backend_id}.delay.ids"


def unified(topic: str) -> str:
    """Return a topic's name as Kafka compares it with others: it refuses a topic that differs from one that is there
    in dots and underscores only, as the names of their metrics would be the same.
    """
    return topic.replace(".", "_")


def source_mark(source: str, topic_mark: str = "") -> int:
    """Return the mark of a source topic: 64 bits, the same in every version.

    Its upper half is that of the name. `topic_mark` is that of the topic's id, so that a topic which was made anew
    under this name has another lower half; "" where brokers tell no id.
    """
    halves = (blake2b(text.encode(), digest_size=4).digest() for text in (source, topic_mark))
    return int.from_bytes(b"".join(halves), "big")


def same_name(one: int, other: int) -> bool:
    """Tell whether the marks of two source topics are of the same name."""
    return one >> 32 == other >> 32


def bucket_topics(
    backend_id: str, horizon_ms: int, max_delay_ms: int, source_batch_bytes: int = 0
) -> list[BucketTopic]:
    """The topics to create. A segment of bucket k waits for horizon * 2^k; retention is twice that, and a margin.

    `source_batch_bytes` is the source's `max.message.bytes`: what the source takes has to fit here, too.
    """
    largest = min(MOST_MESSAGE_BYTES, max(LARGEST_BATCH_BYTES, 2 * source_batch_bytes))
    size = {"max.message.bytes": str(largest)}
    topics = [
        BucketTopic(
            name,
            {"cleanup.policy": "delete", "retention.ms": str((horizon_ms << number + 1) + MARGIN_MS), **size},
        )
        for number, name in enumerate(bucket_names(backend_id, horizon_ms, max_delay_ms))
    ]
    # Append times of what a relay writes there are its second clock; those of the other topics matter to nobody.
    ids = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", **size}
    return [*topics, BucketTopic(ids_name(backend_id), ids)]
