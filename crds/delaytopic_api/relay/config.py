"""RelayConfig, the document that a relay process is started with: everything is decided.

Secrets are only ever named as files, so that this document may be a ConfigMap.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from delaytopic_api.documents.dialects import Delay, DialectChoice, FixedDelay, Precision, SchedulerOptions
from delaytopic_api.documents.metadata import API_VERSION, ApiVersion
from delaytopic_api.documents.model import require
from delaytopic_api.errors import InvalidText
from delaytopic_api.relay.connection import FilePath, KafkaClient, RedisClient
from delaytopic_api.relay.model import RelayModel
from delaytopic_api.values.choices import (
    BackendType,
    Compression,
    Ending,
    Guarantee,
    Ids,
    Partitioning,
    PendingAccess,
    Suspend,
)
from delaytopic_api.values.duration import Duration, between
from delaytopic_api.values.names import Matching, Namespace, ObjectName, Sha256, TopicGlob, TopicId, TopicName
from delaytopic_api.values.quantity import Quantity
from delaytopic_api.values.whole_minute import WholeMinute

GroupId = Annotated[str, Field(min_length=1, max_length=255)]
BackendId = Annotated[
    str, Matching("[a-zA-Z0-9._-]+", 180, "an id; use up to 180 letters, digits, dots, underscores, hyphens")
]
Port = Annotated[int, Field(strict=True, ge=0, le=65_535)]


def _enough_memory(memory: Quantity) -> Quantity:
    if memory.value < 16 * 1024 * 1024:
        raise InvalidText(f'"{memory}" is too little; a relay needs at least 16Mi')
    return memory


class RelaySource(RelayModel):
    """The topic that records come from."""

    topic: TopicName
    """The source topic."""
    accepted_topic_id: TopicId | None = None
    """The id of the topic that has this name, if somebody has looked at it and said that it is the right one: where
    the group's offsets are of another one, relays begin at its first record. Absent: such partitions stand still."""
    accept_repeats: WholeMinute | None = None
    """The time until which partitions whose offsets are gone begin again although records will be delivered twice, such
    as 2026-11-26T22:00:00Z, within a day. Absent: such partitions stand still."""


class RelayTarget(RelayModel):
    """The topic that records go to."""

    topic: TopicName
    """The target topic."""
    allowed_topics: list[TopicGlob] = []
    """Globs of further topics that deliver-to may name."""
    partitioning: Partitioning = Partitioning.BY_KEY
    """The choice of the target partition."""
    compression: Compression = Compression.AUTO
    """The compression of what is delivered; with Auto that of the source, or Zstd once a record is too large."""


class RelayDeadLetter(RelayModel):
    """The topic for records that cannot be delivered."""

    topic: TopicName
    """The dead-letter topic."""


class RelayHistory(RelayModel):
    """The topic for copies of what was delivered."""

    topic: TopicName
    """The history topic."""


class RelayOutcomes(RelayModel):
    """The topic that tells how schedules ended."""

    topic: TopicName
    """The topic of outcomes; it has as many partitions as the source at least."""
    only: Annotated[list[Ending], Field(min_length=1)] = [*Ending]
    """The endings that are told."""


class RelayScheduler(SchedulerOptions):
    """Options of the dialect Scheduler."""

    history: RelayHistory | None = None
    """The topic for copies of what was delivered. Absent: none are made."""


class _Delays(RelayModel):
    fixed_delay: FixedDelay | None = None
    """The delay of every record; time headers are not read."""
    default_delay: Delay | None = None
    """The delay of records without a time header."""
    max_delay: FixedDelay
    """A record that is due later goes to the dead-letter topic."""
    ids: Ids = Ids.BY_HEADER
    """Let header deliver-id name schedules."""


class RelaySchedule(DialectChoice, _Delays):
    """The way records state their due time: by one of the dialects, or by the native headers."""

    scheduler: RelayScheduler | None = None
    """Read the headers of etf1's kafka-message-scheduler; `{}` chooses it with its defaults."""
    declared_ms: Annotated[int, Field(strict=True, ge=0, le=253_402_300_799_999)] | None = None
    """The time at which these rules were declared, in epoch milliseconds: of two relays in one group, which a rollout
    has for a while, the later rules take effect. Absent: those of the relay that takes a partition over last."""


class RelayBackend(RelayModel):
    """The place where schedules wait that are not due soon."""

    type: BackendType
    """RedisZset or KafkaBuckets."""
    id: BackendId
    """Prefix of everything the backend stores: Redis keys, bucket topics."""
    redis: RedisClient | None = None
    """The Redis to use, for RedisZset."""
    max_redis_memory: Quantity | None = None
    """The most that the DelayTopic keeps in Redis; each partition of the source has an equal share, and is read no
    further when that is used up. Absent: as much as it takes."""
    signing_keys_file: FilePath | None = None
    """A file that holds the keys by which segments are signed, one a line: the first signs, all verify. Absent: nothing
    is signed."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        needs_redis = self.type is BackendType.REDIS_ZSET
        require((self.redis is not None or not needs_redis, "redis", f"is required for type {self.type}"))
        return self


class HttpServer(RelayModel):
    """The address at which health, metrics, status and the list of what is pending are served."""

    host: str = "0.0.0.0"
    """The address to listen on."""
    port: Port = 8080
    """The port to listen on; 0 for any free one."""
    pending: PendingAccess = PendingAccess.LOOPBACK
    """The clients that may read what is pending, with keys and ids: Loopback, those whose address is 127.0.0.0/8 or
    ::1; Anywhere, all that reach the port."""
    pending_token_sha256: Sha256 | None = None
    """The SHA-256 of a token: clients from elsewhere that show the token (Authorization: Bearer) may read it, too."""


class RelayLimits(RelayModel):
    """Bounds of one relay process."""

    memory: Annotated[Quantity, AfterValidator(_enough_memory)] = Quantity("256Mi")
    """The memory for schedules; above it, taking in pauses."""
    id_memory: Quantity = Quantity("64Mi")
    """The memory for ids of schedules in bucket topics, beside that for schedules, shared equally by a relay's
    partitions. Where it is used up, further schedules with an id go to the dead-letter topic for an hour or more."""
    horizon: Annotated[Duration, between("1s", "10m")] = Duration("10s")
    """The span ahead in which schedules are held in memory."""
    look_ahead: Annotated[Duration, between("10s", "24h")] = Duration("10m")
    """The span ahead in which due times are counted for autoscaling."""
    session_timeout: Annotated[Duration, between("1s", "30m")] = Duration("6s")
    """After this much silence the group gives a relay's partitions to others."""
    shutdown_grace: Annotated[Duration, between("0s", "10m")] = Duration("20s")
    """The longest time that a relay takes to hand over when it is told to stop."""


class RelayConfig(RelayModel):
    """All that a relay needs to know."""

    api_version: ApiVersion = ApiVersion(API_VERSION)
    """delaytopic.dev/v1beta1"""
    kind: Literal["RelayConfig"] = "RelayConfig"
    """RelayConfig"""
    name: ObjectName
    """The name of the DelayTopic."""
    namespace: Namespace
    """The namespace of the DelayTopic."""
    group_id: GroupId
    """The consumer group, which carries the progress of every partition."""
    source: RelaySource
    """The topic that records come from."""
    target: RelayTarget
    """The topic that records go to."""
    dead_letter: RelayDeadLetter
    """The topic for records that cannot be delivered."""
    outcomes: RelayOutcomes | None = None
    """The topic that tells how schedules ended. Absent: nobody is told."""
    schedule: RelaySchedule
    """The way records state their due time."""
    precision: Precision
    """The lateness allowed while there is capacity."""
    guarantee: Guarantee
    """ExactlyOnce or AtLeastOnce."""
    backend: RelayBackend
    """The place where schedules wait that are not due soon."""
    kafka: KafkaClient
    """The connection to Kafka."""
    suspend: Suspend = Suspend.NONE
    """Parts that are paused on request."""
    http: HttpServer = HttpServer()
    """The address at which health, metrics, status and the list of what is pending are served."""
    limits: RelayLimits = RelayLimits()
    """Bounds of one relay process."""

    @property
    def history(self) -> RelayHistory | None:
        """The history topic; None without one."""
        return self.schedule.scheduler.history if self.schedule.scheduler is not None else None
