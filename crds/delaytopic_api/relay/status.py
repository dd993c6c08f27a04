"""RelayStatus, the JSON that a relay answers `GET /status` with. Times are epoch milliseconds."""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, ConfigDict, FailFast, Field, WithJsonSchema

from delaytopic_api.relay.model import RelayModel
from delaytopic_api.values.choices import BackendType, Dialect, Guarantee, Ids


def _at_the_nearest(least: int, most: int) -> AfterValidator:
    return AfterValidator(lambda number: min(max(number, least), most))


# A relay counts what is stored, and a page is read: both may be forged. Neither a relay nor its reader ends by that, so
# a number that none of them can mean is the nearest that they can. A page has a hundred numbers, and lists that are not
# there: a call of Python for each took most of the time of reading it. So the bounds are tried first, which takes none,
# and defaults are made, not copied.
_IN_TURN: Final = Field(union_mode="left_to_right")
_WHOLE: Final = WithJsonSchema({"type": "integer"})
_LEAST, _MOST = -(2**63), 2**63 - 1
Int64 = Annotated[
    Annotated[int, Field(ge=_LEAST, le=_MOST)] | Annotated[int, _at_the_nearest(_LEAST, _MOST)], _IN_TURN, _WHOLE
]
"""Any number of a relay. No float holds larger ones, with which readers calculate."""
_FIRST, _LAST = -30_610_224_000_000, 253_402_300_799_999
EpochMs = Annotated[
    Annotated[int, Field(ge=_FIRST, le=_LAST)] | Annotated[int, _at_the_nearest(_FIRST, _LAST)], _IN_TURN, _WHOLE
]
"""A time that is written with a year of four digits: of the years 1000 to 9999."""

LATENESS_EDGES_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1_000, 2_000, 5_000, 10_000, 30_000),
    *(60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000),
)
"""Upper edges of the buckets of `delaytopic_lateness_seconds`, on a relay's page of metrics."""


def lateness_bucket(threshold_ms: int) -> str:
    """Return the bucket whose edge is the nearest that is not below a threshold, as its label `le` says it."""
    place = bisect_left(LATENESS_EDGES_MS, threshold_ms)
    return str(LATENESS_EDGES_MS[place] / 1_000) if place < len(LATENESS_EDGES_MS) else "+Inf"


class RelayState(StrEnum):
    """The state of the process."""

    STARTING = "Starting"
    RUNNING = "Running"
    DRAINING = "Draining"


class ShardState(StrEnum):
    """The state of one source partition."""

    RECOVERING = "Recovering"
    REPLAYING = "Replaying"
    DELIVERING = "Delivering"
    PAUSED = "Paused"
    FAILED = "Failed"


class ShardReason(StrEnum):
    """The reason why a source partition stands still, or has lost something."""

    TOPIC_CHANGED = "TopicChanged"
    """The committed offsets are of another topic of this name."""
    CLUSTER_CHANGED = "ClusterChanged"
    """The committed offsets are of another cluster."""
    LOG_TRUNCATED = "LogTruncated"
    """The source ends, or was cut, below what was taken in."""
    OFFSETS_LOST = "OffsetsLost"
    """The backlog shows a former life of which no offset, or no metadata, is committed."""
    BATCH_UNREADABLE = "BatchUnreadable"
    """A batch of the source is damaged, or takes more memory to unpack than a relay has for it."""
    RETENTION_PASSED = "RetentionPassed"
    """The source's retention has deleted what was to be read; the partition goes on without it."""
    TARGET_UNAVAILABLE = "TargetUnavailable"
    """A topic that its records go to does not answer; the partition goes on by itself when it does."""


class _Status(RelayModel):
    # A reader may be older than the relay.
    model_config = ConfigDict(extra="ignore")


class DueBin(_Status):
    """The number of records due in one span, from the end of the bin before (at first: now) to its own."""

    up_to_ms: EpochMs
    """The bin's end."""
    records: Int64
    """Due in it."""


class Cursor(_Status):
    """The last delivered schedule of a shard, in the order of delivery."""

    due_ms: EpochMs
    """Its due time."""
    offset: Int64
    """Its source offset."""


class BucketStatus(_Status):
    """One bucket of a shard, with the KafkaBuckets backend."""

    bucket: Int64
    """Its number, the last part of its topic's name."""
    from_delay_ms: Int64
    """It takes what is due in at least so long."""
    to_delay_ms: Int64 | None = None
    """And in less than this; null for the last one."""
    split: bool = False
    """True if the upper part of its range was given to the bucket above, because it was too full."""
    pending: Int64
    """Records that wait in it (copies counted too)."""
    next_due_ms: EpochMs | None = None
    """The time before which nothing that waits in it is due; null when nothing waits."""
    read_at_ms: EpochMs | None = None
    """The time at which the next of it is read; null when nothing waits."""


class FormerRules(_Status):
    """Rules of the DelayTopic before an edit, by which records were read that still wait."""

    dialect: Dialect
    """The headers that were read."""
    max_delay_ms: Int64
    """The longest delay that was taken."""
    default_delay_ms: Int64 | None = None
    """The delay of records without a time header; null for at once."""
    fixed_delay_ms: Int64 | None = None
    """The delay of every record; null where records say it."""
    ids: Ids
    """The use of names."""
    allowed_topics: Annotated[list[str], FailFast()] = Field(default_factory=list)
    """The topics that records could name besides the target: `*` where that is asked when they are due alone."""
    declared_ms: EpochMs = 0
    """The time at which they were declared; 0 where that is not known."""
    last_due_ms: EpochMs
    """The time at which the last of the records is due."""
    records: Int64
    """The most records that wait; some of them may have been read by later rules."""


class OpenTransaction(_Status):
    """A transaction of a producer that keeps a source partition from being read further."""

    offset: Int64
    """The offset of its first record, the first that a relay cannot read: the partition's last stable offset."""
    since_ms: EpochMs
    """The time at which the relay first saw it; it may be older."""
    held_back: Int64
    """Source offsets from there to the end: none of them is read before the transaction ends, whoever wrote it."""


class ShardStatus(_Status):
    """One source partition."""

    partition: Int64
    """Its number."""
    state: ShardState
    """The state of the partition."""
    committed_offset: Int64
    """The offset at which a successor starts to read."""
    position: Int64
    """All offsets below are taken in."""
    cursor: Cursor | None = None
    """The last delivered schedule; null before the first."""
    pending: Int64
    """Taken in and not yet delivered; those that were cancelled or replaced count until their place in the order."""
    withdrawn: Int64 = 0
    """The least number of these that were cancelled or replaced, as far as this relay knows."""
    overdue: Int64
    """Due and not yet delivered."""
    next_due_ms: EpochMs | None = None
    """The nearest due time; null when nothing is pending."""
    ingest_lag: Int64
    """Records of the source not yet taken in, without those that an open transaction holds back."""
    replay_lag: Int64 = 0
    """Source offsets that were taken in before and are still to be read again, before anything is delivered.

    After a crash that is what only memory held; after a change of the backend it is the backlog, still to be moved.
    """
    due_histogram: Annotated[list[DueBin], FailFast()] = Field(default_factory=list)
    """Due times ahead."""
    redis_bytes: Int64 | None = None
    """The memory of Redis that its backlog takes, about; null with another backend."""
    redis_full: bool = False
    """True if Redis has no room for what is read: it is full, or the partition has used up its share."""
    buckets: Annotated[list[BucketStatus], FailFast()] = Field(default_factory=list)
    """Its buckets, the nearest first; empty with another backend."""
    former_rules: Annotated[list[FormerRules], FailFast()] = Field(default_factory=list)
    """Rules of before an edit by which records wait, the oldest first; each record keeps those that it was read by."""
    rules_wait: str | None = None
    """The reason why the latest edit is not in force yet; null if it is."""
    reason: str | None = None
    """The reason why it stands still or has lost something, in a word of `ShardReason`; null without one."""
    open_transaction: OpenTransaction | None = None
    """A transaction of a producer that is open for some seconds; null without one."""
    missing_offsets: Int64 = 0
    """Source offsets that were to be read, and that the source's retention had deleted when this relay took over."""
    message: str | None = None
    """The reason why it is paused, failed or replaying."""


class LastOccurrence(_Status):
    """The JSON that a relay answers `GET /occurrence?id=ID` with: the last delivery of a record that recurs."""

    number: Int64
    """Its number, from 1 on."""
    slot_ms: EpochMs
    """The time of the rule that it is of."""
    sent_ms: EpochMs
    """The time at which it was sent."""

    def to_json(self) -> str:
        """Return the answer."""
        return self.model_dump_json(by_alias=True)


class SecondClockStatus(_Status):
    """The comparison of the relay's clock with the backend's."""

    name: str
    """The other clock, such as `Redis at db:6379`."""
    agrees: bool
    """False while nothing is delivered: the relay's clock is ahead of the other one, or was not compared yet."""
    ahead_ms: Int64 | None = None
    """The time by which the relay's clock is ahead, about; below 0 if it is behind, null before the first answer."""
    message: str | None = None
    """The trouble with the clocks, and what follows; null while there is none."""
    trouble: str | None = None
    """The reason why the other clock did not answer the last question; null if it did."""


class UnansweredTopic(_Status):
    """A topic, or one partition of it, that does not answer, or takes nothing."""

    topic: str
    """The topic."""
    partition: Int64 | None = None
    """Its partition; null for a further target as a whole."""
    since_ms: EpochMs
    """The time since which it takes nothing."""
    waiting: Int64 = 0
    """Source partitions that wait for it; with none, records for it go to the dead-letter topic."""
    message: str
    """The latest that is known to be wrong with it."""


FOR_OPERATOR: Final = "for=operator"
"""The query of `/status`, behind its question mark, by which the operator asks."""
_NOT_FOR_OPERATORS: Final[dict[str, Any]] = {
    "unanswered": True,
    "shards": {
        "__all__": {
            *("buckets", "cursor", "due_histogram", "missing_offsets", "open_transaction", "redis_bytes"),
        }
    },
}


class RelayStatus(_Status):
    """One relay process and its shards."""

    relay: str
    """The instance."""
    delay_topic: str
    """`namespace/name`."""
    started_at_ms: EpochMs
    """The time at which the process started."""
    as_of_ms: EpochMs
    """The time of the count."""
    state: RelayState
    """The state of the process."""
    guarantee: Guarantee
    """ExactlyOnce or AtLeastOnce."""
    backend: BackendType
    """RedisZset or KafkaBuckets."""
    speedups: bool
    """True if it runs with its speedups in C; without them it is Python alone."""
    delivered_total: Int64
    """Since the start."""
    dead_lettered_total: Int64
    """Since the start."""
    superseded_total: Int64
    """Replaced by a newer schedule of the same id, since the start."""
    cancelled_total: Int64
    """Since the start."""
    misspelt_total: Int64 = 0
    """Records without a control header, and with a header whose name resembles one, since the start."""
    misspelt_header: str | None = None
    """The name of the last such header, such as `Deliver-After`."""
    second_clock: SecondClockStatus | None = None
    """The relay's clock beside the backend's; null where they are not compared."""
    ancient_total: Int64 = 0
    """Delivered records that were due in 1973 or before, since the start: mostly their producer wrote seconds."""
    busy_rate: Annotated[float, Field(allow_inf_nan=False, ge=0, le=2**63)] | None = None
    """Delivered per second while more was due than one batch holds; null before that ever was."""
    pending: Int64
    """Taken in and not yet delivered; those that were cancelled or replaced count until their place in the order."""
    withdrawn: Int64 = 0
    """The least number of these that were cancelled or replaced, as far as this relay knows."""
    overdue: Int64
    """Due and not yet delivered."""
    oldest_overdue_ms: EpochMs | None = None
    """The due time of the oldest overdue record."""
    next_due_ms: EpochMs | None = None
    """The nearest due time."""
    ingest_lag: Int64
    """Records of the source not yet taken in."""
    replay_lag: Int64 = 0
    """Source offsets still to be read again, of all shards."""
    memory_bytes: Int64
    """Held by schedules in memory."""
    due_histogram: Annotated[list[DueBin], FailFast()] = Field(default_factory=list)
    """Due times ahead, up to the look-ahead."""
    shards: Annotated[list[ShardStatus], FailFast()] = Field(default_factory=list)
    """The source partitions of this relay."""
    unanswered: Annotated[list[UnansweredTopic], FailFast()] = Field(default_factory=list)
    """Topics that relays of this DelayTopic send to, and that do not answer."""

    def to_json(self) -> str:
        """Return the answer of `GET /status`: absent values are null."""
        return self.model_dump_json(by_alias=True)

    def to_operator_json(self) -> str:
        """Return the answer of `GET /status?for=operator`: the same document, without what an operator does not read,
        so that the pages of 10,000 partitions have room in it.

        The histogram is that of the relay alone, and a value that is its default is left out.
        """
        return self.model_dump_json(by_alias=True, exclude_defaults=True, exclude=_NOT_FOR_OPERATORS)
