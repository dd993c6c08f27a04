"""The custom resources DelayTopic, DelayClass and RecurringRecord, as typed documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delaytopic_api.documents.audited_slo import (
        MOST_FAULTY_HOURS,
        AuditedBurnRate,
        AuditedFaults,
        AuditedObjective,
        AuditedSlo,
    )
    from delaytopic_api.documents.connection import (
        Authentication,
        AuthenticationType,
        KafkaConnection,
        OAuth,
        RedisConnection,
        SigningKeySecret,
        Tls,
    )
    from delaytopic_api.documents.delay_class import (
        AccessSpec,
        AuditTemplate,
        CronLine,
        DelayClass,
        DelayClassSpec,
        ExecutorCount,
        RelayTemplate,
    )
    from delaytopic_api.documents.delay_topic import (
        MOST_THRESHOLDS,
        TIMELY,
        DelayTopic,
        DelayTopicSpec,
        SloExclusion,
        SloThreshold,
    )
    from delaytopic_api.documents.dialects import CesiumSpec, PlainDialect, RedeliverySpec, SchedulerOptions, member
    from delaytopic_api.documents.metadata import (
        API_VERSION,
        DEFAULT_CLASS_ANNOTATION,
        GROUP,
        ApiVersion,
        NamespacedMetadata,
    )
    from delaytopic_api.documents.model import Model, require
    from delaytopic_api.documents.pods import PodTemplate, Resources
    from delaytopic_api.documents.recurring_record import (
        RecurringRecord,
        RecurringRecordSpec,
        RecurringRecordStatus,
        WrittenRecord,
    )
    from delaytopic_api.documents.relays import KubernetesObject, RelaySpec, SparkConf
    from delaytopic_api.documents.scaling_status import ScalingStatus
    from delaytopic_api.documents.settings import (
        AutoscalingSettings,
        BackendSettings,
        LatenessObjective,
        ScheduleSettings,
        Settings,
        SloSettings,
        TopicSettings,
    )
    from delaytopic_api.documents.status import (
        MOST_FORMER,
        BackendStatus,
        BacklogStatus,
        Condition,
        ConditionStatus,
        ConditionType,
        DelayClassStatus,
        DelayTopicStatus,
        EffectiveStatus,
        FormerRulesStatus,
        Ownership,
        PlannedAction,
        RelayFleetStatus,
        SloStatus,
        TopicStatus,
    )
    from delaytopic_api.documents.topics import TopicSpec

__all__ = [
    "API_VERSION",
    "DEFAULT_CLASS_ANNOTATION",
    "GROUP",
    "MOST_FAULTY_HOURS",
    "MOST_FORMER",
    "MOST_THRESHOLDS",
    "TIMELY",
    "AccessSpec",
    "ApiVersion",
    "AuditTemplate",
    "AuditedBurnRate",
    "AuditedFaults",
    "AuditedObjective",
    "AuditedSlo",
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
    "CronLine",
    "DelayClass",
    "DelayClassSpec",
    "DelayClassStatus",
    "DelayTopic",
    "DelayTopicSpec",
    "DelayTopicStatus",
    "EffectiveStatus",
    "ExecutorCount",
    "FormerRulesStatus",
    "KafkaConnection",
    "KubernetesObject",
    "LatenessObjective",
    "Model",
    "NamespacedMetadata",
    "OAuth",
    "Ownership",
    "PlainDialect",
    "PlannedAction",
    "PodTemplate",
    "RecurringRecord",
    "RecurringRecordSpec",
    "RecurringRecordStatus",
    "RedeliverySpec",
    "RedisConnection",
    "RelayFleetStatus",
    "RelaySpec",
    "RelayTemplate",
    "Resources",
    "ScalingStatus",
    "ScheduleSettings",
    "SchedulerOptions",
    "Settings",
    "SigningKeySecret",
    "SloExclusion",
    "SloSettings",
    "SloStatus",
    "SloThreshold",
    "SparkConf",
    "Tls",
    "TopicSettings",
    "TopicSpec",
    "TopicStatus",
    "WrittenRecord",
    "member",
    "require",
]

# A relay needs few of them, and waits for no others when it starts.
if not TYPE_CHECKING:  # mypy would take every name for one of this module
    from delaytopic_api.faces import late

    __getattr__ = late(
        __name__,
        {
            "audited_slo": "MOST_FAULTY_HOURS AuditedBurnRate AuditedFaults AuditedObjective AuditedSlo",
            "connection": (
                "Authentication AuthenticationType KafkaConnection OAuth RedisConnection SigningKeySecret Tls"
            ),
            "delay_class": "AccessSpec AuditTemplate CronLine DelayClass DelayClassSpec ExecutorCount RelayTemplate",
            "delay_topic": "MOST_THRESHOLDS TIMELY DelayTopic DelayTopicSpec SloExclusion SloThreshold",
            "dialects": "CesiumSpec PlainDialect RedeliverySpec SchedulerOptions member",
            "metadata": "API_VERSION DEFAULT_CLASS_ANNOTATION GROUP ApiVersion NamespacedMetadata",
            "model": "Model require",
            "pods": "PodTemplate Resources",
            "recurring_record": "RecurringRecord RecurringRecordSpec RecurringRecordStatus WrittenRecord",
            "relays": "KubernetesObject RelaySpec SparkConf",
            "scaling_status": "ScalingStatus",
            "settings": (
                "AutoscalingSettings BackendSettings LatenessObjective ScheduleSettings Settings SloSettings "
                "TopicSettings"
            ),
            "status": (
                "MOST_FORMER BackendStatus BacklogStatus Condition ConditionStatus ConditionType DelayClassStatus "
                "DelayTopicStatus EffectiveStatus FormerRulesStatus Ownership PlannedAction RelayFleetStatus SloStatus "
                "TopicStatus"
            ),
            "topics": "TopicSpec",
        },
    )
