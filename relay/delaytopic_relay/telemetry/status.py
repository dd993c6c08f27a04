"""The /status document: pure, from what the loop holds at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from delaytopic_api.relay import (
    BucketStatus,
    Cursor,
    DueBin,
    RelayConfig,
    RelayState,
    RelayStatus,
    ShardState,
    ShardStatus,
)
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.redis.partition import Shard
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Key
from delaytopic_relay.core.partition import ShardCore
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.engine.takeover import AnyShard
from delaytopic_relay.telemetry.backlog_stats import Census, bin_edges_ms, census_of, total

NOTHING_COMMITTED = Progress(0, 0, NOTHING_DELIVERED)


@dataclass
class Tally:
    """What this process has done since its start."""

    delivered: int = 0
    dead_lettered: int = 0
    superseded: int = 0
    cancelled: int = 0
    busy_rate: float | None = None


@dataclass(frozen=True)
class Scene:
    """What the loop holds: shards at work, why others wait or fail, what is committed, where the source ends."""

    state: RelayState
    shards: Mapping[int, AnyShard] = field(default_factory=dict)
    waiting: Mapping[int, str] = field(default_factory=dict)
    committed: Mapping[int, Progress] = field(default_factory=dict)
    paused: frozenset[int] = frozenset()
    ends: Mapping[int, int] = field(default_factory=dict)
    unreadable: Mapping[int, str] = field(default_factory=dict)
    moving: frozenset[int] = frozenset()
    """Shards whose backlog was on another backend, and is not yet read again."""


def relay_status(
    config: RelayConfig, relay: str, started_at_ms: int, now_ms: int, tally: Tally, scene: Scene
) -> RelayStatus:
    """One relay and its shards, as of now."""
    look_ahead_ms = config.limits.look_ahead.ms
    censuses = {number: census_of(shard, now_ms, look_ahead_ms) for number, shard in scene.shards.items()}
    edges = bin_edges_ms(look_ahead_ms)
    shards = [_shard(number, shard, censuses[number], scene, now_ms, edges) for number, shard in scene.shards.items()]
    shards += [_waiting(number, why, scene) for number, why in scene.waiting.items()]
    whole = total(censuses.values())
    return RelayStatus(
        relay=relay,
        delay_topic=f"{config.namespace}/{config.name}",
        started_at_ms=started_at_ms,
        as_of_ms=now_ms,
        state=scene.state,
        guarantee=config.guarantee,
        backend=config.backend.type,
        delivered_total=tally.delivered,
        dead_lettered_total=tally.dead_lettered,
        superseded_total=tally.superseded,
        cancelled_total=tally.cancelled,
        busy_rate=tally.busy_rate,
        pending=whole.pending,
        overdue=whole.overdue,
        oldest_overdue_ms=whole.oldest_overdue_ms,
        next_due_ms=whole.next_due_ms,
        ingest_lag=sum(shard.ingest_lag for shard in shards),
        replay_lag=sum(shard.replay_lag for shard in shards),
        memory_bytes=sum(shard.size for shard in scene.shards.values()),
        due_histogram=_bins(whole, edges, now_ms),
        shards=sorted(shards, key=lambda shard: shard.partition),
    )


def _shard(
    number: int, shard: AnyShard, census: Census, scene: Scene, now_ms: int, edges: tuple[int, ...]
) -> ShardStatus:
    committed = scene.committed.get(number, NOTHING_COMMITTED)
    return ShardStatus(
        partition=number,
        state=_state(number, shard, scene),
        committed_offset=committed.offset,
        position=shard.position,
        cursor=_cursor(shard.cursor),
        pending=census.pending,
        overdue=census.overdue,
        next_due_ms=census.next_due_ms,
        ingest_lag=max(0, scene.ends.get(number, shard.position) - shard.position),
        replay_lag=_replay_lag(shard),
        due_histogram=_bins(census, edges, now_ms),
        redis_bytes=shard.stored_bytes if isinstance(shard, Shard) else None,
        redis_full=isinstance(shard, Shard) and shard.over_share,
        buckets=_buckets(shard) if isinstance(shard, BucketShard) else [],
        message=_message(number, shard, scene),
    )


def _replay_lag(shard: AnyShard) -> int:
    return max(0, shard.replay_until - shard.position) if shard.replaying else 0


def _buckets(shard: BucketShard) -> list[BucketStatus]:
    return [_bucket(shard, number) for number in range(len(shard.ranges.waits_ms))]


def _bucket(shard: BucketShard, number: int) -> BucketStatus:
    bucket, waits_ms = shard.buckets[number], shard.ranges.waits_ms
    waiting = bucket.waiting(number)
    return BucketStatus(
        bucket=number,
        from_delay_ms=waits_ms[number],
        to_delay_ms=waits_ms[number + 1] if number + 1 < len(waits_ms) else None,
        split=shard.ranges.is_split(number),
        pending=bucket.records,
        next_due_ms=waiting.first_ms if waiting is not None else None,
        read_at_ms=bucket.head_ms - shard.lead_ms(number) if waiting is not None else None,
    )


def _message(number: int, shard: AnyShard, scene: Scene) -> str | None:
    if number in scene.unreadable:
        return scene.unreadable[number]
    if shard.replaying:
        what = "the backlog moves here from another backend" if number in scene.moving else "reads again what it lacks"
        return f"{what}: {_replay_lag(shard)} source offsets to go"
    if not _is_counted(shard):
        return "what waits in the backend is being counted"
    if isinstance(shard, ShardCore) and not shard.admission.now.ids:
        return f"schedules with an id are refused: those that wait take {shard.ids_bytes} bytes (limits.idMemory)"
    if isinstance(shard, Shard) and shard.over_share:
        return (
            f"reading pauses: what waits takes {shard.stored_bytes} bytes of Redis, and its share of maxRedisMemory is "
            f"{shard.share_bytes}; it goes on when a quarter of that is free"
        )
    return "reading pauses: memory is full, or enough is in it" if number in scene.paused else None


def _state(number: int, shard: AnyShard, scene: Scene) -> ShardState:
    if number in scene.unreadable:
        return ShardState.FAILED
    if shard.replaying:
        return ShardState.REPLAYING
    if not _is_counted(shard):
        return ShardState.RECOVERING
    return ShardState.PAUSED if number in scene.paused else ShardState.DELIVERING


def _is_counted(shard: AnyShard) -> bool:
    return not isinstance(shard, ShardCore) or shard.counted


def _waiting(number: int, why: str, scene: Scene) -> ShardStatus:
    return ShardStatus(
        partition=number,
        state=ShardState.RECOVERING,
        committed_offset=scene.committed.get(number, NOTHING_COMMITTED).offset,
        position=0,
        pending=0,
        overdue=0,
        ingest_lag=0,
        message=why,
    )


def _cursor(key: Key) -> Cursor | None:
    return None if key == NOTHING_DELIVERED else Cursor(due_ms=key.due_ms, offset=key.offset)


def _bins(census: Census, edges: tuple[int, ...], now_ms: int) -> list[DueBin]:
    return [
        DueBin(up_to_ms=now_ms + edge, records=records) for edge, records in zip(edges, census.histogram, strict=False)
    ]
