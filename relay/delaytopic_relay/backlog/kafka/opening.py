"""Edge: from the configuration to bucket topics that are as they have to be."""

from __future__ import annotations

from collections.abc import Mapping

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import bucket_count, bucket_names, ids_name, source_mark
from delaytopic_relay.backlog.kafka.backlog import BucketBacklog
from delaytopic_relay.backlog.kafka.bucket import BucketsCopy
from delaytopic_relay.backlog.kafka.log import KafkaBuckets
from delaytopic_relay.backlog.kafka.preflight import check_bucket_topics
from delaytopic_relay.backlog.kafka.ranges import SEGMENT_MARGIN_BYTES, BucketRules
from delaytopic_relay.backlog.kafka.reader import BucketPendingReader
from delaytopic_relay.backlog.kafka.time import ProbeTime
from delaytopic_relay.backlog.kafka.topics import BucketNames
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.errors import ConfigurationError, Unavailable
from delaytopic_relay.kafka.settings import Settings, bucket_reader_settings, probe_settings
from delaytopic_relay.kafka.topics import TopicReader
from delaytopic_relay.ports import Clock, LoopEvents

READER = "delaytopic-pending"
"""The name of the pending page's reader in the broker's logs and quotas."""


def open_buckets(
    config: RelayConfig,
    reader: TopicReader,
    relay: str,
    clock: Clock,
    events: LoopEvents,
    signer: SegmentSigner,
    topic_mark: str,
) -> BucketBacklog:
    """Open bucket topics; raises `Unavailable` for what may come right by itself, and `ConfigurationError`."""
    horizon_ms, max_delay_ms = config.limits.horizon.ms, config.schedule.max_delay.ms
    names = [*bucket_names(config.backend.id, horizon_ms, max_delay_ms), ids_name(config.backend.id)]
    found = reader.read_anew(names)
    finding = check_bucket_topics(config, reader.read(config.source.topic), found)
    if finding is not None:
        raise Unavailable(finding.text) if finding.waits else ConfigurationError(finding.text)
    largest_bytes = min(facts.largest_batch_bytes for facts in found.values() if facts is not None)
    source_id, buckets = source_mark(config.source.topic, topic_mark), bucket_count(horizon_ms, max_delay_ms)
    rules = BucketRules(horizon_ms, buckets, source_id, largest_bytes - SEGMENT_MARGIN_BYTES, key=signer.key_id)
    topics = BucketNames(config.backend.id)

    def open_log(client_id: str) -> KafkaBuckets:
        return KafkaBuckets(bucket_reader_settings(reader.connection, config.group_id, client_id), topics)

    def open_reader(states: Mapping[int, BucketsCopy]) -> BucketPendingReader:
        return BucketPendingReader(open_log(READER), states, source_id, signer)

    return BucketBacklog(open_log(relay), topics, rules, clock, events, open_reader, signer)


def broker_time(config: RelayConfig, connection: Settings, relay: str) -> ProbeTime:
    """Return the clock of the broker that leads the topic of ids."""
    return ProbeTime(probe_settings(connection, relay), ids_name(config.backend.id))
