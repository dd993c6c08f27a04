"""Back-pressure: bytes of memory, not records, decide when reading pauses."""

from __future__ import annotations

from tests.support.relay.backlog.flaky_store import FlakyStore
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import PLENTY, Relay, Setup, delivered_offsets, produce, produce_nonsense, start
from tests.support.relay.world import World

from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.entries import size


def bytes_of_one() -> int:
    """Return what a loop counts for one record."""
    world = World()
    produce(world, 2_000)
    relay = start(world, MemoryBacklogStore())
    relay.run(1_000)
    return relay.loop.shards[0].size


RECORD_BYTES = bytes_of_one()
TEN_RECORDS = 10 * RECORD_BYTES
SMALL = Setup(memory_bytes=TEN_RECORDS, chunk=4)


def most_in_memory(relay: Relay, for_ms: int) -> int:
    """The most records in memory while time passes."""
    most = 0
    for _ in range(for_ms // 50):
        relay.run(50)
        most = max([most, *(shard.size // RECORD_BYTES for shard in relay.loop.shards.values())])
    return most


def test_a_record_is_counted_with_all_its_parts() -> None:
    now_ms = World().now_ms
    time = b"%d" % (now_ms + 2_000)
    schedule = Schedule(int(time), 0, b"k", b"v", [("deliver-at", time)], 0, timestamp_ms=now_ms)

    assert size(schedule) == RECORD_BYTES


def test_reading_pauses_when_memory_is_full_and_goes_on_when_there_is_room() -> None:
    # Given more records within the horizon than memory takes
    world = World()
    for number in range(40):
        produce(world, 2_000 + 100 * number)
    relay = start(world, MemoryBacklogStore(), setup=SMALL)

    relay.run(1_000)
    paused, position = set(relay.source.paused), relay.source.positions[0]
    relay.run(6_000)

    assert (paused, position < 40) == ({0}, True)
    assert (relay.source.paused, delivered_offsets(world)) == (set(), [*range(40)])


def test_memory_holds_no_more_than_its_bound_and_one_read() -> None:
    world = World()
    for number in range(100):
        produce(world, 2_000 + 50 * number)
    relay = start(world, MemoryBacklogStore(), setup=SMALL)

    most = most_in_memory(relay, 8_000)

    assert most <= 10 + SMALL.chunk
    assert delivered_offsets(world) == [*range(100)]


def test_memory_holds_little_more_than_its_bound_when_a_burst_comes_back_from_the_backlog() -> None:
    # Given forty records in a backlog that takes 5 ms for a load, in as many slices
    world = World()
    store = FlakyStore(world, load_ms=5)
    for number in range(40):
        produce(world, 30_000 + 250 * number)
    start(world, store, "first").run(2_000)
    relay = start(world, store, "second", SMALL)

    most = most_in_memory(relay, 45_000)

    assert most <= 10 + 4
    assert delivered_offsets(world) == [*range(40)]


def test_a_second_of_the_backlog_that_is_larger_than_the_memory_is_delivered_all_the_same() -> None:
    # Given that it takes longer to load than the loop spends on loading at a time
    world = World()
    store = FlakyStore(world, load_ms=20)
    for _ in range(40):
        produce(world, 30_000)
    relay = start(world, store, setup=SMALL)

    relay.run(60_000)

    assert delivered_offsets(world) == [*range(40)]


def test_what_is_due_leaves_while_reading_is_paused() -> None:
    world = World()
    for number in range(30):
        produce(world, 2_000 + 10 * number)
    relay = start(world, MemoryBacklogStore(), setup=SMALL)
    relay.run(1_900)
    assert relay.source.paused == {0}

    relay.run(250)

    assert delivered_offsets(world)[:10] == [*range(10)]


def test_reading_again_is_never_paused() -> None:
    # Given that a predecessor with more memory took in a hundred records
    world, store = World(), MemoryBacklogStore()
    for number in range(100):
        produce(world, 5_000 + number)
    start(world, store, "large", Setup(memory_bytes=PLENTY)).run(2_000)

    # When a relay with less memory takes over
    relay = start(world, store, "small", SMALL)
    paused: list[bool] = []
    for _ in range(60):
        relay.run(10, step_ms=10)
        shard = relay.loop.shards.get(0)
        paused.append(bool(relay.source.paused) and shard is not None and shard.replaying)
    relay.run(10_000)

    # Then it reads them all before it pauses
    assert not any(paused)
    assert delivered_offsets(world) == [*range(100)]


def test_far_records_pass_through_a_full_memory_to_the_backlog() -> None:
    # Given far records between near ones that fill the memory
    world, store = World(), MemoryBacklogStore()
    for number in range(60):
        produce(world, 3_000 if number % 2 else 40_000)
    relay = start(world, store, setup=SMALL)

    relay.run(45_000)

    assert sorted(delivered_offsets(world)) == [*range(60)]


def test_one_shard_that_fills_the_memory_pauses_all_and_none_is_lost() -> None:
    world = World()
    for number in range(30):
        produce(world, 2_000 + 10 * number, partition=0)
    for number in range(5):
        produce(world, 1_000 + number, partition=1)
    relay = start(world, MemoryBacklogStore(), setup=SMALL._replace(shards=(0, 1)))

    relay.run(10_000)

    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([*range(30)], [*range(5)])


def test_dead_letters_take_no_memory() -> None:
    world = World()
    for _ in range(100):
        produce_nonsense(world)
    relay = start(world, MemoryBacklogStore(), setup=SMALL)

    assert most_in_memory(relay, 2_000) == 0
