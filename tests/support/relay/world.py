"""A world in memory for the loop: one source topic, one group, one target, and a clock that tests move.

It isolates transactions and fences by producer epoch and group generation, as a broker does; it has no
network and fails only when told to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from delaytopic_api.records import Headers
from delaytopic_relay.core.progress import Progress, encode_metadata
from delaytopic_relay.core.recovery import Bounds
from delaytopic_relay.delivery.outbound import Outgoing
from delaytopic_relay.delivery.refusals import Refusal
from delaytopic_relay.errors import Fenced, TransactionAborted
from delaytopic_relay.ports import Assignment, Batch, Committed


class Crash(Exception):
    """The process died here."""


@dataclass
class Record:
    """A source record with the accessors of the Kafka client's message."""

    shard: int
    place: int
    time_ms: int
    record_key: bytes | None
    record_value: bytes | None
    record_headers: Headers | None

    def partition(self) -> int:
        return self.shard

    def offset(self) -> int:
        return self.place

    def timestamp(self) -> tuple[int, int]:
        return (1, self.time_ms)

    def key(self) -> bytes | None:
        return self.record_key

    def value(self) -> bytes | None:
        return self.record_value

    def headers(self) -> Headers | None:
        return list(self.record_headers) if self.record_headers is not None else None


@dataclass
class World:
    """Everything that survives a relay."""

    now_ms: int = 1_000_000
    source: dict[int, list[Record]] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)
    delivered: list[tuple[int, Outgoing]] = field(default_factory=list)
    committed: dict[int, Committed] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    owners: dict[int, object] = field(default_factory=dict)
    crash: Callable[[str], None] = lambda point: None

    def produce(self, shard: int, key: bytes | None, value: bytes | None, headers: Headers | None = None) -> int:
        """Append a source record; its offset."""
        log = self.source.setdefault(shard, [])
        log.append(Record(shard, len(log), self.now_ms, key, value, headers))
        return len(log) - 1


class WorldClock:
    """The world's time."""

    def __init__(self, world: World) -> None:
        self.world = world

    def now_ms(self) -> int:
        return self.world.now_ms

    def monotonic_ms(self) -> int:
        return self.world.now_ms

    def sleep(self, duration_ms: int) -> None:
        self.world.now_ms += duration_ms


class WorldSource:
    """One member of the group; `join` gives it all shards, and evicts whoever had them."""

    def __init__(self, world: World, shards: Sequence[int], chunk: int = 3) -> None:
        self.world = world
        self.wanted = list(shards)
        self.chunk = chunk
        self.positions: dict[int, int] = {}
        self.paused: set[int] = set()
        self.generation = -1
        self.assignment: Assignment | None = None

    def subscribe(self, assignment: Assignment) -> None:
        self.assignment = assignment

    def poll(self, limit: int, timeout_ms: int) -> dict[int, Batch]:
        assert self.assignment is not None
        if self.generation < 0:
            self.world.generation += 1
            self.generation = self.world.generation
            self.assignment.assigned(self.wanted)
            return {}
        batches: dict[int, Batch] = {}
        for shard, position in self.positions.items():
            if shard in self.paused:
                continue
            log = self.world.source.get(shard, [])
            messages = log[position : position + min(limit, self.chunk)]
            self.positions[shard] = position + len(messages)
            end = len(log) if self.positions[shard] == len(log) else None
            if messages or end is not None:
                batches[shard] = Batch(list(messages), end)
        return batches

    def read_from(self, shard: int, offset: int) -> None:
        self.positions[shard] = offset
        self.paused.discard(shard)

    def pause(self, shards: Iterable[int]) -> None:
        self.paused.update(shards)

    def resume(self, shards: Iterable[int]) -> None:
        self.paused.difference_update(shards)

    def bounds(self, shard: int) -> Bounds:
        return Bounds(self.world.low.get(shard, 0), len(self.world.source.get(shard, [])))

    def ends(self, shards: Iterable[int]) -> dict[int, int]:
        return {shard: len(self.world.source.get(shard, [])) for shard in shards}

    def last_committed(self, shards: Sequence[int]) -> dict[int, Committed]:
        return {shard: self.world.committed[shard] for shard in shards if shard in self.world.committed}

    committed = last_committed

    def commit(self, progress: Mapping[int, Progress]) -> None:
        self.world.crash("before commit")
        if self.generation != self.world.generation:
            raise TransactionAborted("illegal generation")
        self.world.committed.update(committed_of(progress))
        self.world.crash("after commit")

    def group_metadata(self) -> int:
        return self.generation

    def close(self) -> None:
        assert self.assignment is not None
        self.assignment.revoked(list(self.positions))


class WorldTarget:
    """A producer; with an id, what it sends is visible once committed."""

    def __init__(self, world: World, owner: str) -> None:
        self.world = world
        self.owner = owner
        self.sent: list[tuple[int, Outgoing]] = []
        self.refuse: Callable[[Outgoing], Refusal | None] = lambda record: None
        self.refusals: list[Refusal] = []
        self.replace()

    def replace(self) -> None:
        if self.owner:
            self.world.epochs[self.owner] = self.epoch = self.world.epochs.get(self.owner, 0) + 1

    def begin(self) -> None:
        self.sent = []

    def send(self, records: Sequence[Outgoing]) -> None:
        for record in records:
            self.world.crash("before produce")
            refusal = self.refuse(record)
            if refusal is not None:
                self.refusals.append(refusal)
                continue
            self.sent.append((self.world.now_ms, record))
        if not self.owner:
            self.world.delivered += self.sent
            self.sent = []

    def store(self, records: Sequence[Outgoing]) -> None:
        self.send(records)

    def flush(self) -> list[Refusal]:
        refusals, self.refusals = self.refusals, []
        return refusals

    def commit(self, progress: Mapping[int, Progress], group: object) -> None:
        self.world.crash("before commit")
        if self.epoch != self.world.epochs[self.owner]:
            raise Fenced("a newer producer has this id")
        if group != self.world.generation:
            raise TransactionAborted("illegal generation")
        self.world.delivered += self.sent
        self.world.committed.update(committed_of(progress))
        self.sent = []
        self.world.crash("after commit")

    def abort(self) -> None:
        self.sent = []

    def fence(self, owner: str) -> None:
        self.world.epochs[owner] = self.world.epochs.get(owner, 0) + 1

    def close(self) -> None:
        self.abort()


def committed_of(progress: Mapping[int, Progress]) -> dict[int, Committed]:
    """Progress as the group coordinator keeps it."""
    return {shard: Committed(new.offset, encode_metadata(new)) for shard, new in progress.items()}
