"""Values that documents and records are made of: durations, quantities, percentages, names, URLs."""

from __future__ import annotations

from delaytopic_api.values.bucket_topics import (
    BucketTopic,
    bucket_count,
    bucket_name,
    bucket_names,
    bucket_topics,
    ids_name,
    same_name,
    source_mark,
    unified,
)
from delaytopic_api.values.choices import (
    CAPABILITIES,
    AuditMode,
    AutoscalingMode,
    BackendType,
    Calendar,
    Capabilities,
    CesiumNumbers,
    Compression,
    DeletionPolicy,
    Dialect,
    Guarantee,
    Ids,
    Management,
    OnBeyondMaxDelay,
    OnMalformed,
    OnRevoked,
    Partitioning,
    PendingAccess,
    Provenance,
    ScaleToZero,
    Suspend,
    TopicProvisioning,
    may_wait_together,
)
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.duration import Duration, between
from delaytopic_api.values.names import Glob, Namespace, SecretName, Sha256, covers, glob_matcher, topic_matcher
from delaytopic_api.values.percent import Percent
from delaytopic_api.values.quantity import Quantity
from delaytopic_api.values.redis_url import REDIS_URLS, RedisAddress, parse_redis_url
from delaytopic_api.values.reserved_topics import GATEWAY_TOPICS, is_reserved
from delaytopic_api.values.time_zone import TimeZone
from delaytopic_api.values.topic_config import MOST_MESSAGE_BYTES
from delaytopic_api.values.whole_minute import WholeMinute

__all__ = [
    "CAPABILITIES",
    "GATEWAY_TOPICS",
    "MOST_MESSAGE_BYTES",
    "REDIS_URLS",
    "AuditMode",
    "AutoscalingMode",
    "BackendType",
    "BucketTopic",
    "Calendar",
    "Capabilities",
    "CesiumNumbers",
    "Checked",
    "Compression",
    "DeletionPolicy",
    "Dialect",
    "Duration",
    "Glob",
    "Guarantee",
    "Ids",
    "Management",
    "Namespace",
    "OnBeyondMaxDelay",
    "OnMalformed",
    "OnRevoked",
    "Partitioning",
    "PendingAccess",
    "Percent",
    "Provenance",
    "Quantity",
    "RedisAddress",
    "Rule",
    "ScaleToZero",
    "SecretName",
    "Sha256",
    "Suspend",
    "TimeZone",
    "TopicProvisioning",
    "WholeMinute",
    "between",
    "bucket_count",
    "bucket_name",
    "bucket_names",
    "bucket_topics",
    "covers",
    "glob_matcher",
    "ids_name",
    "is_reserved",
    "may_wait_together",
    "parse_redis_url",
    "same_name",
    "source_mark",
    "topic_matcher",
    "unified",
]
