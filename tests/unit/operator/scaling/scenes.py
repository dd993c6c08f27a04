"""Fleets as the operator sees them: 12 partitions, 2,500 records a second and relay, a lead time of 45 s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from delaytopic_api.documents import AutoscalingSettings
from delaytopic_api.relay import DueBin, RelayState, RelayStatus, ShardState, ShardStatus
from delaytopic_api.values import AutoscalingMode, BackendType, Duration, Guarantee, Percent, ScaleToZero
from delaytopic_operator.scaling.assessment import ScalingPolicy
from delaytopic_operator.scaling.capacity import Capacity, LeadTime, RateEstimate
from delaytopic_operator.scaling.decision import Decision, decide
from delaytopic_operator.scaling.need import DueCurve, Span
from delaytopic_operator.scaling.signals import FleetSignals, PartitionOffsets, Reading, SourceOffsets, gather
from delaytopic_operator.scaling.state import ScalingMemory, Watch

NOW_MS = 1_800_000_000_000
PARTITIONS = 12
PER_SECOND = 2_500
LEAD_MS = 45_000
END = 1_000
"""Of each partition."""

AUTOSCALING = AutoscalingSettings(
    mode=AutoscalingMode.OPERATOR,
    replicas=1,
    min_replicas=1,
    max_replicas=None,
    scale_to_zero=ScaleToZero.NEVER,
    look_ahead=Duration("10m"),
    scale_down_stabilization=Duration("5m"),
    target_utilization=Percent("60%"),
)
POLICY = ScalingPolicy(AUTOSCALING, precision_ms=1_000)
SLEEPY = ScalingPolicy(replace(AUTOSCALING, scale_to_zero=ScaleToZero.WHEN_NOTHING_PENDING), precision_ms=1_000)
QUIET = {1: 0, 10: 0, 60: 0, 600: 0}
"""A histogram without records."""


def policy(precision_ms: int = 1_000, **autoscaling: object) -> ScalingPolicy:
    """With other autoscaling settings."""
    return ScalingPolicy(replace(AUTOSCALING, **autoscaling), precision_ms)  # type: ignore[arg-type]


def status(
    shards: Mapping[int, ShardStatus] | None = None, relay: str = "relay-0", as_of_ms: int = NOW_MS, **fields: object
) -> RelayStatus:
    """One relay's answer."""
    answer = RelayStatus(
        relay=relay,
        delay_topic="shop/reminders",
        started_at_ms=NOW_MS - 3_600_000,
        as_of_ms=as_of_ms,
        state=RelayState.RUNNING,
        guarantee=Guarantee.EXACTLY_ONCE,
        backend=BackendType.REDIS_ZSET,
        speedups=True,
        delivered_total=0,
        dead_lettered_total=0,
        superseded_total=0,
        cancelled_total=0,
        pending=0,
        overdue=0,
        ingest_lag=0,
        memory_bytes=0,
        shards=list((shards or {}).values()),
    )
    return answer.model_copy(update=fields)


def shard(
    number: int,
    due: Mapping[int, int] = QUIET,
    overdue: int = 0,
    lag: int = 0,
    state: ShardState = ShardState.DELIVERING,
    now_ms: int = NOW_MS,
) -> ShardStatus:
    """One partition; `due` maps bin ends in seconds from now to records."""
    pending = overdue + sum(due.values())
    return ShardStatus(
        partition=number,
        state=state,
        committed_offset=END - lag,
        position=END - lag,
        pending=pending,
        overdue=overdue,
        next_due_ms=now_ms + 1_000 if pending else None,
        ingest_lag=lag,
        due_histogram=[DueBin(up_to_ms=now_ms + 1_000 * upto, records=records) for upto, records in due.items()],
    )


def source(now_ms: int = NOW_MS, partitions: int = PARTITIONS, end: int = END) -> SourceOffsets:
    """Kafka's answer."""
    each = PartitionOffsets(log_start=0, end=end, committed=END)
    return SourceOffsets(now_ms, partitions, dict.fromkeys(range(partitions), each))


def dealt(records: int, partitions: int) -> list[int]:
    """Records over partitions, as evenly as it goes."""
    each, rest = divmod(records, partitions)
    return [each + (number < rest) for number in range(partitions)]


def signals(
    due: Mapping[int, int] = QUIET,
    overdue: int = 0,
    lag: int = 0,
    now_ms: int = NOW_MS,
    partitions: int = PARTITIONS,
) -> FleetSignals:
    """Everything known, in one relay's answer; records of the whole topic are dealt over its partitions."""
    bins = {upto: dealt(records, partitions) for upto, records in due.items()}
    late, behind = dealt(overdue, partitions), dealt(lag, partitions)
    shards = {
        number: shard(
            number, {upto: each[number] for upto, each in bins.items()}, late[number], behind[number], now_ms=now_ms
        )
        for number in range(partitions)
    }
    return gather([status(shards, as_of_ms=now_ms)], source(now_ms, partitions), now_ms)


def memory(replicas: int, lead_ms: int = LEAD_MS, watched_ms: int = 3_600_000, now_ms: int = NOW_MS) -> ScalingMemory:
    """An operator that has watched this fleet for an hour and measured what it can do; nothing was wanted lately."""
    return ScalingMemory(
        partitions=PARTITIONS,
        replicas=replicas,
        watch=Watch(now_ms - 15_000, now_ms - 15_000, now_ms - 15_000, now_ms - watched_ms),
        capacity=Capacity(delivery=RateEstimate(remembered=PER_SECOND)),
        lead_time=LeadTime((lead_ms,) * 20),
    )


def decided(
    current: int,
    seen: FleetSignals,
    wanted: ScalingPolicy = POLICY,
    remembered: ScalingMemory | None = None,
    now_ms: int = NOW_MS,
) -> Decision:
    """Let the operator decide about this fleet."""
    return decide(wanted, current, seen, memory(current) if remembered is None else remembered, now_ms)


EDGES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 600)
"""Bin ends of a relay with a look-ahead of 10 minutes, in seconds."""


def steady(per_second: int) -> dict[int, int]:
    """The same load all the time."""
    return {end: per_second * (end - start) for start, end in pairwise((0, *EDGES))}


def burst(in_seconds: int, records: int, per_second: int = 0) -> dict[int, int]:
    """A load with so many records more in one instant."""
    due = steady(per_second)
    due[next(end for end in EDGES if in_seconds <= end)] += records
    return due


def at_once(due: Mapping[int, int], overdue: int = 0, now_ms: int = NOW_MS) -> FleetSignals:
    """Build the same as `signals`, without status documents: for properties that take thousands of looks."""
    bins = pairwise([0, *sorted(due)])
    spans = tuple(Span(now_ms + 1_000 * start, now_ms + 1_000 * end, due[end]) for start, end in bins)
    pending = overdue + sum(due.values())
    return FleetSignals(
        partitions=PARTITIONS,
        covered=frozenset(range(PARTITIONS)),
        due=DueCurve(spans, now_ms),
        pending=Reading(pending, now_ms),
        overdue=Reading(overdue, now_ms),
        ingest_lag=Reading(0, now_ms),
        next_due=Reading(now_ms + 1_000 if pending else None, now_ms),
        position=Reading(PARTITIONS * END, now_ms),
        source_end=Reading(PARTITIONS * END, now_ms),
        unread=Reading(0, now_ms),
    )
