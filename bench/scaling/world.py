"""A simulated source and its relays, second by second: pods that start, fall silent, show old pages, and end."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from delaytopic_api.relay import DueBin, RelayState, RelayStatus, ShardState, ShardStatus
from delaytopic_api.values import BackendType, Guarantee
from delaytopic_operator.scaling.signals import FleetSignals, PartitionOffsets, SourceOffsets, gather

PARTITIONS: Final = 12
DELIVERS: Final = 2_500
"""Records a second and relay."""
REBALANCE_S: Final = 2
"""Nobody delivers for so long after relays came or went."""
EDGES_S: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 600)
"""The bins of a relay's due histogram, in seconds from now."""
START_MS: Final = 1_800_000_000_000

Batch = tuple[int, float]
"""The second in which records are due, and their number."""


@dataclass(frozen=True)
class Day:
    """The records of a day and its troubles; all times are seconds from its beginning."""

    name: str
    length_s: int
    arrivals: Mapping[int, Sequence[Batch]]
    """The batches by the second in which they are sent."""
    begins_with: Sequence[Batch] = ()
    """Taken in before."""
    commit_s: float = 0.0
    """The time of a commit where relays tell their rate with small batches, as with a fixed delay; otherwise 0."""
    takes_in: int = 10_000
    """Records a second and relay."""
    jittered: bool = False
    """Pods take 15 to 60 s to start, and one of twenty 150 s; otherwise 25 s each."""
    unreliable: bool = False
    """Relays fall silent, show old pages, and end."""
    blackouts: Sequence[tuple[int, int]] = ()
    """The times from when to when no page can be had."""
    narrow: Sequence[tuple[int, int, float]] = ()
    """The times from when to when the target takes no more than so many records a second."""


@dataclass
class _Pod:
    name: str
    created_s: int
    ready_s: int
    trouble: list[tuple[int, int, str]] = field(default_factory=list)
    delivered: float = 0.0
    rate: float = 0.0
    page: RelayStatus | None = None


class World:
    """One day; `step` lets a second pass."""

    def __init__(self, day: Day, seed: int) -> None:
        """Begin with one relay that delivers."""
        self._day, self._random = day, random.Random(seed)
        self._unread: list[deque[Batch]] = [deque() for _ in range(PARTITIONS)]
        self._late: list[deque[Batch]] = [deque() for _ in range(PARTITIONS)]
        self._known: list[list[float]] = [[0.0] * (day.length_s + 1) for _ in range(PARTITIONS)]
        """Taken in and not due yet: by the second in which it will be."""
        self._ahead_of = [0.0] * PARTITIONS
        self._pods: list[_Pod] = []
        self._names = 0
        self._settled_s = 0
        self._end = self._taken = 0.0
        self.now_s = 0
        self.relay_seconds = 0
        self.lateness: Counter[int] = Counter()
        for due_s, records in day.begins_with:
            for number in range(PARTITIONS):
                self._know(number, due_s, records / PARTITIONS)
        self._add(starts_s=0)
        deaths = (day.length_s * each // 6 + 1_234 for each in range(1, 6)) if day.unreliable else ()
        self._deaths = set(deaths)

    @property
    def now_ms(self) -> int:
        """Return the time."""
        return START_MS + 1_000 * self.now_s

    def scale(self, relays: int) -> None:
        """Add pods, or end the newest."""
        while len(self._pods) < relays:
            self._add(self._start_s())
        while len(self._pods) > relays:
            self._remove(self._pods[-1])

    def step(self) -> None:
        """Let a second pass."""
        now_s = self.now_s
        if now_s in self._deaths and self._pods:
            self._remove(self._pods[0])
            self._add(self._start_s())
        for due_s, records in self._day.arrivals.get(now_s, ()):
            self._end += records
            for unread in self._unread:
                unread.append((due_s, records / PARTITIONS))
        if any(pod.ready_s == now_s for pod in self._pods):
            self._settled_s = now_s + REBALANCE_S
        for number, (known, late) in enumerate(zip(self._known, self._late, strict=True)):
            if known[now_s]:
                late.append((now_s, known[now_s]))
                self._ahead_of[number] -= known[now_s]
                known[now_s] = 0.0
        if now_s >= self._settled_s:
            self._work()
        self.relay_seconds += len(self._pods)
        self.now_s += 1

    def finish(self) -> None:
        """Count what is late at the end as delivered then."""
        for late in self._late:
            for due_s, records in late:
                self.lateness[self.now_s - due_s] += round(records * 1_000)

    def signals(self) -> FleetSignals:
        """Return what the operator sees."""
        pages = [page for pod in self._pods if (page := self._page(pod)) is not None]
        end, taken = round(self._end / PARTITIONS), round(self._taken / PARTITIONS)
        each = PartitionOffsets(log_start=0, end=end, committed=taken)
        source = SourceOffsets(self.now_ms, PARTITIONS, dict.fromkeys(range(PARTITIONS), each))
        pods = {pod.name: START_MS + 1_000 * pod.created_s for pod in self._pods}
        return gather(pages, source, self.now_ms, pods=pods)

    def _work(self) -> None:
        ready = self._ready()
        narrow = [most for start, end, most in self._day.narrow if start <= self.now_s < end]
        rate = min([DELIVERS, *(most / max(1, len(ready)) for most in narrow)])
        for pod, own in self._assigned(ready):
            share, done = rate / len(own), 0.0
            for number in own:
                self._take_in(number, self._day.takes_in / len(own))
                done += self._deliver(number, share)
            pod.delivered += done
            busy_s = self._day.commit_s + done / rate
            # A relay measures no second in which it was busy for less than 200 ms.
            if done and (not self._day.commit_s or busy_s >= 0.2):
                pod.rate = done / busy_s * self._random.uniform(0.9, 1.1)

    def _take_in(self, number: int, most: float) -> None:
        unread, late = self._unread[number], self._late[number]
        while unread and most > 0:
            due_s, records = unread.popleft()
            taken = min(records, most)
            most -= taken
            self._taken += taken
            if taken < records:
                unread.appendleft((due_s, records - taken))
            if due_s <= self.now_s:
                late.append((due_s, taken))
            else:
                self._know(number, due_s, taken)

    def _know(self, number: int, due_s: int, records: float) -> None:
        if due_s <= self._day.length_s:
            self._known[number][due_s] += records
            self._ahead_of[number] += records

    def _deliver(self, number: int, most: float) -> float:
        late, left = self._late[number], most
        while late and left > 1e-9:
            due_s, records = late.popleft()
            sent = min(records, left)
            left -= sent
            self.lateness[self.now_s - due_s] += round(sent * 1_000)
            if sent < records:
                late.appendleft((due_s, records - sent))
        return most - left

    def _page(self, pod: _Pod) -> RelayStatus | None:
        if pod.ready_s > self.now_s or any(start <= self.now_s < end for start, end in self._day.blackouts):
            return None
        trouble = next((kind for start, end, kind in pod.trouble if start <= self.now_s < end), None)
        if trouble == "silent":
            return None
        if trouble is None or pod.page is None:
            own = (partitions for each, partitions in self._assigned(self._ready()) if each is pod)
            pod.page = self._status(pod, next(own, []))
        return pod.page

    def _status(self, pod: _Pod, own: Sequence[int]) -> RelayStatus:
        state = ShardState.RECOVERING if self.now_s < self._settled_s else ShardState.DELIVERING
        shards = [self._shard(number, state) for number in own]
        ahead = [self._ahead(number) for number in own]
        bins = [
            DueBin(up_to_ms=self.now_ms + 1_000 * end_s, records=round(sum(each[place] for each in ahead)))
            for place, end_s in enumerate(EDGES_S)
        ]
        return RelayStatus.model_construct(
            relay=pod.name,
            delay_topic="shop/reminders",
            started_at_ms=START_MS + 1_000 * pod.created_s,
            as_of_ms=self.now_ms,
            state=RelayState.RUNNING,
            guarantee=Guarantee.EXACTLY_ONCE,
            backend=BackendType.REDIS_ZSET,
            speedups=True,
            dead_lettered_total=0,
            superseded_total=0,
            cancelled_total=0,
            memory_bytes=0,
            delivered_total=round(pod.delivered),
            busy_rate=pod.rate or None,
            pending=sum(each.pending for each in shards),
            overdue=sum(each.overdue for each in shards),
            ingest_lag=sum(each.ingest_lag for each in shards),
            due_histogram=bins,
            shards=shards,
        )

    def _shard(self, number: int, state: ShardState) -> ShardStatus:
        overdue = round(sum(records for _, records in self._late[number]))
        unread = round(sum(records for _, records in self._unread[number]))
        position = round(self._end / PARTITIONS) - unread
        pending = overdue + round(self._ahead_of[number])
        return ShardStatus.model_construct(
            partition=number,
            state=state,
            committed_offset=position,
            position=position,
            pending=pending,
            overdue=overdue,
            next_due_ms=self.now_ms + 1_000 if pending else None,
            ingest_lag=unread,
            due_histogram=[],
        )

    def _ahead(self, number: int) -> list[float]:
        known, begin_s = self._known[number], self.now_s
        edges = (0, *EDGES_S)
        return [sum(known[begin_s + a : begin_s + b]) for a, b in pairwise(edges)]

    def _ready(self) -> list[_Pod]:
        return [pod for pod in self._pods if pod.ready_s <= self.now_s]

    def _assigned(self, ready: Sequence[_Pod]) -> Iterator[tuple[_Pod, list[int]]]:
        for place, pod in enumerate(ready[:PARTITIONS]):
            yield pod, list(range(place, PARTITIONS, min(PARTITIONS, len(ready))))

    def _start_s(self) -> int:
        if not self._day.jittered:
            return 25
        return 150 if self._random.random() < 0.05 else self._random.randint(15, 60)

    def _add(self, starts_s: int) -> None:
        self._names += 1
        pod = _Pod(f"relay-{self._names}", self.now_s, self.now_s + starts_s)
        if self._day.unreliable:
            begins_s = self.now_s
            while begins_s < self._day.length_s:
                begins_s += self._random.randint(1_800, 7_200)
                ends_s = begins_s + self._random.randint(20, 300)
                pod.trouble.append((begins_s, ends_s, self._random.choice(("silent", "old"))))
                begins_s = ends_s
        self._pods.append(pod)

    def _remove(self, pod: _Pod) -> None:
        if pod.ready_s <= self.now_s:
            self._settled_s = self.now_s + REBALANCE_S
        self._pods.remove(pod)
