"""The operator's view of the simulated relays: their status documents and Kafka's offsets. Pure."""

from __future__ import annotations

from bench.scaling.fleet import Fleet
from bench.scaling.load import Load
from delaytopic_api.relay import DueBin, RelayState, RelayStatus, ShardState, ShardStatus
from delaytopic_api.values import BackendType, Guarantee
from delaytopic_operator.scaling.signals import PartitionOffsets, SourceOffsets

EPOCH_MS = 1_800_000_000_000
"""Second 0, at a full hour."""


def at_ms(second: int) -> int:
    """Simulated seconds as epoch milliseconds."""
    return EPOCH_MS + second * 1_000


class Witness:
    """Deals partitions and records out evenly; counts what arrived as second follows second."""

    def __init__(self, load: Load, edges_ms: tuple[int, ...]) -> None:
        self._load = load
        self._edges = [edge_ms // 1_000 for edge_ms in edges_ms]
        self._arrived = 1_000_000

    def tick(self, second: int) -> None:
        """One second of arrivals."""
        self._arrived += self._load.arriving_at(second)

    def offsets(self, fleet: Fleet, second: int) -> SourceOffsets:
        """Kafka's answer."""
        count = fleet.physics.partitions
        ends = _dealt(self._arrived, count)
        return SourceOffsets(at_ms(second), count, {n: PartitionOffsets(0, end, end) for n, end in enumerate(ends)})

    def statuses(self, fleet: Fleet, second: int) -> list[RelayStatus]:
        """Every ready relay's answer."""
        count = fleet.physics.partitions
        overdue = _dealt(fleet.overdue, count)
        positions = _dealt(self._arrived, count)
        bins = list(zip(*(_dealt(records, count) for records in self._histogram(second)), strict=True))
        state = ShardState.RECOVERING if fleet.rebalancing(second) else ShardState.DELIVERING
        shards = [
            ShardStatus(
                partition=number,
                state=state,
                committed_offset=positions[number],
                position=positions[number],
                pending=overdue[number] + sum(bins[number]),
                overdue=overdue[number],
                next_due_ms=at_ms(second + 1),
                ingest_lag=0,
                due_histogram=[
                    DueBin(up_to_ms=at_ms(second + edge), records=records)
                    for edge, records in zip(self._edges, bins[number], strict=True)
                ],
            )
            for number in range(count)
        ]
        return [self._relay(fleet, second, number, shards[number :: fleet.ready]) for number in range(fleet.ready)]

    def _histogram(self, second: int) -> list[int]:
        starts = [0, *self._edges[:-1]]
        return [
            self._load.known_within(second, second + start + 1, second + end + 1)
            for start, end in zip(starts, self._edges, strict=True)
        ]

    def _relay(self, fleet: Fleet, second: int, number: int, shards: list[ShardStatus]) -> RelayStatus:
        return RelayStatus(
            relay=f"relay-{number}",
            delay_topic="bench/scaling",
            started_at_ms=EPOCH_MS,
            as_of_ms=at_ms(second),
            state=RelayState.RUNNING,
            guarantee=Guarantee.EXACTLY_ONCE,
            backend=BackendType.REDIS_ZSET,
            delivered_total=_dealt(fleet.delivered, fleet.ready)[number],
            dead_lettered_total=0,
            superseded_total=0,
            cancelled_total=0,
            busy_rate=fleet.physics.per_second if fleet.busy else None,
            pending=sum(shard.pending for shard in shards),
            overdue=sum(shard.overdue for shard in shards),
            ingest_lag=0,
            memory_bytes=0,
            shards=shards,
        )


def _dealt(records: int, count: int) -> list[int]:
    each, rest = divmod(records, count)
    return [each + (number < rest) for number in range(count)]
