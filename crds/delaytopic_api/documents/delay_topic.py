"""DelayTopic, the app team's document: records produced to one topic appear on another at their own time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from delaytopic_api.documents.connection import KafkaConnection, RedisConnection, SigningKeySecret
from delaytopic_api.documents.metadata import ApiVersion, NamespacedMetadata
from delaytopic_api.documents.model import Model, at_most_one, require
from delaytopic_api.documents.relays import AutoscalingSpec, RelaySpec
from delaytopic_api.documents.status import DelayTopicStatus
from delaytopic_api.documents.topics import SourceSpec, TargetSpec, TopicSpec
from delaytopic_api.values.bucket_topics import unified
from delaytopic_api.values.choices import (
    CAPABILITIES,
    BackendType,
    Calendar,
    CesiumNumbers,
    DeletionPolicy,
    Dialect,
    Guarantee,
    Ids,
    OnBeyondMaxDelay,
    OnMalformed,
    Provenance,
    Suspend,
)
from delaytopic_api.values.duration import Duration, between
from delaytopic_api.values.names import ClassName
from delaytopic_api.values.percent import Percent
from delaytopic_api.values.time_zone import TimeZone
from delaytopic_api.values.whole_minute import WholeMinute

LONGEST_DELAY = "87600h"

TIMELY: Final = "Timely"
"""The name of the objective of `slo.lateness`, and the beginning of those of `slo.thresholds`."""
MOST_THRESHOLDS: Final = 3
"""As many as fit with all that a status says of them: the verdict goes through the termination message of a pod."""

Lateness = Annotated[Duration, between("10ms", "24h")]
Delay = Annotated[Duration, between("0s", LONGEST_DELAY)]
LongDelay = Annotated[Duration, between("10ms", LONGEST_DELAY)]
FixedDelay = Annotated[Duration, between("1ms", LONGEST_DELAY)]
Precision = Annotated[Duration, between("10ms", "1h")]
DrainTimeout = Annotated[Duration, between("0s", LONGEST_DELAY)]


class CesiumSpec(Model):
    """Rules of the dialect Cesium; the defaults are those of cesium-kafka."""

    on_malformed: OnMalformed = OnMalformed.DEAD_LETTER
    """For a control header that cannot be read. DeadLetter: the record goes to the dead-letter topic. Deliver: it is
    delivered at once."""
    on_beyond_max_delay: OnBeyondMaxDelay = OnBeyondMaxDelay.DEAD_LETTER
    """For a delay longer than maxDelay. DeadLetter: the record goes to the dead-letter topic. Clamp: it is due maxDelay
    after its timestamp, and delivered with cesium-clamped."""
    numbers: CesiumNumbers = CesiumNumbers.DECIMAL
    """Decimal: ASCII digits. Binary: longs of 8 bytes, big-endian."""
    provenance: Provenance = Provenance.STAMPED
    """Stamped: deliveries have the headers cesium-relayed-at, cesium-source-* and cesium-scheduled-for. Absent: they
    have not."""


class SchedulerSpec(Model):
    """Rules of the dialect Scheduler."""

    grace_interval: Delay | None = None
    """The time after its epoch, such as 1h, beyond which a schedule that is produced goes to the dead-letter topic.
    Absent: it is delivered, however late."""
    since_days: Annotated[int, Field(strict=True, ge=0, le=3650)] | None = None
    """Schedules that were missed are delivered until the end of this many days after their own, in UTC: 0 for their
    own day. Later they go to the dead-letter topic. Absent: they are delivered, however late."""


class RedeliverySpec(Model):
    """Rules of the dialect Redelivery."""

    max_redeliveries: Annotated[int, Field(strict=True, ge=0, le=10_000)] | None = None
    """A message that was redelivered so often goes to the dead-letter topic instead. Consumers have to copy the header
    redelivery-count of a message into its start marker. Absent: no bound."""


class ScheduleSpec(Model):
    """The way records state their due time, and the longest delay."""

    dialect: Dialect = Dialect.NATIVE
    """Native: the headers deliver-at, deliver-after and their companions. The others read the records of another
    service as they are: BlackBox, a JSON value with topic, message and countdown; Cesium, the headers of cesium-kafka;
    Timebridge, those of kafka-timebridge; Kaspr, those of Kaspr's scheduler; Karafka, those of Karafka Pro's scheduled
    messages; Scheduler, those of etf1's kafka-message-scheduler; SchedulerJson, the JSON of sky-uk's; Redelivery, the
    markers of Splunk's kafka-mq-go."""
    default_delay: Delay | None = None
    """The delay of records without a time header, such as 10m. Absent: they are delivered at once."""
    delay: FixedDelay | None = None
    """The same delay for every record, such as 15m, counted from its timestamp; time headers are not read. Where it
    fits, it is the cheapest way."""
    max_delay: LongDelay | None = None
    """The longest delay, such as 720h: a record that is due later goes to the dead-letter topic. Absent: the
    class's default, else 720h."""
    ids: Ids | None = None
    """ByHeader: the header deliver-id names a schedule, to replace or cancel it. Absent: ByHeader, or Disabled with a
    fixed delay. Other dialects than Native decide it themselves."""
    cesium: CesiumSpec | None = None
    """Rules of the dialect Cesium."""
    scheduler: SchedulerSpec | None = None
    """Rules of the dialect Scheduler."""
    redelivery: RedeliverySpec | None = None
    """Rules of the dialect Redelivery."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        fixed, native = self.delay is not None, self.dialect is Dialect.NATIVE
        no_use = "has no use beside schedule.delay: every record waits for the same time"
        only_native = f"is only for dialect Native, not for {self.dialect}"
        require(
            (native or self.default_delay is None, "defaultDelay", only_native),
            (native or not fixed, "delay", only_native),
            (native or self.ids is None, "ids", only_native),
            (
                self.cesium is None or self.dialect is Dialect.CESIUM,
                "cesium",
                f"is only for dialect Cesium, not for {self.dialect}",
            ),
            (
                self.scheduler is None or self.dialect is Dialect.SCHEDULER,
                "scheduler",
                f"is only for dialect Scheduler, not for {self.dialect}",
            ),
            (
                self.redelivery is None or self.dialect is Dialect.REDELIVERY,
                "redelivery",
                f"is only for dialect Redelivery, not for {self.dialect}",
            ),
            (not native or self.ids is not Ids.BY_KEY, "ids", "must be ByHeader or Disabled"),
            (not (fixed and self.default_delay is not None), "defaultDelay", no_use),
            (not (fixed and self.max_delay is not None), "maxDelay", no_use),
            (
                not (fixed and self.ids is Ids.BY_HEADER),
                "ids",
                "must be Disabled beside schedule.delay: a fixed delay keeps no index to find a schedule in",
            ),
            (
                self.default_delay is None or self.max_delay is None or self.default_delay.ms <= self.max_delay.ms,
                "defaultDelay",
                f"is {self.default_delay}, longer than maxDelay ({self.max_delay})",
            ),
        )
        return self


class BackendSpec(Model):
    """The place where schedules wait that are not due soon. A change moves the backlog while it is delivered."""

    type: BackendType
    """RedisZset: in Redis, the faster one. KafkaBuckets: in topics beside the source, nothing else to run."""
    redis: RedisConnection | None = None
    """The Redis to use; only with an inline connection, as a class brings its own."""
    signing_key: SigningKeySecret | None = None
    """Keys that sign what waits, so that relays believe nobody else who can write to the backend; only with an inline
    connection, a class brings its own."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        uses_redis = self.type is BackendType.REDIS_ZSET
        require((self.redis is None or uses_redis, "redis", f"is not for type {self.type}"))
        return self


class SloExclusion(Model):
    """A time, such as a maintenance, in which lateness is excused."""

    start: Annotated[WholeMinute, Field(alias="from")]
    """Its beginning, RFC 3339 with an offset, in whole minutes."""
    until: WholeMinute
    """Its end: records due from then on count again."""
    reason: Annotated[str, Field(min_length=1, max_length=256)]
    """The reason, for whoever reads the report."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require((self.start.ms < self.until.ms, "until", f"is {self.until}, not after from ({self.start})"))
        return self


class SloThreshold(Model):
    """A further threshold of lateness, with an objective and an error budget of its own."""

    lateness: Lateness
    """A record sent later than this after its due time is late for this objective."""
    objective: Percent
    """The share of records that must not be late for it."""

    @property
    def name(self) -> str:
        """The name of its objective in reports, in the status and in metrics, such as `Timely-100ms`."""
        return f"{TIMELY}-{Duration.of_ms(self.lateness.ms)}"


class SloSpec(Model):
    """The objectives that the audit checks."""

    lateness: Lateness | None = None
    """The lateness beyond which a record is late, such as 5s after its due time. Absent: five times precision."""
    objective: Percent = Percent("99.9%")
    """The share of records that must not be late."""
    thresholds: Annotated[list[SloThreshold], Field(max_length=MOST_THRESHOLDS)] = []
    """Further objectives of lateness beside this one, each with an error budget of its own: 99% within 100ms, say,
    whose name is Timely-100ms. One that is added later counts for what is graded from the next audit on."""
    window: Annotated[Duration, between("1h", "8760h")] = Duration("720h")
    """The length of time, up to now, that the objective is about; it means nothing beside calendar."""
    calendar: Calendar | None = None
    """Count the error budget by days, weeks from Monday on, or months, in place of the rolling window: it is whole
    again when the next one begins."""
    time_zone: TimeZone | None = None
    """Periods of calendar begin at midnight there, whatever its clocks do: an IANA name, such as Europe/Berlin.
    Absent: UTC."""
    exclusions: Annotated[list[SloExclusion], Field(max_length=50)] = []
    """Times in which lateness is excused: records due within one count for no objective of lateness, and for all
    others. One that is added later counts from the next audit on, for what was graded before, too."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require(
            (
                self.time_zone is None or self.calendar is not None,
                "timeZone",
                "is only for use with calendar: a rolling window has no midnight",
            ),
            *distinct_thresholds(self.lateness, self.thresholds),
        )
        return self


def distinct_thresholds(
    lateness: Duration | None, thresholds: Sequence[SloThreshold], path: str = "thresholds"
) -> list[tuple[bool, str, str]]:
    """Return the rules that each threshold is another one, as `require` takes them: an objective is named by it."""
    known = [lateness.ms if lateness is not None else None, *(each.lateness.ms for each in thresholds)]
    return [
        (
            each.lateness.ms not in known[: place + 1],
            path,
            f"each needs a lateness of its own; {each.lateness} is that of "
            + ("slo.lateness" if each.lateness.ms == known[0] else "another one"),
        )
        for place, each in enumerate(thresholds)
    ]


class DelayTopicSpec(Model):
    """The desired state. Source and target are enough; the class and the defaults give the rest."""

    delay_class_name: ClassName | None = None
    """The DelayClass that brings connection, limits and defaults; it cannot be changed later. Absent: the default."""
    connection: KafkaConnection | None = None
    """The connection to Kafka without a class, for a single tenant: Secrets are read from this object's namespace."""
    source: SourceSpec
    """The topic that producers write to."""
    target: TargetSpec
    """The topic that records appear on."""
    dead_letter: TopicSpec | None = None
    """The topic for records that cannot be delivered. Absent: the source's name with .dlq at the end."""
    history: TopicSpec | None = None
    """The topic for copies of what was delivered; only with dialect Scheduler. Absent: the source's name with .history
    at the end."""
    schedule: ScheduleSpec = ScheduleSpec()
    """The way records state their due time."""
    precision: Precision | None = None
    """The lateness allowed while there is capacity, and the interval of commits. Absent: the class's default,
    else 1s."""
    guarantee: Guarantee | None = None
    """ExactlyOnce: read_committed consumers see each record once. AtLeastOnce: faster, with duplicates after a crash.
    Absent: the class's default, else ExactlyOnce."""
    backend: BackendSpec | None = None
    """The place where schedules wait. Absent: the class's backend, else RedisZset."""
    autoscaling: AutoscalingSpec = AutoscalingSpec()
    """The number of relays, and who sets it."""
    relay: RelaySpec = RelaySpec()
    """The relays themselves."""
    slo: SloSpec = SloSpec()
    """The objectives that the audit checks."""
    suspend: Suspend = Suspend.NONE
    """Delivery: take records in, hold what is due. Ingest: deliver, take nothing in. All: both stand still."""
    deletion_policy: DeletionPolicy = DeletionPolicy.DRAIN
    """Drain: pending records leave at their own time, up to drainTimeout, then as Retain. Retain: they stay, and
    applying the same object again resumes them. Delete: they are removed, after confirmation."""
    drain_timeout: DrainTimeout | None = None
    """The longest time that Drain lasts. Absent: the class's default, else 15m."""

    @property
    def dead_letter_topic(self) -> str:
        """The dead-letter topic's name, given or not."""
        return self.dead_letter.topic if self.dead_letter else f"{self.source.topic}.dlq"

    @property
    def history_topic(self) -> str | None:
        """The history topic's name, given or not; None for a dialect without one."""
        if not CAPABILITIES[self.schedule.dialect].history:
            return None
        return self.history.topic if self.history else f"{self.source.topic}.history"

    @property
    def topics(self) -> dict[str, str]:
        """The names of its topics, by the fields that name them."""
        topics = {
            "source.topic": self.source.topic,
            "target.topic": self.target.topic,
            "deadLetter.topic": self.dead_letter_topic,
        }
        return topics if self.history_topic is None else {**topics, "history.topic": self.history_topic}

    @model_validator(mode="after")
    def _rules(self) -> Self:
        source, target, dead_letter = self.source, self.target, self.dead_letter_topic
        history, dialect = self.history_topic, self.schedule.dialect
        require(
            (
                self.history is None or CAPABILITIES[dialect].history,
                "history",
                f"is only for dialect Scheduler, not for {dialect}",
            ),
            (
                history not in (source.topic, target.topic, dead_letter),
                "history.topic",
                f"must differ from source.topic, target.topic and deadLetter.topic; it is {history}",
            ),
            (
                history is None or len(history) <= 249,
                "history.topic",
                "is required: the source's name is too long to add .history",
            ),
            (
                not source.is_compacted or CAPABILITIES[dialect].tombstones,
                'source.config["cleanup.policy"]',
                "must not be compact: compaction removes records that are still to be delivered",
            ),
            (source.topic != target.topic, "target.topic", "must differ from source.topic"),
            *_told_apart(self.topics),
            (
                dead_letter not in (source.topic, target.topic),
                "deadLetter.topic",
                f"must differ from source.topic and target.topic; it is {dead_letter}",
            ),
            (
                len(dead_letter) <= 249,
                "deadLetter.topic",
                "is required: the source's name is too long to add .dlq",
            ),
            (
                at_most_one(delay_class_name=self.delay_class_name, connection=self.connection),
                "connection",
                "set delayClassName or connection, not both",
            ),
            (
                not (self.delay_class_name and self.backend and self.backend.redis),
                "backend.redis",
                "is not for use with delayClassName: the class brings its own Redis",
            ),
            (
                not (self.delay_class_name and self.backend and self.backend.signing_key),
                "backend.signingKey",
                "is not for use with delayClassName: the class brings its own keys",
            ),
        )
        return self


def _told_apart(topics: Mapping[str, str]) -> list[tuple[bool, str, str]]:
    """Return the rules that Kafka takes no two of the topics for one, as `require` takes them."""
    rules, seen = [], dict[str, str]()
    for field, name in topics.items():
        first = seen.setdefault(unified(name), field)
        rules.append(
            (
                topics[first] == name,
                field,
                f"is {name}, and differs from {first} ({topics[first]}) in dots and underscores only: Kafka takes one "
                "of the two",
            )
        )
    return rules


class DelayTopic(Model):
    """Records produced to the source topic appear on the target topic at their own time."""

    api_version: ApiVersion
    """delaytopic.dev/v1beta1"""
    kind: Literal["DelayTopic"]
    """DelayTopic"""
    metadata: NamespacedMetadata
    """Name and namespace."""
    spec: DelayTopicSpec
    """The desired state."""
    status: DelayTopicStatus | None = None
    """The observed state, written by the operator."""

    @property
    def full_name(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
