"""Edge: from the configuration to bucket topics that are as they have to be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import bucket_count, bucket_names, ids_name, source_mark
from delaytopic_relay.backlog.kafka.log import KafkaBuckets
from delaytopic_relay.backlog.kafka.manager import BucketNames, BucketShelving
from delaytopic_relay.backlog.kafka.preflight import check_bucket_topics
from delaytopic_relay.backlog.kafka.rules import BucketRules
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.backlog.signing_keys import signer_of
from delaytopic_relay.engine.loop_events import Journal
from delaytopic_relay.engine.ports import Clock
from delaytopic_relay.errors import ConfigurationError, Unavailable
from delaytopic_relay.kafka.settings import Settings, bucket_reader_settings
from delaytopic_relay.kafka.topic_facts import TopicReader
from delaytopic_relay.kafka.topics import TopicFacts

SEGMENT_MARGIN_BYTES = 200
"""More than a batch, a record and a tag take beside the segment in them."""


class OpenBuckets(NamedTuple):
    """The reader of a DelayTopic's bucket topics; none of them takes a batch of more than `largest_batch_bytes`."""

    log: KafkaBuckets
    names: BucketNames
    rules: BucketRules
    largest_batch_bytes: int
    signer: SegmentSigner

    def shelving(self, clock: Clock, journal: Journal) -> BucketShelving:
        """As loop and takeover use them."""
        return BucketShelving(self.log, self.names, self.rules, clock, journal, self.signer)

    def close(self) -> None:
        """Give back connections."""
        self.log.close()


def open_buckets(config: RelayConfig, connection: Settings, relay: str) -> OpenBuckets:
    """Raises `Unavailable` for what may come right by itself, and `ConfigurationError`."""
    horizon_ms, max_delay_ms = config.limits.horizon.ms, config.schedule.max_delay.ms
    names = [*bucket_names(config.backend.id, horizon_ms, max_delay_ms), ids_name(config.backend.id)]
    reader = TopicReader(connection, names)
    found = _facts(reader, names)
    finding = check_bucket_topics(config, reader.read_anew(config.source.topic), found)
    if finding is not None:
        raise Unavailable(finding.text) if finding.waits else ConfigurationError(finding.text)
    largest_bytes = min(facts.largest_batch_bytes for facts in found.values() if facts is not None)
    mark, buckets = source_mark(config.source.topic), bucket_count(horizon_ms, max_delay_ms)
    signer = signer_of(config.backend)
    rules = BucketRules(horizon_ms, buckets, mark, largest_bytes - SEGMENT_MARGIN_BYTES, key=signer.mark)
    log = KafkaBuckets(bucket_reader_settings(connection, config.group_id, relay), BucketNames(config.backend.id))
    return OpenBuckets(log, BucketNames(config.backend.id), rules, largest_bytes, signer)


def _facts(reader: TopicReader, names: list[str]) -> dict[str, TopicFacts | None]:
    """Each topic takes two questions: all are asked at the same time."""
    with ThreadPoolExecutor(len(names)) as pool:
        return dict(zip(names, pool.map(reader.read_anew, names), strict=True))
