"""The words that fields choose from. Enums instead of booleans: a third choice can come later."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class Dialect(StrEnum):
    """The way a record states its due time."""

    NATIVE = "Native"
    BLACK_BOX = "BlackBox"
    CESIUM = "Cesium"
    TIMEBRIDGE = "Timebridge"
    KASPR = "Kaspr"
    KARAFKA = "Karafka"
    SCHEDULER = "Scheduler"
    SCHEDULER_JSON = "SchedulerJson"
    REDELIVERY = "Redelivery"


class AuditMode(StrEnum):
    """The processes that an audit has."""

    JOB = "Job"
    KUBERNETES = "Kubernetes"


class AuditTables(StrEnum):
    """The format in which audits publish tables."""

    NONE = "None"
    DELTA = "Delta"


class OnRevoked(StrEnum):
    """The fate of relays whose DelayTopic may not use its class any more."""

    KEEP = "Keep"
    SUSPEND = "Suspend"


class CesiumNumbers(StrEnum):
    """The way numbers are written in Cesium's headers."""

    DECIMAL = "Decimal"
    BINARY = "Binary"


class OnMalformed(StrEnum):
    """The end of a record whose headers cannot be read."""

    DEAD_LETTER = "DeadLetter"
    DELIVER = "Deliver"


class OnBeyondMaxDelay(StrEnum):
    """The end of a record that asks for a longer delay than is allowed."""

    DEAD_LETTER = "DeadLetter"
    CLAMP = "Clamp"


class Provenance(StrEnum):
    """The use of headers that tell where a delivered record comes from."""

    STAMPED = "Stamped"
    ABSENT = "Absent"


class Ids(StrEnum):
    """The use of names, by which schedules are replaced and cancelled."""

    BY_HEADER = "ByHeader"
    BY_KEY = "ByKey"
    DISABLED = "Disabled"


class Ending(StrEnum):
    """The ways in which a schedule ends, and `NotPending` of a cancel."""

    DELIVERED = "Delivered"
    CANCELLED = "Cancelled"
    REPLACED = "Replaced"
    DEAD_LETTERED = "DeadLettered"
    NOT_PENDING = "NotPending"


class Capabilities(NamedTuple):
    """The parts beyond delivery that a dialect has; operator and relay give them to it."""

    ids: Ids
    """The way in which a record names a schedule."""
    tombstones: bool = False
    """True if a tombstone follows each delivery into the source, which is compacted then."""
    history: bool = False
    """True if a copy of each delivery goes to a history topic."""
    postpones: bool = False
    """True if a record may put off another: the relay then writes what was put off into its source again."""
    recurs: bool = False
    """True if a record may recur, where it has an id: the relay writes its occurrences into its source."""


CAPABILITIES: Final[Mapping[Dialect, Capabilities]] = {
    Dialect.NATIVE: Capabilities(Ids.BY_HEADER, recurs=True),
    Dialect.BLACK_BOX: Capabilities(Ids.DISABLED),
    Dialect.CESIUM: Capabilities(Ids.DISABLED),
    Dialect.TIMEBRIDGE: Capabilities(Ids.DISABLED),
    Dialect.KASPR: Capabilities(Ids.BY_HEADER, recurs=True),
    Dialect.KARAFKA: Capabilities(Ids.BY_KEY, tombstones=True),
    Dialect.SCHEDULER: Capabilities(Ids.BY_KEY, tombstones=True, history=True),
    Dialect.SCHEDULER_JSON: Capabilities(Ids.BY_KEY, tombstones=True),
    Dialect.REDELIVERY: Capabilities(Ids.BY_KEY, postpones=True),
}


def may_wait_together(former: Dialect, former_ids: Ids, dialect: Dialect, ids: Ids) -> bool:
    """Return whether records of both rules may wait at the same time: their ids must not be equal by chance.

    If not, an edit takes effect when nothing waits any more. So it is from a dialect whose relays write into the source
    again: no other could read that.
    """
    writes = CAPABILITIES[former].postpones or (CAPABILITIES[former].recurs and former_ids is not Ids.DISABLED)
    if writes and former is not dialect:
        return False
    before, now = _id_space(former, former_ids), _id_space(dialect, ids)
    return before is None or now is None or before == now


def _id_space(dialect: Dialect, ids: Ids) -> tuple[Dialect, Ids] | None:
    used = ids if dialect is Dialect.NATIVE else CAPABILITIES[dialect].ids
    return None if used is Ids.DISABLED else (dialect, used)


class Guarantee(StrEnum):
    """The guarantee that a consumer of the target gets."""

    EXACTLY_ONCE = "ExactlyOnce"
    AT_LEAST_ONCE = "AtLeastOnce"


class BackendType(StrEnum):
    """The place where schedules wait that are not due soon."""

    REDIS_ZSET = "RedisZset"
    KAFKA_BUCKETS = "KafkaBuckets"


class Partitioning(StrEnum):
    """The choice of a record's target partition."""

    BY_KEY = "ByKey"
    SAME_PARTITION = "SamePartition"
    ROUND_ROBIN = "RoundRobin"


class Compression(StrEnum):
    """The compression of what relays send."""

    AUTO = "Auto"
    NONE = "None"
    GZIP = "Gzip"
    SNAPPY = "Snappy"
    LZ4 = "Lz4"
    ZSTD = "Zstd"


class Management(StrEnum):
    """The party that manages a topic."""

    CREATE = "Create"
    ADOPT = "Adopt"
    OBSERVE = "Observe"


class Calendar(StrEnum):
    """The period after which an error budget is whole again, in UTC; a week begins on Monday."""

    DAY = "Day"
    WEEK = "Week"
    MONTH = "Month"


class Suspend(StrEnum):
    """Parts that are paused on request."""

    NONE = "None"
    DELIVERY = "Delivery"
    INGEST = "Ingest"
    ALL = "All"


class PendingAccess(StrEnum):
    """The clients that a relay tells what is pending, by their addresses."""

    LOOPBACK = "Loopback"
    ANYWHERE = "Anywhere"


class DeletionPolicy(StrEnum):
    """The fate of pending records when the DelayTopic is deleted."""

    DRAIN = "Drain"
    RETAIN = "Retain"
    DELETE = "Delete"


class OnRemoval(StrEnum):
    """The fate of what waits when the RecurringRecord is deleted."""

    KEEP = "Keep"
    CANCEL = "Cancel"


class AutoscalingMode(StrEnum):
    """The party that sets the number of relays."""

    OPERATOR = "Operator"
    EXTERNAL = "External"
    FIXED = "Fixed"


class ScaleToZero(StrEnum):
    """The permission to run no relay at all."""

    NEVER = "Never"
    WHEN_NOTHING_PENDING = "WhenNothingPending"


class TopicProvisioning(StrEnum):
    """The way topics are made."""

    DIRECT = "Direct"
    STRIMZI_KAFKA_TOPIC = "StrimziKafkaTopic"
    NONE = "None"
