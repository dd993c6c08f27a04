"""The custom resources DelayTopic and DelayClass, as typed documents."""

from __future__ import annotations

from delaytopic_api.documents.connection import (
    Authentication,
    AuthenticationType,
    KafkaConnection,
    RedisConnection,
    SigningKeySecret,
    Tls,
)
from delaytopic_api.documents.delay_class import AccessSpec, DelayClass, RelayTemplate
from delaytopic_api.documents.delay_topic import (
    CesiumSpec,
    DelayTopic,
    DelayTopicSpec,
    RedeliverySpec,
    SchedulerSpec,
    SloExclusion,
)
from delaytopic_api.documents.metadata import (
    API_VERSION,
    DEFAULT_CLASS_ANNOTATION,
    GROUP,
    ApiVersion,
    NamespacedMetadata,
)
from delaytopic_api.documents.model import Model, require
from delaytopic_api.documents.relays import KubernetesObject, RelaySpec, SparkConf
from delaytopic_api.documents.settings import (
    AutoscalingSettings,
    BackendSettings,
    ScheduleSettings,
    Settings,
    SloSettings,
    TopicSettings,
)
from delaytopic_api.documents.status import (
    MOST_FAULTY_HOURS,
    BackendStatus,
    BacklogStatus,
    Condition,
    ConditionStatus,
    ConditionType,
    DelayTopicStatus,
    EffectiveStatus,
    Ownership,
    PlannedAction,
    RelayFleetStatus,
    SloBurnRateStatus,
    SloFaultsStatus,
    SloObjectiveStatus,
    SloStatus,
    TopicStatus,
)
from delaytopic_api.documents.topics import TopicSpec

__all__ = [
    "API_VERSION",
    "DEFAULT_CLASS_ANNOTATION",
    "GROUP",
    "MOST_FAULTY_HOURS",
    "AccessSpec",
    "ApiVersion",
    "Authentication",
    "AuthenticationType",
    "AutoscalingSettings",
    "BackendSettings",
    "BackendStatus",
    "BacklogStatus",
    "CesiumSpec",
    "Condition",
    "ConditionStatus",
    "ConditionType",
    "DelayClass",
    "DelayTopic",
    "DelayTopicSpec",
    "DelayTopicStatus",
    "EffectiveStatus",
    "KafkaConnection",
    "KubernetesObject",
    "Model",
    "NamespacedMetadata",
    "Ownership",
    "PlannedAction",
    "RedeliverySpec",
    "RedisConnection",
    "RelayFleetStatus",
    "RelaySpec",
    "RelayTemplate",
    "ScheduleSettings",
    "SchedulerSpec",
    "Settings",
    "SigningKeySecret",
    "SloBurnRateStatus",
    "SloExclusion",
    "SloFaultsStatus",
    "SloObjectiveStatus",
    "SloSettings",
    "SloStatus",
    "SparkConf",
    "Tls",
    "TopicSettings",
    "TopicSpec",
    "TopicStatus",
    "require",
]
