"""The topics that the KafkaBuckets backend of a DelayTopic needs. Pure."""

from __future__ import annotations

from delaytopic_api import Settings
from delaytopic_api.relay import RelayLimits
from delaytopic_api.values import BackendType, BucketTopic, Management, bucket_topics
from delaytopic_operator.model.kafka_view import TopicFacts


def needed_buckets(settings: Settings, source: TopicFacts | None = None) -> list[BucketTopic]:
    """None with another backend, and none with a fixed delay, which needs no backlog.

    `source` is the source topic as it is: how large its records may be. The names do not depend on it.
    """
    if settings.backend.type is not BackendType.KAFKA_BUCKETS or settings.schedule.delay is not None:
        return []
    config = (source.config if source is not None else None) or settings.source.config
    largest = config.get("max.message.bytes", "")
    size = {"source_batch_bytes": int(largest)} if largest.isdecimal() else {}
    horizon_ms, max_delay_ms = RelayLimits().horizon.ms, settings.schedule.max_delay.ms
    return bucket_topics(settings.backend.id, horizon_ms, max_delay_ms, **size)


def partition_count(settings: Settings) -> int:
    """Count the partitions of all topics that are made for a DelayTopic; one where nobody says how many."""
    buckets = len(needed_buckets(settings)) * (settings.source.partitions or 1)
    topics = (settings.source, settings.target, settings.dead_letter)
    return buckets + sum(topic.partitions or 1 for topic in topics if topic.management is not Management.OBSERVE)
