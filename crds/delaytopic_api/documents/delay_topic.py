"""DelayTopic, the app team's document: records produced to one topic appear on another at their own time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from delaytopic_api.documents.connection import KafkaConnection, RedisConnection, SigningKeySecret
from delaytopic_api.documents.dialects import (
    LONGEST_DELAY,
    Delay,
    DialectChoice,
    FixedDelay,
    Precision,
    SchedulerOptions,
)
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
    DeletionPolicy,
    Dialect,
    Ending,
    Guarantee,
    Ids,
    Suspend,
)
from delaytopic_api.values.duration import Duration, between
from delaytopic_api.values.lists import ATOMIC, as_map
from delaytopic_api.values.names import ClassName
from delaytopic_api.values.percent import Percent
from delaytopic_api.values.time_zone import TimeZone
from delaytopic_api.values.whole_minute import WholeMinute

HISTORY_TOPIC: Final = "schedule.scheduler.history.topic"
OUTCOMES_TOPIC: Final = "outcomes.topic"

TIMELY: Final = "Timely"
"""The name of the objective of `slo.lateness`, and the beginning of those of `slo.thresholds`."""
MOST_THRESHOLDS: Final = 3
"""The most thresholds of a DelayTopic: as many as fit with all that a status says of them."""

Lateness = Annotated[Duration, between("10ms", "24h")]
LongDelay = Annotated[Duration, between("10ms", LONGEST_DELAY)]
HeaderIds = Literal[Ids.BY_HEADER, Ids.DISABLED]
DrainTimeout = Annotated[Duration, between("0s", LONGEST_DELAY)]


class SchedulerSpec(SchedulerOptions):
    """Options of the dialect Scheduler."""

    history: TopicSpec | None = None
    """The topic for copies of what was delivered. Absent: the source's name with .history at the end."""


class _Delays(Model):
    """The fields of a schedule beside its dialect, which come first."""

    fixed_delay: FixedDelay | None = None
    """The same delay for every record, such as 15m, counted from its timestamp; time headers are not read. Where it
    fits, it is the cheapest way. Absent: each record says its own."""
    default_delay: Delay | None = None
    """The delay of records without a time header, such as 10m. Absent: they are delivered at once."""
    max_delay: LongDelay | None = None
    """The longest delay, such as 720h: a record that is due later goes to the dead-letter topic. Absent: the
    class's default, else 720h."""
    ids: HeaderIds | None = None
    """ByHeader: the header deliver-id names a schedule, to replace or cancel it. Absent: ByHeader, or Disabled with a
    fixed delay. Other dialects decide it themselves."""


class ScheduleSpec(DialectChoice, _Delays):
    """The way records state their due time, and the longest delay. Without a dialect they have the native headers
    deliver-at, deliver-after and their companions.
    """

    scheduler: SchedulerSpec | None = None
    """Read the headers of etf1's kafka-message-scheduler; `{}` chooses it with its defaults."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        fixed, native = self.fixed_delay is not None, self.dialect is Dialect.NATIVE
        no_use = "has no use beside schedule.fixedDelay: every record waits for the same time"
        only_native = f"is only for native headers, not for dialect {self.dialect}"
        require(
            (native or self.default_delay is None, "defaultDelay", only_native),
            (native or not fixed, "fixedDelay", only_native),
            (native or self.ids is None, "ids", only_native),
            (not (fixed and self.default_delay is not None), "defaultDelay", no_use),
            (not (fixed and self.max_delay is not None), "maxDelay", no_use),
            (
                not (fixed and self.ids is Ids.BY_HEADER),
                "ids",
                "must be Disabled beside schedule.fixedDelay: a fixed delay keeps no index to find a schedule in",
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
    """The reason, for whoever reads the report, such as `Kafka is upgraded`."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require((self.start.ms < self.until.ms, "until", f"is {self.until}, not after from ({self.start})"))
        return self


class SloThreshold(Model):
    """A further threshold of lateness, with an objective and an error budget of its own."""

    lateness: Lateness
    """A record sent later than this after its due time, such as 100ms, is late for this objective."""
    objective: Percent
    """The share of records that must not be late for it, such as 99%."""

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
    thresholds: Annotated[list[SloThreshold], Field(max_length=MOST_THRESHOLDS), as_map("lateness")] = []
    """Further objectives of lateness beside this one, each with an error budget of its own: 99% within 100ms, say,
    whose name is Timely-100ms. One that is added later counts for what is graded from the next audit on."""
    window: Annotated[Duration, between("1h", "8760h")] = Duration("720h")
    """The length of time, up to now, that the objective is about; it means nothing beside calendar."""
    calendar: Calendar | None = None
    """Count the error budget by days, weeks from Monday on, or months, in place of the rolling window: it is whole
    again when the next one begins. Absent: the rolling window."""
    time_zone: TimeZone | None = None
    """Periods of calendar begin at midnight there, whatever its clocks do: an IANA name, such as Europe/Berlin.
    Absent: UTC."""
    exclusions: Annotated[list[SloExclusion], Field(max_length=50), as_map("from", "until")] = []
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


class OutcomesSpec(TopicSpec):
    """The topic that tells how each schedule ended."""

    only: Annotated[list[Ending], Field(max_length=5), ATOMIC] = []
    """The endings that are told, such as [Cancelled, NotPending]. Absent or empty: all of them."""


class DelayTopicSpec(Model):
    """The desired state. Source and target are enough; the class and the defaults give the rest."""

    delay_class_name: ClassName | None = None
    """The DelayClass that brings connection, limits and defaults, such as `standard`; it cannot be changed later.
    Absent: the class that is the default when the operator first sees this object."""
    connection: KafkaConnection | None = None
    """The platform's. The connection to Kafka without a class, for a single tenant: Secrets are read from this object's
    namespace."""
    source: SourceSpec
    """The topic that producers write to."""
    target: TargetSpec
    """The topic that records appear on."""
    dead_letter: TopicSpec | None = None
    """The topic for records that cannot be delivered. Absent: the source's name with .dlq at the end."""
    outcomes: OutcomesSpec | None = None
    """The topic that gets one small record for each schedule that ends, and for each cancel that met nothing. Absent:
    nobody is told."""
    schedule: ScheduleSpec = ScheduleSpec()
    """The way records state their due time."""
    precision: Precision | None = None
    """The lateness allowed while there is capacity, such as 1s, and the interval of commits. Absent: the class's
    default, else 1s."""
    guarantee: Guarantee | None = None
    """ExactlyOnce: read_committed consumers see each record once. AtLeastOnce: faster, with duplicates after a crash.
    Absent: the class's default, else ExactlyOnce."""
    backend: BackendSpec | None = None
    """The platform's. The place where schedules wait. Absent: the class's backend, else KafkaBuckets."""
    autoscaling: AutoscalingSpec = AutoscalingSpec()
    """The platform's. The number of relays, and who sets it."""
    relay: RelaySpec = RelaySpec()
    """The platform's. The relays themselves."""
    slo: SloSpec = SloSpec()
    """The objectives that the audit checks."""
    suspend: Suspend = Suspend.NONE
    """Delivery: take records in, hold what is due. Ingest: deliver, take nothing in. All: both stand still."""
    deletion_policy: DeletionPolicy = DeletionPolicy.DRAIN
    """Drain: pending records leave at their own time, up to drainTimeout, then as Retain. Retain: they stay, and
    applying the same object again resumes them. Delete: they are removed, after confirmation."""
    drain_timeout: DrainTimeout | None = None
    """The longest time that Drain lasts, such as 15m. Absent: the class's default, else 15m."""

    @property
    def dead_letter_topic(self) -> str:
        """The dead-letter topic's name, given or not."""
        return self.dead_letter.topic if self.dead_letter else f"{self.source.topic}.dlq"

    @property
    def history(self) -> TopicSpec | None:
        """The history topic, where it is written."""
        return self.schedule.scheduler.history if self.schedule.scheduler is not None else None

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
        topics |= {OUTCOMES_TOPIC: self.outcomes.topic} if self.outcomes is not None else {}
        return topics if self.history_topic is None else {**topics, HISTORY_TOPIC: self.history_topic}

    @model_validator(mode="after")
    def _rules(self) -> Self:
        source, target, dead_letter = self.source, self.target, self.dead_letter_topic
        history, dialect = self.history_topic, self.schedule.dialect
        require(
            (
                history not in (source.topic, target.topic, dead_letter),
                HISTORY_TOPIC,
                f"must differ from source.topic, target.topic and deadLetter.topic; it is {history}",
            ),
            (
                history is None or len(history) <= 249,
                HISTORY_TOPIC,
                "is required: the source's name is too long to add .history",
            ),
            (
                not source.is_compacted or CAPABILITIES[dialect].tombstones,
                'source.config["cleanup.policy"]',
                "must not be compact: compaction removes records that are still to be delivered",
            ),
            (source.topic != target.topic, "target.topic", "must differ from source.topic"),
            *_told_apart(self.topics),
            *_rules_of_outcomes(self.outcomes, [source.topic, target.topic, dead_letter, history], dialect),
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


def _rules_of_outcomes(
    outcomes: OutcomesSpec | None, others: Sequence[str | None], dialect: Dialect
) -> list[tuple[bool, str, str]]:
    """Return the rules of the topic of outcomes, as `require` takes them."""
    if outcomes is None:
        return []
    return [
        (
            outcomes.topic not in others,
            OUTCOMES_TOPIC,
            f"must differ from source.topic, target.topic, deadLetter.topic and the history; it is {outcomes.topic}",
        ),
        (
            "compact" not in outcomes.config.get("cleanup.policy", ""),
            'outcomes.config["cleanup.policy"]',
            "must not be compact: compaction removes outcomes that nobody has read yet",
        ),
        (
            dialect is not Dialect.REDELIVERY,
            "outcomes",
            "is not for dialect Redelivery, which writes schedules into the source again",
        ),
    ]


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
    """The desired state. `source` and `target` are enough. An app team sets those, and schedule, deadLetter, outcomes,
    precision, guarantee, slo, suspend, deletionPolicy, drainTimeout and delayClassName as it needs them. What the
    platform's DelayClass says best is marked as the platform's: autoscaling, backend, connection and relay."""
    status: DelayTopicStatus | None = None
    """The observed state, written by the operator."""

    @property
    def full_name(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
