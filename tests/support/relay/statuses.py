"""The status document that the tests of the edges show."""

from __future__ import annotations

from typing import Any

from delaytopic_api.relay import (
    BucketStatus,
    RelayState,
    RelayStatus,
    SecondClockStatus,
    ShardState,
    ShardStatus,
    UnansweredTopic,
)
from delaytopic_api.values import BackendType, Guarantee

AS_OF_MS = 1_795_269_600_000


def shard(partition: int, state: ShardState) -> ShardStatus:
    """A shard in that state, with nothing in it."""
    return ShardStatus(
        partition=partition,
        state=state,
        committed_offset=0,
        position=0,
        pending=0,
        overdue=0,
        ingest_lag=0,
        buckets=[BucketStatus(bucket=0, from_delay_ms=10_000, pending=0)],
    )


def relay_status(**changes: Any) -> RelayStatus:
    """A relay that has delivered a little, with some of it changed."""
    status = RelayStatus(
        relay="relay-0",
        delay_topic="shop/reminders",
        started_at_ms=AS_OF_MS - 60_000,
        as_of_ms=AS_OF_MS,
        state=RelayState.RUNNING,
        guarantee=Guarantee.EXACTLY_ONCE,
        backend=BackendType.REDIS_ZSET,
        speedups=True,
        delivered_total=3,
        dead_lettered_total=1,
        superseded_total=0,
        cancelled_total=0,
        pending=12,
        overdue=2,
        ingest_lag=5,
        memory_bytes=4_096,
        second_clock=SecondClockStatus(name="Redis at redis:6379", agrees=True, ahead_ms=3),
        unanswered=[UnansweredTopic(topic="orders", partition=2, since_ms=AS_OF_MS, waiting=1, message="no leader")],
    )
    return status.model_copy(update=changes)
