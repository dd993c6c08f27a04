"""The words that fields choose from. Enums instead of booleans: a third choice can come later."""

from __future__ import annotations

from enum import StrEnum


class Dialect(StrEnum):
    """How a record says when it is due."""

    NATIVE = "Native"


class Ids(StrEnum):
    """Whether schedules have names, to replace and cancel them by."""

    BY_HEADER = "ByHeader"
    DISABLED = "Disabled"


class Guarantee(StrEnum):
    """What a consumer of the target can rely on."""

    EXACTLY_ONCE = "ExactlyOnce"
    AT_LEAST_ONCE = "AtLeastOnce"


class BackendType(StrEnum):
    """Where schedules wait that are not due soon."""

    REDIS_ZSET = "RedisZset"
    KAFKA_BUCKETS = "KafkaBuckets"


class Partitioning(StrEnum):
    """How the target partition of a record is chosen."""

    BY_KEY = "ByKey"
    SAME_PARTITION = "SamePartition"
    ROUND_ROBIN = "RoundRobin"


class Management(StrEnum):
    """Who looks after a topic."""

    MANAGED = "Managed"
    ADOPT = "Adopt"
    OBSERVE = "Observe"


class Suspend(StrEnum):
    """What stands still on purpose."""

    NONE = "None"
    DELIVERY = "Delivery"
    INGEST = "Ingest"
    ALL = "All"


class DeletionPolicy(StrEnum):
    """What happens to pending records when the DelayTopic is deleted."""

    DRAIN = "Drain"
    RETAIN = "Retain"
    DELETE = "Delete"


class AutoscalingMode(StrEnum):
    """Who sets the number of relays."""

    OPERATOR = "Operator"
    EXTERNAL = "External"
    FIXED = "Fixed"


class ScaleToZero(StrEnum):
    """Whether there may be no relay at all."""

    NEVER = "Never"
    WHEN_NOTHING_PENDING = "WhenNothingPending"


class TopicProvisioning(StrEnum):
    """How topics come to be."""

    DIRECT = "Direct"
    STRIMZI_KAFKA_TOPIC = "StrimziKafkaTopic"
    NONE = "None"
