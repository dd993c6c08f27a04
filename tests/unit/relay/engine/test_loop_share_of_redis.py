"""A shard that has used up its share of the backlog is read no further, and goes on when there is room."""

from __future__ import annotations

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.backlog.shards import unlisted_shard
from tests.support.relay.in_world import Relay, Setup, delivered_offsets, produce, start
from tests.support.relay.world import World

from delaytopic_api.values import Quantity
from delaytopic_relay.backlog.redis.layout import SLICE_BYTES
from delaytopic_relay.backlog.redis.shard import RESUME_SHARE, UNLIMITED_BYTES, RedisShard, share_bytes_of

SECONDS = 100
SHARE = Setup(share_bytes=SECONDS * SLICE_BYTES, chunk=20)
FIRST_MS = 60_000


def shard_of(relay: Relay, number: int = 0) -> RedisShard:
    shard = relay.loop.shards[number]
    assert isinstance(shard, RedisShard)
    return shard


def produce_seconds(world: World, records: int, partition: int = 0) -> None:
    """Produce a record for each of so many seconds, each a slice of its own."""
    for number in range(records):
        produce(world, FIRST_MS + number * 1_000, partition)


def test_a_shard_pauses_at_its_share_and_resumes_with_room_and_each_record_arrives_once() -> None:
    world = World()
    produce_seconds(world, 4 * SECONDS)
    relay = start(world, MemoryBacklogStore(), setup=SHARE)

    relay.run(10_000, step_ms=500)
    shard, paused = shard_of(relay), relay.loop.snapshot().paused
    position, most = shard.position, shard.stored_bytes
    relay.run(FIRST_MS + 4 * SECONDS * 1_000, step_ms=500)

    assert (paused, shard.over_share) == (frozenset({0}), False)
    assert SHARE.share_bytes <= most < 1.5 * SHARE.share_bytes
    assert SECONDS / 2 < position < 2 * SECONDS
    assert delivered_offsets(world) == list(range(4 * SECONDS))


def test_another_shard_of_the_relay_is_read_on() -> None:
    world = World()
    setup = SHARE._replace(shards=(0, 1))
    produce_seconds(world, 4 * SECONDS)
    relay = start(world, MemoryBacklogStore(), setup=setup)
    relay.run(10_000, step_ms=500)

    produce(world, 1_000, partition=1)
    relay.run(3_000, step_ms=500)

    assert relay.loop.snapshot().paused == {0}
    assert delivered_offsets(world, 1) == [0]


def test_a_successor_knows_at_once_that_the_share_is_used_up() -> None:
    world, store = World(), MemoryBacklogStore()
    produce_seconds(world, 4 * SECONDS)
    first = start(world, store, "first", SHARE)
    first.run(10_000, step_ms=500)
    stored = shard_of(first).stored_bytes
    first.finish()

    successor = start(world, store, "second", SHARE)
    successor.run(1_000, step_ms=500)

    assert (shard_of(successor).stored_bytes, successor.loop.snapshot().paused) == (stored, frozenset({0}))


def test_what_a_backlog_lost_is_read_again_though_it_had_used_up_its_share() -> None:
    world, store = World(), MemoryBacklogStore()
    produce_seconds(world, 2 * SECONDS)
    relay = start(world, store, setup=SHARE)
    relay.run(10_000, step_ms=500)

    store.wipe()
    relay.run(FIRST_MS + 2 * SECONDS * 1_000, step_ms=500)

    assert delivered_offsets(world) == list(range(2 * SECONDS))


@pytest.mark.parametrize(
    ("sizes", "over"),
    [
        ([999], False),
        ([1_000], True),
        ([1_000, 999, 750], True),
        ([1_000, 749], False),
        ([1_000, 749, 999], False),
        ([1_000, 749, 1_000], True),
    ],
)
def test_reading_goes_on_when_a_quarter_of_the_share_is_free(sizes: list[int], over: bool) -> None:
    shard = unlisted_shard(share_bytes=1_000)

    for size in sizes:
        shard.note_stored(size)

    assert (shard.over_share, shard.full(0, paused=True), RESUME_SHARE) == (over, over, 0.75)


def test_partitions_have_equal_shares_of_what_the_class_allows() -> None:
    assert [share_bytes_of(Quantity("1Gi"), partitions) for partitions in (1, 8)] == [1 << 30, 1 << 27]
    assert share_bytes_of(None, 8) == UNLIMITED_BYTES
