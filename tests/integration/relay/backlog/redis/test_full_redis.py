"""A relay on a real Redis that somebody else has filled: what waits in wide slices leaves in time."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.relay.in_world import Setup, delivered_offsets, deliveries, produce, start
from tests.support.relay.world import World
from tests.support.servers.redis_server import RedisFields

from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_relay.backlog.redis.connection import RedisConnection, connect_redis
from delaytopic_relay.backlog.redis.layout import ShardKeys
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.core.entries import ENTRY_BYTES

pytestmark = pytest.mark.integration

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
STEP_MS = 5_000


@pytest.fixture
def redis(start_redis: Callable[..., RedisServer]) -> Iterator[RedisConnection]:
    connection = connect_redis(RedisFields(url=start_redis(appendonly="no").url))
    yield connection
    connection.client.close()


def fill(redis: RedisConnection) -> None:
    client: Any = redis.client
    client.config_set("maxmemory", 1)


@pytest.mark.parametrize("memory_bytes", [40 * ENTRY_BYTES, 1 << 30], ids=["little-memory", "plenty"])
@pytest.mark.parametrize(
    ("after_ms", "width_ms"), [(40 * MINUTE_MS, MINUTE_MS), (26 * HOUR_MS, HOUR_MS)], ids=["a-minute", "an-hour"]
)
@pytest.mark.takes_long("an hour passes in steps of seconds")
def test_a_wide_slice_that_cannot_be_spread_is_delivered_in_time_from_where_it_is(
    redis: RedisConnection, after_ms: int, width_ms: int, memory_bytes: int
) -> None:
    # Given 201 records in one wide slice, and a Redis that is full from then on, whoever owns the shard
    world, store = World(), RedisBacklogStore(redis, f"test.{uuid.uuid4()}")
    setup = Setup(memory_bytes=memory_bytes)
    relay = start(world, store, "first", setup)
    first_ms = (world.now_ms + after_ms) // width_ms * width_ms + width_ms // 10
    due_ms = [first_ms + 100 * number for number in range(201)]
    for at_ms in due_ms:
        produce(world, at_ms - world.now_ms)
    relay.run(1_000, step_ms=250)
    fill(redis)
    world.now_ms = first_ms - 10 * MINUTE_MS
    relay = start(world, store, "second", setup)

    relay.run(16 * MINUTE_MS, step_ms=STEP_MS)

    late_ms = [sent.sent_ms - due_ms[sent.offset] for sent in deliveries(world)]
    assert delivered_offsets(world) == [*range(201)]
    assert min(late_ms) >= 0
    assert max(late_ms) <= 2 * STEP_MS


def test_what_redis_has_no_room_for_is_delivered_from_memory_and_goes_there_once_there_is_room(
    redis: RedisConnection,
) -> None:
    # Given a full Redis, and records for later: one soon, one in an hour
    world, backend_id = World(), f"test.{uuid.uuid4()}"
    relay = start(world, RedisBacklogStore(redis, backend_id))
    fill(redis)
    produce(world, 30_000)
    produce(world, HOUR_MS)
    relay.run(40_000, step_ms=500)
    held = delivered_offsets(world), relay.loop.shards[0].share, relay.loop.shards[0].progress("").offset

    # When there is room
    client: Any = redis.client
    client.config_set("maxmemory", 0)
    relay.run(3_000, step_ms=500)

    shard = relay.loop.shards[0]
    assert held[0] == [0]
    assert held[1] is not None
    assert held[1].refused_bytes > 0
    assert held[2] == 1
    assert (shard.share and shard.share.refused_bytes, shard.progress("").offset, shard.committed_offset) == (0, 2, 2)
    assert client.hlen(ShardKeys.of(backend_id, 0).counts) == 1


def test_what_redis_has_no_room_for_survives_a_crash(redis: RedisConnection) -> None:
    world, store = World(), RedisBacklogStore(redis, f"test.{uuid.uuid4()}")
    relay = start(world, store, "first")
    fill(redis)
    produce(world, 100_000)
    produce(world, 0)
    relay.run(2_000, step_ms=500)

    relay = start(world, store, "second")
    relay.run(120_000, step_ms=500)

    assert delivered_offsets(world) == [1, 0]
