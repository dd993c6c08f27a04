"""The simulated Kafka without faults, for tests that drive one loop: time stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tests.simulation.faults import Fault, Gate
from tests.simulation.world.clocks import SimulatedClock
from tests.simulation.world.kafka import Kafka
from tests.simulation.world.source_client import SimulatedSource
from tests.simulation.world.source_log import SourceLog
from tests.simulation.world.target_client import SimulatedTarget

from delaytopic_api.records import Headers
from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.progress import Identity, Progress
from delaytopic_relay.delivery.batches import Batch, one_by_one
from delaytopic_relay.delivery.refusals import Refusal
from delaytopic_relay.ports import Assignment, Committed, GroupMetadata

T = TypeVar("T")

PARTITIONS = 3
SESSION_MS = 6_000
NEVER_MS = 1 << 60


class Crash(Exception):
    """The process died here."""


class World:
    """Everything that survives a relay."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.kafka = Kafka(PARTITIONS, SESSION_MS)
        self.kafka.now_ms = now_ms
        self.crash: Callable[[str], None] = lambda point: None

    @property
    def now_ms(self) -> int:
        """The time; moving it on lets transactions expire, as a broker does."""
        return self.kafka.now_ms

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        self.kafka.pass_time(now_ms - self.kafka.now_ms)

    @property
    def source(self) -> Mapping[int, SourceLog]:
        return self.kafka.source

    @property
    def committed(self) -> dict[int, Committed]:
        return self.kafka.committed

    @property
    def identity(self) -> Identity:
        """The identity of the source, of which something was read."""
        return self.kafka.topic.identity._replace(epoch=0)

    @property
    def epochs(self) -> Mapping[str, int]:
        return self.kafka.transactions.epochs

    @property
    def delivered(self) -> list[tuple[int, Record]]:
        """Return the records that a `read_committed` consumer sees, each with the time of its sending."""
        return [(sent.at_ms, sent.record) for sent in self.kafka.read_committed()]

    @property
    def stones(self) -> list[Record]:
        """The tombstones that relays have written into the source, and committed."""
        return [sent.record for sent in self.kafka.stones if sent.transaction is None or sent.transaction.number >= 0]

    def produce(self, partition: int, key: bytes | None, value: bytes | None, headers: Headers | None = None) -> int:
        """Append a source record; its offset."""
        return self.source[partition].append(self.now_ms, key, value, headers)


class WorldClock(SimulatedClock):
    """The world's time."""

    def __init__(self, world: World) -> None:
        super().__init__(world.kafka)
        self.world = world

    def now_ms(self) -> int:
        return self.world.now_ms


class WorldGate(Gate):
    """Lets every effect happen; a test may have the process die before or after one."""

    def __init__(self, world: World) -> None:
        super().__init__(world.kafka.counts, lambda fault: None)
        self._world = world

    def call(self, effect: str, act: Callable[[], T], answer: Callable[[Fault], T]) -> T:
        name = effect.removeprefix("source ")
        self._world.crash(f"before {name}")
        done = act()
        self._world.crash(f"after {name}")
        return done


class WorldSource(SimulatedSource):
    """One member of the group; with its subscription it takes all its shards, and who had them never hears of it."""

    def __init__(self, world: World, shards: Sequence[int], chunk: int = 3) -> None:
        super().__init__(world.kafka, WorldGate(world), "", chunk, deaf_ms=NEVER_MS)
        self._world = world
        self._wanted = shards

    def subscribe(self, assignment: Assignment) -> None:
        self._world.kafka.group = self._world.kafka.group.succeeded(self._wanted)
        super().subscribe(assignment)


class WorldTarget(SimulatedTarget):
    """A producer; with an id, what it sends is visible once committed."""

    def __init__(self, world: World, owner: str) -> None:
        super().__init__(world.kafka, WorldGate(world), WorldClock(world), owner, transactional=bool(owner))
        self.world = world
        self.sent: list[Record] = []
        self.refuse: Callable[[Record], Refusal | None] = lambda record: None

    def begin(self) -> None:
        self.sent = []
        super().begin()

    def send(self, records: Sequence[Record | Batch]) -> None:
        self.sent += one_by_one(records)
        super().send(records)

    def refusal_of(self, record: Record) -> Refusal | None:
        return self.refuse(record) or super().refusal_of(record)

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        super().commit(progress, group)
        self.sent = []
