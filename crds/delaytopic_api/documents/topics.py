"""The three topics of a DelayTopic: source, target and dead letter."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from delaytopic_api.documents.model import Model, require
from delaytopic_api.values.choices import Compression, Management, Partitioning
from delaytopic_api.values.duration import Duration, between
from delaytopic_api.values.lists import AS_SET
from delaytopic_api.values.names import PartitionCount, ReplicationFactor, TopicGlob, TopicName
from delaytopic_api.values.topic_config import objections_to_config

LONGEST_RETENTION = "99999h"

TopicConfig = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=100)]


class TopicSpec(Model):
    """A topic, and who looks after it."""

    topic: TopicName
    """The topic's name, such as `shop.reminders`; it cannot be changed later."""
    management: Management = Management.CREATE
    """Create: created, and a topic that is there already is refused. Adopt: one that is there is taken over.
    Observe: never changed."""
    partitions: PartitionCount | None = None
    """The number of partitions, such as 12, which can only grow. Absent: the class's default, else the broker's."""
    replication_factor: ReplicationFactor | None = None
    """The number of copies of each partition, such as 3. Absent: the class's default, else the broker's."""
    retention: Annotated[Duration, between("1s", LONGEST_RETENTION)] | None = None
    """The time that records are kept, such as 168h. Absent: for the source maxDelay and a week, so that a lost backend
    can be rebuilt; for others the broker's default."""
    config: TopicConfig = {}
    """The other settings of the topic, such as `compression.type: zstd`. Only those listed are written and
    corrected."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require(
            (
                self.retention is None or "retention.ms" not in self.config,
                'config["retention.ms"]',
                "is set twice; keep either this or retention",
            ),
            *((False, f'config["{name}"]', objection) for name, objection in objections_to_config(self.config)),
        )
        return self


class SourceSpec(TopicSpec):
    """The topic that producers write to: the truth about everything that is pending."""

    @property
    def is_compacted(self) -> bool | None:
        """True if it is to be compacted; None where nothing is written."""
        policy = self.config.get("cleanup.policy")
        return None if policy is None else "compact" in policy


class TargetSpec(TopicSpec):
    """The topic that records appear on."""

    allowed_topics: Annotated[list[TopicGlob], Field(max_length=100), AS_SET] = []
    """The globs of further topics that the header deliver-to may name, such as `shop.*`."""
    partitioning: Partitioning = Partitioning.BY_KEY
    """ByKey: as Kafka's producers do. SamePartition: the source record's number. RoundRobin: each in turn."""
    compression: Compression = Compression.AUTO
    """The compression of what is delivered. Auto: that of the source, where its compression.type names a codec; else
    none until a record is too large for its topic so, and Zstd from then on. None: never. Others: always."""
