"""Whole relays in the world in memory: how to start one, let time pass, and read what was delivered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.simulation.world.bucket_log import SimulatedBucketLog
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.world import World, WorldClock, WorldGate, WorldSource, WorldTarget

from delaytopic_api.records import Headers
from delaytopic_api.relay import Ending
from delaytopic_api.values import Dialect as DialectName
from delaytopic_api.values import Partitioning, source_mark
from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.backlog.kafka.backlog import BucketBacklog
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.kafka.topics import BucketNames
from delaytopic_relay.backlog.protocol import Backlog, EmptyReader
from delaytopic_relay.backlog.redis.backlog import RedisBacklog
from delaytopic_relay.backlog.redis.manager import Writing
from delaytopic_relay.backlog.redis.shard import UNLIMITED_BYTES
from delaytopic_relay.backlog.signing import UNSIGNED, SegmentSigner
from delaytopic_relay.backlog.store import BacklogStore
from delaytopic_relay.core.commands import Dialect, DueKey, Record
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import NOTHING_ACCEPTED, Acceptance
from delaytopic_relay.core.rules import Declared, Generation, Rules, target_mark
from delaytopic_relay.core.suspension import Suspension
from delaytopic_relay.delivery.batch_size import TopicLimit
from delaytopic_relay.delivery.batches import Batch, source_of
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.outcomes import Outcomes
from delaytopic_relay.delivery.record_writer import PartitionCount, RecordWriter
from delaytopic_relay.delivery.refusals import Refusals
from delaytopic_relay.dialects import NATIVE_FORMS, Forms
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.dialects.reading import TopicGlobs
from delaytopic_relay.engine.holding import Holding, OwnTopics
from delaytopic_relay.engine.loop import Loop, Parts
from delaytopic_relay.engine.pacing import Pace
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.engine.recovery import Origin, Takeover
from delaytopic_relay.ports import Examiner, SecondClock

SOURCE, TARGET, DEAD = "source", "target", "dead"
HORIZON_MS = 10_000
PLENTY = 1 << 30


class Delivery(NamedTuple):
    """A record that a `read_committed` consumer sees: when it was sent, whence, and whether it is a dead letter."""

    sent_ms: int
    partition: int
    offset: int
    dead: bool = False


class StrictTarget(WorldTarget):
    """Knows whether a transaction is open, as the real client does: it allows one at a time, and sends in none."""

    open = False

    def begin(self) -> None:
        assert not self.open, "a transaction is open already"
        self.open = bool(self.owner)
        super().begin()

    def send(self, records: Sequence[Record | Batch]) -> None:
        assert self.open or not self.owner, "no transaction is open"
        super().send(records)

    def commit(self, progress: Mapping[int, Progress], group: object) -> None:
        assert self.open, "no transaction is open"
        super().commit(progress, group)
        self.open = False

    def abort(self) -> None:
        self.open = False
        super().abort()

    def replace(self) -> None:
        self.open = False
        super().replace()


@dataclass(frozen=True)
class Relay:
    """One relay and its parts."""

    world: World
    loop: Loop
    source: WorldSource
    target: WorldTarget
    clock: WorldClock
    events: QuietEvents

    def step(self) -> None:
        """One turn of its loop."""
        self.loop.step()

    def finish(self) -> None:
        """A graceful stop."""
        self.loop.finish()

    def run(self, for_ms: int, step_ms: int = 50) -> None:
        """Let time pass."""
        run_all(self.world, [self], for_ms, step_ms)


class Setup(NamedTuple):
    """Differences of a relay from the usual one; `delay_ms` makes it one of a fixed delay, without a backlog."""

    shards: Sequence[int] = (0,)
    transactional: bool = True
    outcomes: str | None = None
    """The topic that tells how schedules end."""
    delay_ms: int | None = None
    memory_bytes: int = PLENTY
    chunk: int = 1_000
    limit: TopicLimit = lambda topic: 1 << 20
    compresses: bool = False
    """True if the target may compress."""
    target: Callable[[World, str], WorldTarget] = StrictTarget
    suspension: Suspension = Suspension()
    max_delay_ms: int = 8_640_000_000
    clock: Callable[[World], WorldClock] = WorldClock
    second_clock: Callable[[World], SecondClock | None] = lambda world: None
    strangers: Sequence[str] = ()
    """Producers of others."""
    signer: SegmentSigner = UNSIGNED
    share_bytes: int = UNLIMITED_BYTES
    """Of each shard in the backlog."""
    dialect: Dialect | None = None
    """Instead of the native one; `forms` are those of what it reads."""
    forms: Forms = NATIVE_FORMS
    partition_count: PartitionCount = lambda topic: None
    rules: Rules | None = None
    """The rules that are committed, where they are not those of the native dialect."""
    accepted: Acceptance = NOTHING_ACCEPTED
    buckets: int = 0
    """Bucket topics, which are the backlog instead of the store if there are any."""
    examiner: Examiner | None = None


USUAL = Setup()
FURTHER = FurtherTargets(["other"], "delaytopic.team.shop")


def _rules(world: World, buckets: int) -> BucketRules:
    return BucketRules(HORIZON_MS, buckets, source_mark(SOURCE, world.kafka.topic.identity.topic))


def usual_rules(setup: Setup = USUAL) -> Rules:
    """The rules that a relay commits of which nothing else is said."""
    return Rules(DialectName.NATIVE, setup.max_delay_ms, target_mark(TARGET), delay_ms=setup.delay_ms)


def read_by_usual_rules(last: DueKey) -> tuple[Generation, ...]:
    """The only generation of rules of a shard, and the greatest key that it gave."""
    return (Generation(0, 0, last, usual_rules()),)


def native_policy(delay_ms: int | None = None) -> NativePolicy:
    """Up to a hundred days, and ids."""
    return NativePolicy(TARGET, TopicGlobs(["other"]), 8_640_000_000, delay_ms=delay_ms)


def start(world: World, store: BacklogStore, name: str = "relay", setup: Setup = USUAL) -> Relay:
    """A relay that joins the group with its first step, and evicts whoever was there."""
    clock, events = setup.clock(world), QuietEvents()
    dialect = setup.dialect or NativeDialect(native_policy(setup.delay_ms))
    reading = Reading(Declared(setup.rules or usual_rules(setup)), lambda _: dialect)
    source = WorldSource(world, setup.shards, setup.chunk)
    target = setup.target(world, name if setup.transactional else "")
    backlog: Backlog = FixedBacklog(HORIZON_MS)
    if setup.buckets:
        log, names = SimulatedBucketLog(world.kafka, WorldGate(world), PLENTY), BucketNames(SOURCE)
        backlog = BucketBacklog(
            log, names, _rules(world, setup.buckets), clock, events, lambda _: EmptyReader(), setup.signer
        )
    elif setup.delay_ms is None:
        backlog = in_redis = RedisBacklog(store, name, HORIZON_MS, clock, events, EmptyReader, Writing(setup.signer))
        in_redis.share_bytes = setup.share_bytes
    origin = Origin(world.kafka.topic, "group", setup.accepted)
    refusals = Refusals()
    refusals.compress = target.compress if setup.compresses else None
    writer = RecordWriter(SOURCE, TARGET, Partitioning.BY_KEY, 4, setup.limit, FURTHER, refusals, setup.forms)
    writer.count = setup.partition_count
    takeover = Takeover(
        source, target, backlog, events, lambda owner: owner not in setup.strangers, reading, origin, clock
    )
    takeover.examiner = setup.examiner
    own = OwnTopics(SOURCE, TARGET, DEAD, outcomes=setup.outcomes)
    loop = Loop(
        Parts(
            source=source,
            target=target,
            reading=reading,
            writer=writer,
            dead_letters=DeadLetters(SOURCE, DEAD, setup.limit, refusals, setup.forms.letter),
            manager=backlog.manager,
            takeover=takeover,
            holding=Holding(own, FURTHER, world.kafka.look_at, clock),
            pace=Pace(50, setup.transactional),
            memory_bytes=setup.memory_bytes,
            clock=clock,
            events=events,
            suspension=setup.suspension,
            second_clock=setup.second_clock(world),
            learn=lambda topics: None,
            outcomes=Outcomes(setup.outcomes, [*Ending], SOURCE, TARGET, DEAD) if setup.outcomes else None,
        )
    )
    loop.start()
    return Relay(world, loop, source, target, clock, events)


def run_all(world: World, relays: Sequence[Relay], for_ms: int, step_ms: int = 50) -> None:
    """Let time pass for several relays, which take turns."""
    until_ms = world.now_ms + for_ms
    while world.now_ms < until_ms:
        world.now_ms += step_ms
        for relay in relays:
            relay.loop.step()


def produce(
    world: World, after_ms: int, partition: int = 0, name: bytes | None = None, value: bytes | None = b"v"
) -> int:
    """A record that is due so much later; its offset."""
    headers: Headers = [("deliver-at", b"%d" % (world.now_ms + after_ms))]
    if name is not None:
        headers.append(("deliver-id", name))
    return world.produce(partition, b"k", value, headers)


def produce_cancel(world: World, name: bytes, partition: int = 0) -> int:
    """A cancel of an id; its offset."""
    return world.produce(partition, b"k", None, [("deliver-action", b"cancel"), ("deliver-id", name)])


def produce_nonsense(world: World, partition: int = 0) -> int:
    """A record for the dead-letter topic; its offset."""
    return world.produce(partition, b"k", b"v", [("deliver-at", b"soon")])


def deliveries(world: World) -> list[Delivery]:
    """All that was delivered and dead-lettered, in order; an outcome, which has no headers, is neither."""
    found: list[Delivery] = []
    for sent_ms, record in world.delivered:
        if not record.headers:
            continue
        partition, offset, dead = source_of(record.headers)
        assert partition is not None
        assert offset is not None
        found.append(Delivery(sent_ms, partition, offset, dead))
    return found


def delivered_offsets(world: World, partition: int = 0) -> list[int]:
    """The source offsets of what was delivered from a shard, without dead letters, in order."""
    return [delivery.offset for delivery in deliveries(world) if delivery.partition == partition and not delivery.dead]


def dead_offsets(world: World, partition: int = 0) -> list[int]:
    """The source offsets of a shard's dead letters, in order."""
    return [delivery.offset for delivery in deliveries(world) if delivery.partition == partition and delivery.dead]
