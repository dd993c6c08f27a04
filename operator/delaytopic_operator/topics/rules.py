"""The corrections of a topic that is there, and the problems that only a person may mend. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from delaytopic_api import Settings
from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_api.policy import RETENTION_MARGIN
from delaytopic_api.values import MOST_PARTITIONS, Duration, Partitioning
from delaytopic_operator.errors import KafkaUnavailable, OperatorError
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from delaytopic_operator.model.kafka_view import UNLIMITED_MS, TopicFacts
from delaytopic_operator.model.record import Role
from delaytopic_operator.topics.actions import GrowTopic, SetConfig
from delaytopic_operator.topics.desired import LOG_APPEND_TIME, DesiredTopic
from delaytopic_operator.topics.ownership import TopicProblem

AS_SPECIFIED = "AsSpecified"
ALL_THERE = "source, target and dead-letter topic are there"


@dataclass(frozen=True, slots=True)
class Progress:
    """The steps that a reconciliation is about to take."""

    made: tuple[str, ...] = ()
    """Source, target or dead-letter topics that are made now."""
    buckets: tuple[str, ...] = ()
    """Bucket topics that are made now."""
    changed: tuple[str, ...] = ()
    """Topics that are changed now."""

    @property
    def sentence(self) -> str | None:
        """Return what is being done; None for nothing."""
        made = (*self.made, *self.buckets)
        parts = [f"creating {', '.join(made)}"] if made else []
        parts += [f"changing {', '.join(self.changed)}"] if self.changed else []
        return ", ".join(parts) or None


def topics_condition(problems: Sequence[TopicProblem], advice: Sequence[str], progress: Progress) -> Condition:
    """TopicsReady: the gravest problem gives the reason, and every one its sentence."""
    if problems:
        gravest_first = sorted(problems, key=lambda problem: not problem.stalled)
        return _topics(FALSE, gravest_first[0].reason, [problem.sentence for problem in gravest_first])
    if progress.made:
        return _topics(FALSE, "TopicMissing", [f"creating {', '.join(progress.made)}"])
    return _topics(TRUE, AS_SPECIFIED, [ALL_THERE, *advice])


def failed_condition(error: OperatorError) -> Condition:
    """TopicsReady when Kafka could not be asked, or did not do what was planned."""
    status = UNKNOWN if isinstance(error, KafkaUnavailable) else FALSE
    return Condition(ConditionType.TOPICS_READY, status, error.reason, str(error))


def backend_conditions(
    settings: Settings, source_config: Mapping[str, str] | None, buckets: Sequence[TopicProblem], absent: Sequence[str]
) -> Iterator[Condition]:
    """Return what topics have to say about BackendReady, the worst first.

    `source_config` is None while it is not known. `buckets` are problems of bucket topics, `absent` those of them that
    are being made.
    """
    worst: list[Condition] = []
    others: list[Condition] = []
    if buckets:
        worst.append(_backend(FALSE, "BucketTopicsMissing", "; ".join(problem.sentence for problem in buckets)))
    elif absent:
        worst.append(_backend(FALSE, "BucketTopicsMissing", f"creating {', '.join(absent)}"))
    for condition in _retention(settings, source_config or {}):
        (worst if condition.status is FALSE else others).append(condition)
    yield from [*worst, *others]


def _retention(settings: Settings, config: Mapping[str, str]) -> Iterator[Condition]:
    topic, max_delay = settings.source.topic, settings.schedule.max_delay
    kept = kept_ms(config)
    if kept is not None and kept < max_delay.ms:
        yield _backend(
            FALSE,
            "RetentionTooShort",
            f"the source topic {topic} keeps records for {_duration(kept)}, and they may wait for {max_delay}: some "
            f"would be gone before they are due, or could not be found again after a loss of the backend; set its "
            f"retention.ms to {max_delay.ms + RETENTION_MARGIN.ms} or more, or lower spec.schedule.maxDelay",
        )
    elif kept is not None and kept < max_delay.ms + RETENTION_MARGIN.ms and settings.source.retention is not None:
        yield _backend(
            TRUE,
            "RetentionTooShort",
            f"the source topic {topic} keeps records for {_duration(kept)}, hardly longer than they may wait "
            f"({max_delay}): a lost backend must be noticed and mended before; {RETENTION_MARGIN} more are safe",
        )
    size = config.get("retention.bytes", "-1")
    if size != "-1" and kept_by_time(config):
        yield _backend(
            TRUE,
            "RetentionBySize",
            f"the source topic {topic} has retention.bytes={size}: under load, records may be removed that are still "
            "pending; set it to -1",
        )


def kept_by_time(config: Mapping[str, str]) -> bool:
    """Return whether old records are removed at all."""
    return "delete" in config.get("cleanup.policy", "delete")


def _duration(ms: int) -> str:
    return str(Duration.of_ms(ms)) if ms < 100_000 * 3_600_000 else f"{ms} ms"


def _topics(status: ConditionStatus, reason: str, sentences: Sequence[str]) -> Condition:
    return Condition(ConditionType.TOPICS_READY, status, reason, "; ".join(sentences))


def _backend(status: ConditionStatus, reason: str, sentence: str) -> Condition:
    return Condition(ConditionType.BACKEND_READY, status, reason, sentence)


SAFE_COPIES: Final = 3
"""The number of copies from which on two of them can be asked for without standing still when one is away."""
SAFE_IN_SYNC: Final = 2


class Corrected(NamedTuple):
    """A topic as it will be when its changes are done."""

    desired: DesiredTopic
    partitions: int
    replication_factor: int
    config: Mapping[str, str] | None
    """None where it may not be read."""


def growth(desired: DesiredTopic, facts: TopicFacts) -> GrowTopic | None:
    """Partitions to add."""
    least = desired.least_partitions or 0
    return GrowTopic(desired.name, least, facts.partitions) if least > facts.partitions else None


def corrections(desired: DesiredTopic, facts: TopicFacts, *, created: bool) -> SetConfig | None:
    """Settings to set again: those that are written, lower bounds, and of a topic that the operator made its own."""
    if facts.config is None:
        return None
    wanted = {**(desired.created_config if created else {}), **desired.exact_config}
    changed = {name: value for name, value in wanted.items() if _differs(facts.config.get(name), value)}
    changed |= {
        name: str(least)
        for name, least in desired.least_config.items()
        if name not in wanted and _is_below(facts.config.get(name), least)
    }
    if not changed:
        return None
    return SetConfig(desired.name, changed, {name: facts.config.get(name) for name in changed})


def managed_problems(desired: DesiredTopic, facts: TopicFacts) -> Iterator[TopicProblem]:
    """Return what is written of a topic managed by the operator, and cannot be done."""
    written, copies = desired.written_partitions, desired.written_replication_factor
    if written is not None and written < facts.partitions:
        yield TopicProblem(
            "PartitionDecrease",
            f"{desired.what} has {facts.partitions} partitions, and Kafka cannot take any away: set "
            f"{desired.field}.partitions to {facts.partitions} or more",
        )
    if copies is not None and copies != facts.replication_factor:
        yield TopicProblem(
            "ReplicationFactorChange",
            f"{desired.what} has {facts.replication_factor} copies, {desired.field}.replicationFactor is {copies}: "
            f"reassign its partitions with Kafka's own tools, or set it to {facts.replication_factor}",
        )
    if facts.config is None:
        yield TopicProblem(
            "AuthorizationFailed", f"{_unreadable(desired)}, and correct them (AlterConfigs)", stalled=False
        )


def problems(settings: Settings, topic: Corrected) -> Iterator[TopicProblem]:
    """Return what keeps a topic from doing its part, whoever looks after it."""
    config, desired = topic.config or {}, topic.desired
    if desired.role is Role.SOURCE and topic.partitions > MOST_PARTITIONS:
        yield TopicProblem(
            "TooManyPartitions",
            f"{desired.what} has {topic.partitions} partitions: relays of one DelayTopic take {MOST_PARTITIONS} at "
            f"most, of which the operator can hear; name another topic in {desired.field}.topic, and make several "
            "DelayTopics where one is not enough",
        )
    by_offset = desired.role is Role.SOURCE and not settings.schedule.capabilities.tombstones
    if by_offset and "compact" in config.get("cleanup.policy", ""):
        yield TopicProblem(
            "CompactedSource",
            f"{desired.what} has cleanup.policy={config['cleanup.policy']}: compaction removes records that are still "
            f"to be delivered; {_listing(desired, 'cleanup.policy', 'delete')}",
        )
    fixed = settings.schedule.fixed_delay is not None
    if desired.role is Role.SOURCE and fixed and not _by_brokers_time(config, topic.config is None):
        yield TopicProblem(
            "TimestampType",
            f"{desired.what} has message.timestamp.type={config['message.timestamp.type']}: spec.schedule.fixedDelay "
            f"needs {LOG_APPEND_TIME}, so that source order is due order; "
            f"{_listing(desired, 'message.timestamp.type', LOG_APPEND_TIME)}",
        )
    in_sync = _number(config.get("min.insync.replicas"))
    if in_sync is not None and in_sync > topic.replication_factor:
        yield TopicProblem(
            "TooFewCopies",
            f"{desired.what} has {topic.replication_factor} copies and min.insync.replicas={in_sync}: nothing can be "
            "written to it; lower the setting, or add copies",
        )


def advice(topic: Corrected) -> Iterator[str]:
    """Return what works and could be better."""
    desired, config = topic.desired, topic.config
    yield from desired.withheld
    if config is None:
        yield _unreadable(desired)
        return
    if desired.role in (Role.SOURCE, Role.TARGET) and not _by_brokers_time(config, unknown=False):
        yield (
            f"{desired.what} has message.timestamp.type={config['message.timestamp.type']}: the audit needs "
            f"{LOG_APPEND_TIME} to measure lateness by the broker's clock"
        )
    in_sync = _number(config.get("min.insync.replicas"))
    if in_sync is not None and in_sync < SAFE_IN_SYNC and topic.replication_factor >= SAFE_COPIES:
        yield (
            f"{desired.what} has min.insync.replicas={in_sync}: a record is acknowledged that only one broker has; "
            f"{_listing(desired, 'min.insync.replicas', '2')}"
        )


def pair_problems(settings: Settings, source: Corrected, target: Corrected) -> Iterator[TopicProblem]:
    """Return what source and target have to have in common."""
    if settings.partitioning is Partitioning.SAME_PARTITION and target.partitions < source.partitions:
        yield TopicProblem(
            "TooFewPartitions",
            f"{target.desired.what} has {target.partitions} partitions, {source.desired.what} {source.partitions}: "
            "partitioning SamePartition needs as many; grow it, or use ByKey",
        )


def kept_ms(config: Mapping[str, str]) -> int | None:
    """Return for how long a topic keeps its records; None for ever."""
    if "delete" not in config.get("cleanup.policy", "delete"):
        return None
    retention = _number(config.get("retention.ms"))
    return None if retention is None or retention == UNLIMITED_MS else retention


def _listing(desired: DesiredTopic, name: str, value: str) -> str:
    return f'alter the topic, or let the operator do it with {desired.field}.config: {{{name}: "{value}"}}'


def _unreadable(desired: DesiredTopic) -> str:
    return f"the operator's Kafka user may not read the settings of {desired.what}: grant it DescribeConfigs"


def _by_brokers_time(config: Mapping[str, str], unknown: bool) -> bool:
    return unknown or config.get("message.timestamp.type", LOG_APPEND_TIME) == LOG_APPEND_TIME


def _differs(found: str | None, wanted: str) -> bool:
    if found is None:
        return True
    numbers = _number(found), _number(wanted)
    if None not in numbers:
        return numbers[0] != numbers[1]
    return _parts(found) != _parts(wanted)


def _parts(value: str) -> list[str]:
    """A list setting such as cleanup.policy means the same in any order."""
    return sorted(part.strip() for part in value.split(","))


def _is_below(found: str | None, least: int) -> bool:
    value = _number(found)
    if value is None:
        return True
    return value != UNLIMITED_MS and (least == UNLIMITED_MS or value < least)


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
