"""The signals of a fleet of relays at one moment, from their status documents and Kafka's offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, NamedTuple, Self, TypeVar

from delaytopic_api.relay import DueBin, RelayStatus, ShardState, ShardStatus
from delaytopic_operator.scaling.need import DueCurve, merged

T = TypeVar("T")

STALE_MS = 45_000
"""The age from which a reading says nothing any more: it is taken at the look itself, however far apart looks are."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A value, and the oldest moment that it speaks of."""

    value: T
    as_of_ms: int

    def fresh(self, now_ms: int) -> bool:
        """Return whether it may be acted on."""
        return now_ms - self.as_of_ms <= STALE_MS


def fresh(reading: Reading[T] | None, now_ms: int) -> T | None:
    """Return the value of a reading that is there and fresh; None otherwise."""
    return reading.value if reading is not None and reading.fresh(now_ms) else None


PARTS = (64, 16, 4, 1)
"""The parts of the look-ahead that a source is asked about: fine where it is near, and each is a question."""


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """One partition; `committed` None means that the group has committed nothing.

    `end` is that of what relays can read: no number of them lowers what is behind a producer's open transaction.

    `offset_at` maps epoch milliseconds to the first offset with that timestamp or a later one (the end, if there is
    none). It is known with a fixed delay only, at `times_to_ask`.
    """

    log_start: int
    end: int
    committed: int | None = None
    offset_at: tuple[tuple[int, int], ...] = ()

    @classmethod
    def answered(cls, log_start: int, end: int, offset_at: Mapping[int, int | None]) -> Self:
        """Make one of which nothing is known to be unread; an offset of None is that of the end."""
        by_time = tuple((at_ms, end if offset is None else offset) for at_ms, offset in sorted(offset_at.items()))
        return cls(log_start, end, committed=end, offset_at=by_time)

    @property
    def unread(self) -> int:
        """The records that are not committed as taken in, and still there: an upper bound of the work, as a horizon is
        read ahead.
        """
        return max(0, self.end - max(self.committed or 0, self.log_start))


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """The partitions that answered, by number, of `count` that there are."""

    as_of_ms: int
    count: int
    partitions: Mapping[int, PartitionOffsets]

    @property
    def complete(self) -> bool:
        """True if every partition answered."""
        return all(number in self.partitions for number in range(self.count))


def times_to_ask(now_ms: int, delay_ms: int, look_ahead_ms: int) -> tuple[int, ...]:
    """List the timestamps whose records fall due between now and the look-ahead's end, with a fixed delay."""
    reach_ms = min(delay_ms, look_ahead_ms)
    return (now_ms - delay_ms, *(now_ms - delay_ms + reach_ms // part for part in PARTS))


def waiting_ahead(
    offsets: PartitionOffsets, position: int, delay_ms: int, now_ms: int
) -> tuple[dict[tuple[int, int], float], int]:
    """Tell when records that wait in the source for a fixed delay fall due, and how many should have left.

    Without offsets by time they are taken to be spread over the whole delay.
    """
    first = max(position, offsets.log_start)
    if not offsets.offset_at:
        waiting = max(0, offsets.end - first)
        return ({(now_ms, now_ms + max(1, delay_ms)): float(waiting)} if waiting else {}), 0
    at = sorted(offsets.offset_at)
    due = {
        (before_ms + delay_ms, after_ms + delay_ms): float(max(0, after - max(before, first)))
        for (before_ms, before), (after_ms, after) in pairwise(at)
    }
    return {span: records for span, records in due.items() if records}, max(0, at[0][1] - first)


UNKNOWN_STATES = frozenset({ShardState.RECOVERING, ShardState.FAILED})
"""A shard in one of these does not know its backlog: its zeros are no counts."""


class RelayFacts(NamedTuple):
    """One relay, for measuring capacity and lead time."""

    relay: str
    started_at_ms: int
    as_of_ms: int
    delivered: int
    busy_rate: float | None
    delivering: bool
    """True if one of its shards is at work."""


@dataclass(frozen=True, slots=True)
class FleetSignals:
    """Each signal is None while it is not known.

    Sums over source partitions are over those that are `covered`: lower bounds unless `complete`.
    """

    partitions: int | None
    covered: frozenset[int] = frozenset()
    settling: frozenset[int] = frozenset()
    """Covered, but reading again what was taken in before: the backlog may be larger than what is known of it."""
    due: DueCurve | None = None
    pending: Reading[int] | None = None
    overdue: Reading[int] | None = None
    ingest_lag: Reading[int] | None = None
    next_due: Reading[int | None] | None = None
    position: Reading[int] | None = None
    """Sum of positions; only when every partition is covered."""
    source_end: Reading[int] | None = None
    """Sum of end offsets; only when every partition answered."""
    unread: Reading[int] | None = None
    """Records not committed in the source, as Kafka has it; only when every partition answered."""
    relays: tuple[RelayFacts, ...] = ()
    silent: tuple[str, ...] = ()
    """Relays whose last status is too old."""
    pods: tuple[tuple[str, int], ...] | None = None
    """Each pod of the fleet, and when it was created; a relay's name begins with its pod's."""

    @property
    def uncovered(self) -> tuple[int, ...]:
        """Source partitions whose backlog no relay reports."""
        return tuple(number for number in range(self.partitions or 0) if number not in self.covered)

    @property
    def complete(self) -> bool:
        """True if every source partition is known, and known in full."""
        return bool(self.partitions) and not self.uncovered and not self.settling


class _Seen(NamedTuple):
    as_of_ms: int
    shard: ShardStatus


def gather(
    statuses: Iterable[RelayStatus],
    offsets: SourceOffsets | None,
    now_ms: int,
    *,
    pods: Mapping[str, int] | None = None,
    delay_ms: int | None = None,
) -> FleetSignals:
    """Put together what is fresh.

    `pods` maps the fleet's pods to when they were created, for the lead time; None if that is not known.
    A partition that two relays report (a rebalance, a relay that hangs) counts once, as the later one says. With a
    fixed delay (`delay_ms`) what is in the source is not late but waits, and falls due as its timestamps say.
    """
    documents = list(statuses)
    current = [status for status in documents if now_ms - status.as_of_ms <= STALE_MS]
    if offsets is not None and now_ms - offsets.as_of_ms > STALE_MS:
        offsets = None
    shards = _latest(current)
    seen = list(shards.values())
    waiting = _Waiting(shards, offsets, delay_ms, now_ms)
    asked = offsets is not None and offsets.complete
    return FleetSignals(
        partitions=offsets.count if offsets is not None else None,
        covered=frozenset(shards),
        settling=frozenset(number for number, each in shards.items() if each.shard.state is ShardState.REPLAYING),
        due=_curve(current, shards, waiting, now_ms) if seen else None,
        pending=_sum(seen, lambda shard: shard.pending, waiting.records),
        overdue=_sum(seen, lambda shard: shard.overdue),
        ingest_lag=_ingest_lag(seen, waiting, fixed=delay_ms is not None),
        next_due=Reading(_next_due_ms(seen), _oldest_ms(seen)) if seen else None,
        position=_sum(seen, lambda shard: shard.position) if _whole(shards, offsets) else None,
        source_end=_total(offsets, lambda each: each.end) if asked else None,
        unread=_total(offsets, lambda each: each.unread) if asked else None,
        relays=tuple(_facts(status) for status in sorted(current, key=lambda status: status.relay)),
        silent=tuple(sorted(status.relay for status in documents if status not in current)),
        pods=tuple(sorted(pods.items())) if pods is not None else None,
    )


def _latest(statuses: Sequence[RelayStatus]) -> dict[int, _Seen]:
    latest: dict[int, _Seen] = {}
    for status in sorted(statuses, key=lambda each: (each.as_of_ms, each.relay)):
        for shard in status.shards:
            if shard.state in UNKNOWN_STATES:
                latest.pop(shard.partition, None)
            else:
                latest[shard.partition] = _Seen(status.as_of_ms, shard)
    return latest


class _Waiting:
    """The backlog of a fixed delay, which is the source itself: what waits there, and what should have left it."""

    def __init__(
        self, shards: Mapping[int, _Seen], offsets: SourceOffsets | None, delay_ms: int | None, now_ms: int
    ) -> None:
        self.known = delay_ms is not None and offsets is not None
        self.due: dict[tuple[int, int], float] = defaultdict(float)
        self.late = self.records = 0
        if delay_ms is None or offsets is None:
            return
        for number, partition in offsets.partitions.items():
            if number in shards:
                position = shards[number].shard.position
                due, late = waiting_ahead(partition, position, delay_ms, now_ms)
                for span, records in due.items():
                    self.due[span] += records
                self.late += late
                self.records += max(0, partition.end - max(position, partition.log_start))


def _sum(seen: Sequence[_Seen], count: Callable[[ShardStatus], int], more: int = 0) -> Reading[int] | None:
    return Reading(sum(count(each.shard) for each in seen) + more, _oldest_ms(seen)) if seen else None


def _total(offsets: SourceOffsets | None, count: Callable[[PartitionOffsets], int]) -> Reading[int] | None:
    return Reading(sum(map(count, offsets.partitions.values())), offsets.as_of_ms) if offsets is not None else None


def _oldest_ms(seen: Sequence[_Seen]) -> int:
    return min(each.as_of_ms for each in seen)


def _next_due_ms(seen: Sequence[_Seen]) -> int | None:
    return min((each.shard.next_due_ms for each in seen if each.shard.next_due_ms is not None), default=None)


def _whole(shards: Mapping[int, _Seen], offsets: SourceOffsets | None) -> bool:
    return offsets is not None and all(number in shards for number in range(offsets.count))


def _ingest_lag(seen: Sequence[_Seen], waiting: _Waiting, *, fixed: bool) -> Reading[int] | None:
    if not fixed:
        return _sum(seen, lambda shard: shard.ingest_lag)
    return Reading(waiting.late, _oldest_ms(seen)) if seen and waiting.known else None


def _curve(statuses: Sequence[RelayStatus], shards: Mapping[int, _Seen], waiting: _Waiting, now_ms: int) -> DueCurve:
    counts: dict[tuple[int, int], float] = defaultdict(float, waiting.due)
    histograms = [each for status in statuses for each in _histograms(status, shards)]
    for each in histograms:
        start_ms = each.as_of_ms
        for end_ms, records in each.bins:
            counts[start_ms, end_ms] += records * each.share
            start_ms = end_ms
    # One document's edges make the grid: the finest, and of these the freshest.
    finest = max(histograms, key=lambda each: (len(each.bins), each.as_of_ms), default=None)
    edges = [end_ms for end_ms, _ in finest.bins] if finest is not None else []
    edges += [end_ms for _, end_ms in waiting.due]
    return merged(counts, edges, now_ms, _oldest_ms([*shards.values()]))


class _Histogram(NamedTuple):
    as_of_ms: int
    bins: Sequence[tuple[int, int]]
    """The end of each bin, and the records in it."""
    share: float = 1.0
    """The part of them that counts."""


def _histograms(status: RelayStatus, shards: Mapping[int, _Seen]) -> Iterable[_Histogram]:
    """Return the due times ahead of the partitions that count as this relay says.

    The page for operators has those of the whole relay: of them the share counts that is pending in these partitions.
    """
    own = [each for each in status.shards if (known := shards.get(each.partition)) is not None and known.shard is each]
    if not own:
        return []
    by_partition = [_Histogram(status.as_of_ms, _bins(each.due_histogram)) for each in own if each.due_histogram]
    if by_partition:
        return by_partition
    pending, of_own = sum(each.pending for each in status.shards), sum(each.pending for each in own)
    return [_Histogram(status.as_of_ms, _bins(status.due_histogram), of_own / pending if pending > 0 else 1.0)]


def _bins(histogram: Iterable[DueBin]) -> list[tuple[int, int]]:
    return sorted((each.up_to_ms, each.records) for each in histogram)


_AT_WORK = frozenset({ShardState.DELIVERING, ShardState.PAUSED})


def _facts(status: RelayStatus) -> RelayFacts:
    return RelayFacts(
        relay=status.relay,
        started_at_ms=status.started_at_ms,
        as_of_ms=status.as_of_ms,
        delivered=status.delivered_total,
        busy_rate=status.busy_rate,
        delivering=any(shard.state in _AT_WORK for shard in status.shards),
    )
