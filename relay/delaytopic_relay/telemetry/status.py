"""The /status document: what is pending, overdue and coming, and what each shard does. Pure.

All is counted from the shards' own indexes, never from a scan of the backlog.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from delaytopic_api.relay import (
    Cursor,
    DueBin,
    FormerRules,
    OpenTransaction,
    RelayConfig,
    RelayStatus,
    SecondClockStatus,
    ShardReason,
    ShardState,
    ShardStatus,
    UnansweredTopic,
)
from delaytopic_relay.backlog.protocol import Shard
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.done import Ahead
from delaytopic_relay.core.entries import SPEEDUPS
from delaytopic_relay.core.partition import Share
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.rules import Generation
from delaytopic_relay.core.second_clock import ClockState
from delaytopic_relay.delivery.reachability import ANY, Trouble
from delaytopic_relay.engine.snapshot import LoopSnapshot

_S, _M, _H = 1_000, 60_000, 3_600_000
EDGES_MS = (
    *(1 * _S, 2 * _S, 5 * _S, 10 * _S, 20 * _S, 30 * _S),
    *(1 * _M, 2 * _M, 5 * _M, 10 * _M, 20 * _M, 30 * _M),
    *(1 * _H, 2 * _H, 5 * _H, 10 * _H),
)
"""Ends of bins, relative to now: times that people say in one word. The look-ahead is no longer than a day."""


class BacklogStats(NamedTuple):
    """One shard's backlog; `histogram` counts what is due up to each bin edge and after the one before.

    Of those `pending`, at least so many are `withdrawn`; the histogram is without them.
    """

    pending: int
    overdue: int
    oldest_overdue_ms: int | None
    next_due_ms: int | None
    histogram: tuple[int, ...]
    withdrawn: int = 0


def bin_edges_ms(look_ahead_ms: int) -> tuple[int, ...]:
    """Ends of the histogram's bins, relative to now: those within the look-ahead, and the look-ahead itself."""
    return (*(edge for edge in EDGES_MS if edge < look_ahead_ms), look_ahead_ms)


def backlog_stats(shard: Shard, now_ms: int, look_ahead_ms: int) -> BacklogStats:
    """Count one shard; what lies in a wide slice is spread evenly over it."""
    edges = bin_edges_ms(look_ahead_ms)
    bins, overdue, _ = _counts(shard.spans(), edges, now_ms)
    without, _, withdrawn = _counts(shard.withdrawn(), edges, now_ms)
    histogram = tuple(max(0, round(each - gone)) for each, gone in zip(bins[:-1], without[:-1], strict=True))
    next_due_ms = shard.next_due_ms()
    oldest = next_due_ms if next_due_ms is not None and next_due_ms <= now_ms else None
    return BacklogStats(shard.pending, round(overdue), oldest, next_due_ms, histogram, min(withdrawn, shard.pending))


def _counts(
    spans: Iterable[tuple[int, int, int]], edges: tuple[int, ...], now_ms: int
) -> tuple[list[float], float, int]:
    """Count the records of spans: in each bin and beyond the last, those that are late, and all."""
    bins = [0.0] * (len(edges) + 1)
    overdue, whole = 0.0, 0
    for start_ms, width_ms, records in spans:
        late = records * _share(start_ms, width_ms, now_ms)
        overdue += late
        whole += records
        _spread(bins, edges, max(0, start_ms - now_ms), start_ms + width_ms - now_ms, records - late)
    return bins, overdue, whole


def _share(start_ms: int, width_ms: int, until_ms: int) -> float:
    """Return how much of a span lies before a time."""
    return min(1.0, max(0.0, (until_ms - start_ms) / width_ms))


def _spread(bins: list[float], edges: tuple[int, ...], start_ms: int, end_ms: int, records: float) -> None:
    """Add records due evenly between two times relative to now."""
    if records <= 0:
        return
    width_ms = end_ms - start_ms
    first, last = bisect_left(edges, start_ms), bisect_left(edges, end_ms - 1)
    if first == last:
        bins[first] += records
        return
    done = 0.0
    for partition in range(first, last + 1):
        share = _share(start_ms, width_ms, edges[partition]) if partition < len(edges) else 1.0
        bins[partition] += records * (share - done)
        done = share


def total(by_partition: Iterable[BacklogStats]) -> BacklogStats:
    """Several shards taken together."""
    pending = overdue = withdrawn = 0
    oldest: list[int] = []
    next_due: list[int] = []
    histogram: list[int] = []
    for stats in by_partition:
        pending += stats.pending
        overdue += stats.overdue
        withdrawn += stats.withdrawn
        oldest += [stats.oldest_overdue_ms] if stats.oldest_overdue_ms is not None else []
        next_due += [stats.next_due_ms] if stats.next_due_ms is not None else []
        histogram = (
            [a + b for a, b in zip(histogram, stats.histogram, strict=True)] if histogram else [*stats.histogram]
        )
    return BacklogStats(
        pending, overdue, min(oldest, default=None), min(next_due, default=None), tuple(histogram), withdrawn
    )


NOTHING_COMMITTED = Progress(0, 0, NOTHING_DELIVERED)


@dataclass
class Counters:
    """Counts of what this process has done since its start."""

    delivered: int = 0
    dead_lettered: int = 0
    superseded: int = 0
    cancelled: int = 0
    misspelt: int = 0
    ancient: int = 0
    misspelt_header: str | None = None
    busy_rate: float | None = None


def relay_status(
    config: RelayConfig, relay: str, started_at_ms: int, now_ms: int, counters: Counters, snapshot: LoopSnapshot
) -> RelayStatus:
    """One relay and its shards, as of now."""
    look_ahead_ms = config.limits.look_ahead.ms
    by_partition = {
        partition: backlog_stats(shard, now_ms, look_ahead_ms) for partition, shard in snapshot.shards.items()
    }
    edges = bin_edges_ms(look_ahead_ms)
    shards = [
        _shard(partition, shard, by_partition[partition], snapshot, now_ms, edges)
        for partition, shard in snapshot.shards.items()
    ]
    shards += [_waiting(partition, why, snapshot) for partition, why in snapshot.waiting.items()]
    whole = total(by_partition.values())
    return RelayStatus(
        relay=relay,
        delay_topic=f"{config.namespace}/{config.name}",
        started_at_ms=started_at_ms,
        as_of_ms=now_ms,
        state=snapshot.state,
        guarantee=config.guarantee,
        backend=config.backend.type,
        speedups=SPEEDUPS,
        delivered_total=counters.delivered,
        dead_lettered_total=counters.dead_lettered,
        superseded_total=counters.superseded,
        cancelled_total=counters.cancelled,
        misspelt_total=counters.misspelt,
        ancient_total=counters.ancient,
        misspelt_header=counters.misspelt_header,
        second_clock=_second_clock(snapshot.clock),
        busy_rate=counters.busy_rate,
        pending=whole.pending,
        withdrawn=whole.withdrawn,
        overdue=whole.overdue,
        oldest_overdue_ms=whole.oldest_overdue_ms,
        next_due_ms=whole.next_due_ms,
        ingest_lag=sum(shard.ingest_lag for shard in shards),
        replay_lag=sum(shard.replay_lag for shard in shards),
        memory_bytes=sum(shard.size for shard in snapshot.shards.values()),
        due_histogram=_bins(whole, edges, now_ms),
        shards=sorted(shards, key=lambda shard: shard.partition),
        unanswered=[*_unanswered(snapshot)],
    )


def _second_clock(clock: ClockState | None) -> SecondClockStatus | None:
    if clock is None:
        return None
    return SecondClockStatus(
        name=clock.name, agrees=clock.believed, ahead_ms=clock.ahead_ms, message=clock.message, trouble=clock.trouble
    )


def _unanswered(snapshot: LoopSnapshot) -> Iterable[UnansweredTopic]:
    waiting = Counter(each.destination for each in snapshot.held.values())
    troubles = {each.destination: each for each in (*snapshot.held.values(), *snapshot.refused.values())}
    for (topic, partition), trouble in sorted(troubles.items()):
        yield UnansweredTopic(
            topic=topic,
            partition=partition if partition != ANY else None,
            since_ms=trouble.since_ms,
            waiting=waiting[trouble.destination],
            message=trouble.seen,
        )


def _held(trouble: Trouble) -> str:
    if trouble.further:
        return f"it waits some seconds: {trouble.text}"
    return f"it waits for a topic: {trouble.text}; it goes on by itself when that answers"


def _shard(
    partition: int, shard: Shard, stats: BacklogStats, snapshot: LoopSnapshot, now_ms: int, edges: tuple[int, ...]
) -> ShardStatus:
    committed, share = snapshot.committed.get(partition, NOTHING_COMMITTED), shard.share
    transaction = snapshot.open_transactions.get(partition)
    end = snapshot.ends.get(partition, shard.position) if transaction is None else transaction.offset
    return ShardStatus(
        partition=partition,
        state=_state(partition, shard, snapshot),
        committed_offset=committed.offset,
        position=shard.position,
        cursor=_cursor(shard.cursor),
        pending=stats.pending,
        withdrawn=stats.withdrawn,
        overdue=stats.overdue,
        next_due_ms=stats.next_due_ms,
        ingest_lag=max(0, end - shard.position),
        replay_lag=_replay_lag(shard),
        due_histogram=_bins(stats, edges, now_ms),
        redis_bytes=share.used_bytes if share is not None else None,
        redis_full=share is not None and (share.full or share.refused_bytes > 0),
        buckets=shard.bucket_status(),
        former_rules=[_former_rules(each, shard) for each in shard.former_rules],
        rules_wait=snapshot.rules_wait.get(partition),
        reason=_reason(partition, snapshot),
        open_transaction=OpenTransaction.model_validate(transaction._asdict()) if transaction is not None else None,
        missing_offsets=snapshot.missing.get(partition, 0),
        message=_message(partition, shard, snapshot, now_ms),
    )


def _reason(partition: int, snapshot: LoopSnapshot) -> ShardReason | None:
    if partition in snapshot.still:
        return snapshot.still[partition].reason
    if partition in snapshot.held:
        return ShardReason.TARGET_UNAVAILABLE
    return ShardReason.RETENTION_PASSED if partition in snapshot.missing else None


def _former_rules(generation: Generation, shard: Shard) -> FormerRules:
    rules, last_due_ms = generation.rules, generation.last.due_ms
    return FormerRules(
        dialect=rules.dialect,
        max_delay_ms=rules.max_delay_ms,
        default_delay_ms=rules.default_delay_ms,
        fixed_delay_ms=rules.delay_ms,
        ids=rules.ids,
        allowed_topics=[*rules.allowed] if rules.allowed is not None else ["*"],
        declared_ms=generation.declared_ms,
        last_due_ms=last_due_ms,
        records=sum(records for start_ms, _, records in shard.spans() if start_ms <= last_due_ms),
    )


def _replay_lag(shard: Shard) -> int:
    return max(0, shard.replay_until - shard.position) if shard.replaying else 0


def _message(partition: int, shard: Shard, snapshot: LoopSnapshot, now_ms: int) -> str | None:
    if partition in snapshot.unreadable:
        return snapshot.unreadable[partition]
    if partition in snapshot.still:
        return str(snapshot.still[partition])
    if partition in snapshot.held:
        return _held(snapshot.held[partition])
    if shard.replaying:
        what = (
            "the backlog moves here from another backend"
            if partition in snapshot.moving
            else "reads again what it lacks"
        )
        return f"{what}: {_replay_lag(shard)} source offsets to go"
    if not shard.counted:
        return "what waits in the backend is being counted"
    if snapshot.clock is not None and not snapshot.clock.believed:
        return snapshot.clock.message
    return _of_reading(partition, shard, snapshot, now_ms)


def _of_reading(partition: int, shard: Shard, snapshot: LoopSnapshot, now_ms: int) -> str | None:
    """Say why a shard that delivers does not read on, or what it could not read."""
    if shard.refuses_ids:
        return f"schedules with an id are refused: those that wait take {shard.ids_bytes} bytes (limits.idMemory)"
    if shard.share is not None and (full := _full(shard.share)):
        return full
    if partition in snapshot.deferring:
        return _deferring(shard, snapshot, now_ms)
    if partition in snapshot.paused:
        return "reading pauses: memory is full, or enough is in it"
    if shard.done.ahead is not None:
        return _gone_back(shard.done.ahead)
    transaction = snapshot.open_transactions.get(partition)
    if transaction is not None and transaction.lasts(now_ms):
        return transaction.describe()
    missing = snapshot.missing.get(partition)
    return f"the source's retention had deleted {missing} offsets that were to be read" if missing else None


def _deferring(shard: Shard, snapshot: LoopSnapshot, now_ms: int) -> str:
    """Say why a record that would have to leave at once may not, and keeps what follows it from being read."""
    if snapshot.suspended:
        return "reading pauses: delivery is suspended, and the next record would have to leave at once"
    ahead_ms = max(0, shard.cursor.due_ms - now_ms)
    return (
        f"reading pauses for {ahead_ms} ms: the clock of a relay that delivered here was ahead by that, or this one is "
        "behind, and the next record is due before what was delivered already; have a time server set the clocks"
    )


def _gone_back(ahead: Ahead) -> str:
    return (
        f"the clock of a relay that delivered here was ahead: of the offsets below {ahead.before}, what is due up to "
        f"{ahead.until.due_ms} was delivered before its time; what comes is delivered in time"
    )


def _full(share: Share) -> str | None:
    """Say what a full backlog, or a share that is used up, means for the shard."""
    if share.refused_bytes:
        return (
            f"Redis is full: {share.refused_bytes} bytes wait in memory until it has room, and from 4 MiB on further "
            "records in the source. What waits in Redis is delivered in time"
        )
    if not share.full:
        return None
    return (
        f"reading pauses: what waits takes {share.used_bytes} bytes of Redis, and its share is {share.limit_bytes} "
        "(limits.maxRedisMemory, or else as much as Redis has left); it goes on when a quarter of that is free"
    )


def _state(partition: int, shard: Shard, snapshot: LoopSnapshot) -> ShardState:
    if partition in snapshot.unreadable or partition in snapshot.still:
        return ShardState.FAILED
    if shard.replaying:
        return ShardState.REPLAYING
    if not shard.counted:
        return ShardState.RECOVERING
    return ShardState.PAUSED if partition in snapshot.paused or partition in snapshot.held else ShardState.DELIVERING


def _waiting(partition: int, why: str, snapshot: LoopSnapshot) -> ShardStatus:
    still, held = snapshot.still.get(partition), snapshot.held.get(partition)
    if still is None and held is not None:
        why = _held(held)
    return ShardStatus(
        partition=partition,
        state=ShardState.FAILED if still is not None else ShardState.RECOVERING,
        committed_offset=snapshot.committed.get(partition, NOTHING_COMMITTED).offset,
        position=0,
        pending=0,
        overdue=0,
        ingest_lag=0,
        reason=_reason(partition, snapshot),
        message=str(still) if still is not None else why,
    )


def _cursor(key: DueKey) -> Cursor | None:
    return None if key == NOTHING_DELIVERED else Cursor(due_ms=key.due_ms, offset=key.offset)


def _bins(stats: BacklogStats, edges: tuple[int, ...], now_ms: int) -> list[DueBin]:
    return [
        DueBin(up_to_ms=now_ms + edge, records=records) for edge, records in zip(edges, stats.histogram, strict=False)
    ]
