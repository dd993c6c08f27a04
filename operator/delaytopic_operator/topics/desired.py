"""The desired state of each topic of a DelayTopic: written, derived, or a default. Pure.

What the author wrote holds exactly, for as long as it is written. A default of the class or of this file counts when
the topic is made; of a topic that is there, a default is at most a lower bound, so that nobody's records are removed
and nobody's partitions grow because a default changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Protocol

from delaytopic_api import Settings
from delaytopic_api.documents import DelayTopicSpec, TopicSettings, TopicSpec
from delaytopic_api.relay import RelayLimits
from delaytopic_api.values import (
    MOST_MESSAGE_BYTES,
    BackendType,
    BucketTopic,
    Management,
    Partitioning,
    TopicProvisioning,
    bucket_topics,
)
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.declared_rules import NO_NEEDS, SourceNeeds
from delaytopic_operator.model.kafka_view import TopicFacts
from delaytopic_operator.model.record import Role

LOG_APPEND_TIME: Final = "LogAppendTime"
DEFAULT_MAX_MESSAGE_BYTES: Final = 1_048_588
DEAD_LETTER_HEADROOM_BYTES: Final = 64 * 1024
"""The room for the headers that a dead letter has beside those of the record."""
OF_SOURCE: Final = {
    "cleanup.policy": "delete",
    "message.timestamp.type": LOG_APPEND_TIME,
    "retention.bytes": "-1",
}
"""The settings of a source that the operator made: nothing pending is compacted away or makes room for what is newer,
and the time in each record is the broker's, which the audit and a fixed delay count from."""
OF_COMPACTED_SOURCE: Final = {**OF_SOURCE, "cleanup.policy": "compact", "retention.ms": "-1"}
"""The settings of a source whose records are named by their keys: of each name the latest is kept until its
tombstone."""
OF_TARGET: Final = {"message.timestamp.type": LOG_APPEND_TIME}
"""The settings of a target that the operator made: the audit takes the broker's time as the time of delivery."""
OF_OUTCOMES: Final = {"cleanup.policy": "delete", "message.timestamp.type": LOG_APPEND_TIME}
"""The settings of a topic of outcomes: several records of one id are of use beside each other, until retention removes
them."""


class Bucket(Protocol):
    """A topic of the KafkaBuckets backend, as `delaytopic_api` describes it."""

    @property
    def name(self) -> str:
        """The topic's name."""

    @property
    def config(self) -> Mapping[str, str]:
        """Its settings."""


@dataclass(frozen=True)
class DesiredTopic:
    """One topic as it should be."""

    name: str
    management: Management
    role: Role | None
    """None for a bucket topic."""
    partitions: int | None = None
    """Applied when it is made; None for the broker's default."""
    least_partitions: int | None = None
    """It is grown to."""
    written_partitions: int | None = None
    replication_factor: int | None = None
    """Applied when it is made; None for the broker's default."""
    written_replication_factor: int | None = None
    created_config: Mapping[str, str] = field(default_factory=dict)
    """The settings that the operator sets when it makes the topic, and keeps if it made it."""
    exact_config: Mapping[str, str] = field(default_factory=dict)
    """The settings that are written: kept on every topic managed by the operator."""
    waits_for_source: bool = False
    """True if it cannot be made before it is known how many partitions the source has."""
    least_config: Mapping[str, int] = field(default_factory=dict)
    """Lower bounds, kept on every topic managed by the operator; -1 is without bound."""
    withheld: tuple[str, ...] = ()
    """Sentences about settings that stay as they are for a while, although others are asked for."""

    @property
    def what(self) -> str:
        """Return how sentences call it."""
        kind = {
            Role.SOURCE: "source",
            Role.TARGET: "target",
            Role.DEAD_LETTER: "dead-letter",
            Role.HISTORY: "history",
            Role.OUTCOMES: "outcomes",
        }
        return f"the {kind[self.role] if self.role else 'bucket'} topic {self.name}"

    @property
    def field(self) -> str:
        """The field of the document that describes it."""
        return f"spec.{self.role.value}" if self.role else "spec.backend"

    @property
    def new_config(self) -> dict[str, str]:
        """All settings of a topic that is made."""
        least = {name: str(value) for name, value in self.least_config.items()}
        return {**self.created_config, **least, **self.exact_config}


def desired_topics(
    settings: Settings,
    spec: DelayTopicSpec,
    source: TopicFacts | None,
    buckets: Sequence[Bucket],
    needs: SourceNeeds = NO_NEEDS,
) -> list[DesiredTopic]:
    """All topics, in the order in which they are made: the source last, so that all is there when records come.

    `needs` are those of records that wait by former rules.
    """
    of_source = _source(settings, spec.source, source)
    if source is not None and of_source.management is not Management.OBSERVE:
        of_source = withholding(of_source, source.config or {}, needs)
    partitions = _partitions_of(of_source, source)
    copies = source.replication_factor if source else settings.source.replication_factor
    kept = _managed_by(settings, Management.ADOPT)
    return [
        *(_bucket(bucket, kept, partitions, copies) for bucket in buckets),
        _dead_letter(settings, spec.dead_letter, source),
        *_history(settings, spec.history),
        *_outcomes(settings, spec.outcomes, partitions),
        _target(settings, spec.target, partitions),
        of_source,
    ]


def _source(settings: Settings, spec: TopicSpec, facts: TopicFacts | None) -> DesiredTopic:
    written_retention = spec.retention is not None or "retention.ms" in spec.config
    wanted = settings.source.retention
    least = {"retention.ms": wanted.ms} if wanted is not None and not written_retention else {}
    created = OF_COMPACTED_SOURCE if settings.schedule.capabilities.tombstones else OF_SOURCE
    return _desired(settings, Role.SOURCE, settings.source, spec, created, least)


def withholding(source: DesiredTopic, live: Mapping[str, str], needs: SourceNeeds) -> DesiredTopic:
    """The source without changes that would remove records which still wait by former rules."""
    end = f"until {instant(needs.until_ms)}" if needs.until_ms is not None else "for a while"
    why = f"{end}, as records wait that were produced by the rules of before the edit"
    created, exact, withheld = dict(source.created_config), dict(source.exact_config), []
    policy = exact.get("cleanup.policy", created.get("cleanup.policy", ""))
    if needs.by_offset and "compact" in policy and "compact" not in live.get("cleanup.policy", ""):
        created.pop("cleanup.policy", None)
        exact.pop("cleanup.policy", None)
        withheld.append(f"{source.what} is not compacted {why}")
    written, kept = _milliseconds(exact.get("retention.ms")), _milliseconds(live.get("retention.ms"))
    if written is not None and kept is not None and written < min(kept, needs.retention_ms):
        held_ms = min(kept, needs.retention_ms)
        exact["retention.ms"] = str(held_ms)
        withheld.append(f"{source.what} has retention.ms={held_ms} and not {written} {why}")
    least = {
        name: max(value, needs.retention_ms) if value >= 0 else value for name, value in source.least_config.items()
    }
    return replace(source, created_config=created, exact_config=exact, least_config=least, withheld=tuple(withheld))


def _milliseconds(text: str | None) -> int | float | None:
    """Return a retention as a number, without bound for -1; None where there is none."""
    if text is None or not text.removeprefix("-").isdecimal():
        return None
    return inf if int(text) < 0 else int(text)


def _target(settings: Settings, spec: TopicSpec, source_count: int | None) -> DesiredTopic:
    desired = _desired(settings, Role.TARGET, settings.target, spec, OF_TARGET, {})
    if settings.partitioning is not Partitioning.SAME_PARTITION:
        return desired
    if source_count is None:
        return replace(desired, waits_for_source=desired.partitions is None)
    return _with_at_least(desired, source_count)


def _dead_letter(settings: Settings, spec: TopicSpec | None, source: TopicFacts | None) -> DesiredTopic:
    written = spec or TopicSpec(topic=settings.dead_letter.topic)
    room = min(MOST_MESSAGE_BYTES, _largest_record(settings.source.config, source) + DEAD_LETTER_HEADROOM_BYTES)
    least = {} if "max.message.bytes" in written.config else {"max.message.bytes": room}
    return _desired(settings, Role.DEAD_LETTER, settings.dead_letter, written, {}, least)


def _history(settings: Settings, spec: TopicSpec | None) -> list[DesiredTopic]:
    if settings.history is None:
        return []
    written = spec or TopicSpec(topic=settings.history.topic)
    return [_desired(settings, Role.HISTORY, settings.history, written, {}, {})]


def _outcomes(settings: Settings, spec: TopicSpec | None, source_count: int | None) -> list[DesiredTopic]:
    """An outcome is in the partition that has the number of the source's."""
    if settings.outcomes is None or spec is None:
        return []
    desired = _desired(settings, Role.OUTCOMES, settings.outcomes, spec, OF_OUTCOMES, {})
    if source_count is None:
        return [replace(desired, waits_for_source=desired.partitions is None)]
    return [_with_at_least(desired, source_count)]


def _bucket(bucket: Bucket, management: Management, partitions: int | None, copies: int | None) -> DesiredTopic:
    return DesiredTopic(
        bucket.name,
        management,
        role=None,
        partitions=partitions,
        least_partitions=partitions,
        replication_factor=copies,
        exact_config=dict(bucket.config),
        waits_for_source=partitions is None,
    )


def _desired(
    settings: Settings,
    role: Role,
    topic: TopicSettings,
    spec: TopicSpec,
    created: Mapping[str, str],
    least: Mapping[str, int],
) -> DesiredTopic:
    written = {"retention.ms": str(spec.retention.ms)} if spec.retention is not None else {}
    return DesiredTopic(
        topic.topic,
        _managed_by(settings, topic.management),
        role,
        partitions=topic.partitions,
        least_partitions=spec.partitions,
        written_partitions=spec.partitions,
        replication_factor=topic.replication_factor,
        written_replication_factor=spec.replication_factor,
        created_config={name: value for name, value in created.items() if name not in spec.config},
        exact_config={**written, **spec.config},
        least_config=least,
    )


def _managed_by(settings: Settings, management: Management) -> Management:
    return Management.OBSERVE if settings.topic_provisioning is TopicProvisioning.NONE else management


def _with_at_least(desired: DesiredTopic, partitions: int) -> DesiredTopic:
    """SamePartition: a record of the last source partition must have somewhere to go."""
    if desired.written_partitions is not None:
        return desired
    return replace(desired, partitions=_larger(desired.partitions, partitions), least_partitions=partitions)


def _larger(one: int | None, other: int) -> int:
    return other if one is None else max(one, other)


def _partitions_of(desired: DesiredTopic, facts: TopicFacts | None) -> int | None:
    if facts is None:
        return desired.partitions
    grows = desired.management is not Management.OBSERVE
    return max(facts.partitions, desired.least_partitions or 0) if grows else facts.partitions


def _largest_record(written: Mapping[str, str], source: TopicFacts | None) -> int:
    values = (written.get("max.message.bytes"), ((source.config if source else None) or {}).get("max.message.bytes"))
    known = [int(value) for value in values if value is not None and value.isdecimal()]
    return max(known, default=DEFAULT_MAX_MESSAGE_BYTES)


def needed_buckets(settings: Settings, source: TopicFacts | None = None) -> list[BucketTopic]:
    """None with another backend. With a fixed delay they are needed while records wait that other rules read.

    `source` is the source topic as it is: how large its records may be. The names do not depend on it.
    """
    if settings.backend.type is not BackendType.KAFKA_BUCKETS:
        return []
    config = (source.config if source is not None else None) or settings.source.config
    largest = config.get("max.message.bytes", "")
    size = {"source_batch_bytes": int(largest)} if largest.isdecimal() else {}
    horizon_ms, max_delay_ms = RelayLimits().horizon.ms, settings.schedule.max_delay.ms
    return bucket_topics(settings.backend.id, horizon_ms, max_delay_ms, **size)


def partition_count(settings: Settings) -> int:
    """Count the partitions of all topics that are made for a DelayTopic; one where nobody says how many."""
    buckets = len(needed_buckets(settings)) * (settings.source.partitions or 1)
    topics = (settings.source, settings.target, settings.dead_letter, settings.history, settings.outcomes)
    made = (topic for topic in topics if topic is not None and topic.management is not Management.OBSERVE)
    return buckets + sum(topic.partitions or 1 for topic in made)
