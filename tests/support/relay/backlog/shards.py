"""Shards in the state that a test needs; nobody else calls their constructors."""

from __future__ import annotations

from collections.abc import Mapping

from delaytopic_relay.backlog.fixed import FixedShard
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.redis.shard import UNLIMITED_BYTES, RedisShard
from delaytopic_relay.backlog.store import END_MS, Page, Slice, StoreVersion
from delaytopic_relay.core.bucket_state import BucketsState
from delaytopic_relay.core.commands import NOTHING_DELIVERED
from delaytopic_relay.core.progress import Progress

FRESH = Progress(0, 0, NOTHING_DELIVERED)
CLAIM = StoreVersion("me", 1, 0)
NOTHING_STORED = BucketsState(0, 0, ())
HORIZON_MS = 10_000


def redis_shard(
    progress: Progress = FRESH,
    start: int | None = None,
    claim: StoreVersion = CLAIM,
    index: Mapping[Slice, int] | None = None,
    horizon_ms: int = HORIZON_MS,
    partition: int = 0,
) -> RedisShard:
    """Open a shard that reads from `start` on, or the committed offset, and knows that these slices are stored."""
    shard = unlisted_shard(progress, start, claim, horizon_ms, partition=partition)
    shard.listed(Page(index or {}, END_MS))
    return shard


def unlisted_shard(
    progress: Progress = FRESH,
    start: int | None = None,
    claim: StoreVersion = CLAIM,
    horizon_ms: int = HORIZON_MS,
    share_bytes: int = UNLIMITED_BYTES,
    partition: int = 0,
) -> RedisShard:
    """Open a shard that has not asked yet which slices are stored."""
    first = progress.offset if start is None else start
    return RedisShard(partition, progress, first, claim, horizon_ms, share_bytes)


def bucket_shard(rules: BucketRules, progress: Progress = FRESH, state: BucketsState = NOTHING_STORED) -> BucketShard:
    """Open a shard whose buckets are in this state, and that knows of no ids."""
    return BucketShard(0, progress, progress.offset, state, {}, rules)


def fixed_shard(
    progress: Progress = FRESH, start: int | None = None, partition: int = 0, horizon_ms: int = HORIZON_MS
) -> FixedShard:
    """Open a shard of a fixed delay."""
    return FixedShard(partition, progress, progress.offset if start is None else start, horizon_ms)
