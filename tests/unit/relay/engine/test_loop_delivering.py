from __future__ import annotations

from collections.abc import Mapping

from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import (
    Delivery,
    Setup,
    StrictTarget,
    dead_offsets,
    delivered_offsets,
    deliveries,
    produce,
    produce_nonsense,
    read_by_usual_rules,
    start,
)
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.progress import Progress, decode_progress
from delaytopic_relay.engine.pacing import BURST, MARKERS_MS, QUIET_TICK_MS

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def committed(world: World, partition: int = 0) -> Progress:
    return decode_progress(*world.committed[partition])


def test_a_record_is_delivered_at_its_time_and_not_before() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore())
    offset = produce(world, 2_000)
    due_ms = world.now_ms + 2_000

    relay.run(1_999, step_ms=1)
    early = deliveries(world)
    relay.run(100, step_ms=1)

    assert (early, deliveries(world)) == ([], [Delivery(due_ms, 0, offset)])


def test_a_record_that_is_far_away_comes_back_from_the_backlog_at_its_time() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore())
    due_ms = {produce(world, delay_ms): world.now_ms + delay_ms for delay_ms in (25_000, HOUR_MS, 2 * DAY_MS)}

    for offset, due in due_ms.items():
        relay.run(due - world.now_ms - 60_000, step_ms=30_000)
        relay.run(61_000, step_ms=500)
        sent = [delivery.sent_ms for delivery in deliveries(world) if delivery.offset == offset]

        assert len(sent) == 1
        assert due <= sent[0] < due + 500


def test_records_are_delivered_in_the_order_of_due_time_and_then_of_the_source() -> None:
    world = World()
    for after_ms in (3_000, 1_000, 60_000, 1_000, 60_000, 2_000):
        produce(world, after_ms)
    relay = start(world, MemoryBacklogStore())

    relay.run(61_000)

    assert delivered_offsets(world) == [1, 3, 5, 0, 2, 4]


def test_a_record_that_is_past_due_is_delivered_at_once() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore())
    relay.run(1_000)
    produce(world, 0)
    relay.run(200)

    late = produce(world, -60_000)
    relay.run(200)

    assert deliveries(world)[-1] == Delivery(world.now_ms - 150, 0, late)


def test_shards_do_not_wait_for_each_other() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore(), setup=Setup(shards=(0, 1, 2)))
    for partition in (2, 0, 1):
        produce(world, 1_000 + partition, partition)

    relay.run(2_000, step_ms=1)

    assert [(delivery.partition, delivery.offset) for delivery in deliveries(world)] == [(0, 0), (1, 0), (2, 0)]


def test_a_burst_is_committed_once_no_more_of_it_comes_and_a_few_records_with_the_quiet_tick() -> None:
    burst, few = World(), World()
    for number in range(BURST):
        produce(burst, 60_000 + number)
    produce(few, 60_000)
    relays = [start(world, MemoryBacklogStore()) for world in (burst, few)]

    for relay in relays:
        relay.run(QUIET_TICK_MS - 100)

    assert [relay.loop.snapshot().committed[0].position for relay in relays] == [BURST, 0]


def test_the_progress_of_a_delivery_is_committed_with_it() -> None:
    world = World()
    produce(world, 1_000)
    due_ms = world.now_ms + 1_000
    relay = start(world, MemoryBacklogStore(), "relay-1")

    relay.run(700)
    waiting = committed(world)
    relay.run(1_000)

    assert (waiting, committed(world)) == (
        Progress(
            0,
            1,
            NOTHING_DELIVERED,
            "relay-1",
            generations=read_by_usual_rules(DueKey(due_ms, 0)),
            identity=world.identity,
        ),
        Progress(
            1,
            1,
            DueKey(due_ms, 0),
            "relay-1",
            generations=read_by_usual_rules(DueKey(due_ms, 0)),
            identity=world.identity,
        ),
    )


def test_a_record_that_cannot_be_read_is_dead_lettered_at_once() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore())
    relay.run(1_000)
    produce(world, 1_000)
    refused = produce_nonsense(world)
    produced_ms = world.now_ms

    relay.run(500, step_ms=10)

    assert deliveries(world) == [Delivery(produced_ms + 10, 0, refused, dead=True)]


def test_a_dead_letter_becomes_visible_together_with_the_progress_past_its_record() -> None:
    # Given every visible dead letter, and what was committed when it became visible
    world = World()
    seen: list[tuple[int, int]] = []
    relay = start(world, MemoryBacklogStore(), setup=Setup(chunk=1))
    for _ in range(5):
        produce_nonsense(world)

    for _ in range(40):
        relay.run(10, step_ms=10)
        position = committed(world).position if 0 in world.committed else 0
        seen.append((len(dead_offsets(world)), position))

    assert [count for count, _ in seen] == [position for _, position in seen]
    assert seen[-1] == (5, 5)


def test_an_idle_relay_commits_nothing() -> None:
    world = World()
    produce(world, 0)
    relay = start(world, MemoryBacklogStore())
    relay.run(2_000)
    commits = relay.events.counts["commits"]

    relay.run(20_000)

    assert relay.events.counts["commits"] == commits


def test_the_journal_counts_what_was_sent_and_what_was_dead_lettered() -> None:
    world = World()
    for after_ms in (0, 500, 700):
        produce(world, after_ms)
    produce_nonsense(world)
    relay = start(world, MemoryBacklogStore())

    relay.run(2_000)

    assert (relay.events.counts["sent"], relay.events.counts["rejected"]) == (3, 1)


def test_without_transactions_records_are_delivered_just_the_same() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore(), setup=Setup(transactional=False))
    for after_ms in (2_000, 1_000, 30_000):
        produce(world, after_ms)

    relay.run(31_000)

    assert delivered_offsets(world) == [1, 0, 2]
    last = DueKey(world.now_ms - 1_000, 2)
    assert committed(world) == Progress(3, 3, last, "", generations=read_by_usual_rules(last), identity=world.identity)


class AheadClock(WorldClock):
    """A wall clock that is five seconds ahead."""

    def now_ms(self) -> int:
        return self.world.now_ms + 5_000


class LittleAheadClock(WorldClock):
    """A wall clock that is ahead by what two relays' clocks may differ."""

    def now_ms(self) -> int:
        return self.world.now_ms + 1_900


def test_a_relay_sends_nothing_early_when_the_clock_of_its_predecessor_was_ahead() -> None:
    # Given that something due in four seconds was delivered already
    world, store = World(), MemoryBacklogStore()
    produce(world, 4_000)
    start(world, store, "ahead", Setup(clock=AheadClock)).run(1_000)
    assert delivered_offsets(world) == [0]

    # When a relay with the right clock takes over, and something due before that arrives
    relay = start(world, store, "right")
    relay.run(500)
    due_ms = world.now_ms + 1_000
    second = produce(world, 1_000)
    relay.run(5_000, step_ms=10)

    # Then it leaves at its own time
    assert deliveries(world)[1] == Delivery(due_ms, 0, second)


def test_reading_pauses_while_what_was_read_waits_for_the_clock() -> None:
    # Given a relay whose predecessor's clock was a little ahead, and a stream of records that are due before its last
    world, store = World(), MemoryBacklogStore()
    produce(world, 2_400)
    start(world, store, "ahead", Setup(clock=LittleAheadClock)).run(1_000)
    relay = start(world, store, "right", Setup(chunk=2))
    relay.run(100)

    for _ in range(10):
        produce(world, 400)
        relay.run(20, step_ms=10)
    paused, position = set(relay.source.paused), relay.source.positions[0]
    relay.run(5_000)

    assert (paused, position < 5, relay.source.paused) == ({0}, True, set())
    assert delivered_offsets(world) == [*range(11)]


class NotingTarget(StrictTarget):
    """Notes when transactions begin and end."""

    def __init__(self, world: World, owner: str) -> None:
        super().__init__(world, owner)
        self.begun_ms: list[int] = []
        self.ended_ms: list[int] = []

    def begin(self) -> None:
        super().begin()
        self.begun_ms.append(self.world.now_ms)

    def commit(self, progress: Mapping[int, Progress], group: object) -> None:
        super().commit(progress, group)
        self.ended_ms.append(self.world.now_ms)


def test_a_transaction_begins_when_the_markers_of_the_one_before_are_written() -> None:
    # Given a record that is due in each millisecond of a while
    world = World()
    for number in range(200):
        produce(world, 1_000 + number)
    relay = start(world, MemoryBacklogStore(), setup=Setup(target=NotingTarget))

    relay.run(1_500, step_ms=1)

    assert isinstance(relay.target, NotingTarget)
    begun_ms, ended_ms = relay.target.begun_ms, relay.target.ended_ms
    pauses_ms = [begun - ended for ended, begun in zip(ended_ms[:-1], begun_ms[1:], strict=True)]
    assert min(pauses_ms) == MARKERS_MS
    assert delivered_offsets(world) == [*range(200)]
