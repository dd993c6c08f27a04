"""Effective settings of a DelayTopic: its own fields, its class's, and the defaults, decided and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from delaytopic_api.documents.connection import KafkaConnection, RedisConnection, SigningKeySecret
from delaytopic_api.documents.delay_topic import TIMELY, SloExclusion, SloThreshold
from delaytopic_api.documents.dialects import CesiumSpec, RedeliverySpec, SchedulerOptions
from delaytopic_api.values.choices import (
    CAPABILITIES,
    AutoscalingMode,
    BackendType,
    Calendar,
    Capabilities,
    Compression,
    DeletionPolicy,
    Dialect,
    Ending,
    Guarantee,
    Ids,
    Management,
    Partitioning,
    ScaleToZero,
    Suspend,
    TopicProvisioning,
)
from delaytopic_api.values.duration import Duration
from delaytopic_api.values.percent import Percent
from delaytopic_api.values.quantity import Quantity
from delaytopic_api.values.time_zone import TimeZone


@dataclass(frozen=True)
class TopicSettings:
    """One topic; None means that the broker's default applies."""

    topic: str
    management: Management
    partitions: int | None
    replication_factor: int | None
    retention: Duration | None
    config: dict[str, str]


@dataclass(frozen=True)
class ScheduleSettings:
    """The way records state their due time."""

    dialect: Dialect
    default_delay: Duration | None
    fixed_delay: Duration | None
    max_delay: Duration
    ids: Ids
    cesium: CesiumSpec | None = None
    """Rules of the dialect Cesium, where they are written."""
    scheduler: SchedulerOptions | None = None
    """Rules of the dialect Scheduler, where they are written."""
    redelivery: RedeliverySpec | None = None
    """Rules of the dialect Redelivery, where they are written."""

    @property
    def capabilities(self) -> Capabilities:
        """The parts beyond delivery that the dialect has."""
        return CAPABILITIES[self.dialect]


@dataclass(frozen=True)
class BackendSettings:
    """The backend in force; `redis` is None unless the type is RedisZset and the documents say where it is."""

    type: BackendType
    id: str
    redis: RedisConnection | None
    signing_key: SigningKeySecret | None = None
    """The key that signs what waits there; None without one."""
    max_redis_memory: Quantity | None = None
    """The most that may wait in Redis, of all partitions together; None for as much as it takes."""


@dataclass(frozen=True)
class AutoscalingSettings:
    """The number of relays; `max_replicas` None means as many as the source has partitions."""

    mode: AutoscalingMode
    replicas: int
    min_replicas: int
    max_replicas: int | None
    scale_to_zero: ScaleToZero
    look_ahead: Duration
    scale_down_stabilization: Duration
    target_utilization: Percent


class LatenessObjective(NamedTuple):
    """An objective of lateness: the share `objective` of records is at most `lateness` late."""

    name: str
    lateness: Duration
    objective: Percent


@dataclass(frozen=True)
class SloSettings:
    """The objectives that the audit checks."""

    lateness: Duration
    objective: Percent
    window: Duration
    exclusions: list[SloExclusion] = field(default_factory=list)
    calendar: Calendar | None = None
    """None: the window is a rolling one."""
    time_zone: TimeZone | None = None
    """The zone in which periods of the calendar begin at midnight; None for UTC."""
    thresholds: list[SloThreshold] = field(default_factory=list)
    """Further objectives of lateness."""

    @property
    def lateness_objectives(self) -> list[LatenessObjective]:
        """All objectives of lateness, `Timely` first."""
        further = (LatenessObjective(each.name, each.lateness, each.objective) for each in self.thresholds)
        return [LatenessObjective(TIMELY, self.lateness, self.objective), *further]


@dataclass(frozen=True)
class Settings:
    """Everything that is in force for one DelayTopic."""

    namespace: str
    name: str
    class_name: str | None
    group_id: str
    source: TopicSettings
    target: TopicSettings
    dead_letter: TopicSettings
    history: TopicSettings | None
    """None for a dialect without one."""
    outcomes: TopicSettings | None
    """None where nobody is told how schedules end."""
    told: list[Ending]
    """The endings that are told."""
    topic_provisioning: TopicProvisioning
    allowed_topics: list[str]
    """Globs for deliver-to; none of them reaches beyond what the class allows."""
    partitioning: Partitioning
    compression: Compression
    schedule: ScheduleSettings
    precision: Duration
    guarantee: Guarantee
    backend: BackendSettings
    connection: KafkaConnection | None
    """None without class and inline connection: whoever starts the relay knows where Kafka is."""
    autoscaling: AutoscalingSettings
    slo: SloSettings
    suspend: Suspend
    deletion_policy: DeletionPolicy
    drain_timeout: Duration
