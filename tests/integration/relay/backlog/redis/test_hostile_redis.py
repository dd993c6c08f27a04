"""Attacks by who can write to a relay's keys in Redis: nothing is lost, twice or early, and nothing stops."""

from __future__ import annotations

import tracemalloc
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.harness.shared_servers import SharedRedis
from tests.support.relay.in_world import Setup, delivered_offsets, deliveries, produce, start
from tests.support.relay.world import World
from tests.support.servers.redis_server import RedisFields

from delaytopic_relay.backlog.redis import connection as connection_module
from delaytopic_relay.backlog.redis.connection import RedisConnection, connect_redis
from delaytopic_relay.backlog.redis.layout import ShardKeys
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.segments import encode_segment
from delaytopic_relay.backlog.signing import UNSIGNED, SegmentSigner
from delaytopic_relay.core.commands import Schedule

pytestmark = pytest.mark.integration

FAR_MS = 40_000
SIGNED = SegmentSigner("shop", [b"a key of sixteen bytes"])
Attack = Callable[[Any, ShardKeys], object]


def lists(client: Any, keys: ShardKeys) -> list[bytes]:
    """The lists of segments."""
    return sorted(client.scan_iter(match=keys.lists + b"*", count=10_000))


def replace(client: Any, key: bytes) -> object:
    """Put a value of another type in the place of a key."""
    client.delete(key)
    return (client.lpush if key.endswith(b"position") else client.set)(key, "x")


def add(client: Any, key: bytes, field: bytes, value: bytes) -> object:
    """A field of a hash that no relay writes."""
    return client.hset(key, field, value)


ATTACKS: dict[str, Attack] = {
    "everything is deleted": lambda client, keys: client.delete(*keys[:5], *lists(client, keys)),
    "the version is a text of somebody else": lambda client, keys: client.set(keys.version, "soon"),
    "the version is a list": lambda client, keys: replace(client, keys.version),
    "the version is far ahead": lambda client, keys: client.set(keys.version, "9:1000000:me"),
    "the counts are a text": lambda client, keys: replace(client, keys.counts),
    "a slice is named by somebody else": lambda client, keys: [
        add(client, keys.counts, b"tomorrow", b"1"),
        client.zadd(keys.slices, {b"tomorrow": 1}),
    ],
    "a slice has a width that no relay uses": lambda client, keys: [
        add(client, keys.counts, b"1060000:7000", b"1"),
        client.zadd(keys.slices, {b"1060000:7000": 1060000}),
    ],
    "only the counts name a slice": lambda client, keys: add(client, keys.counts, b"1060000:60000", b"1"),
    "a slice is no longer counted": lambda client, keys: client.hdel(keys.counts, client.hkeys(keys.counts)[0]),
    "a count is no number": lambda client, keys: [
        add(client, keys.counts, name, b"many") for name in client.hkeys(keys.counts)
    ],
    "a count is larger than any number": lambda client, keys: [
        add(client, keys.counts, name, b"9" * 20) for name in client.hkeys(keys.counts)
    ],
    "a count is too high": lambda client, keys: [
        client.hincrby(keys.counts, name, 5) for name in client.hkeys(keys.counts)
    ],
    "the ids are a text": lambda client, keys: replace(client, keys.ids),
    "an id has an entry of somebody else": lambda client, keys: [
        add(client, keys.ids, name, b"latest") for name in client.hkeys(keys.ids)
    ],
    "the slices are a text": lambda client, keys: replace(client, keys.slices),
    "the slices are deleted": lambda client, keys: client.delete(keys.slices),
    "a slice is no longer scheduled": lambda client, keys: client.zpopmin(keys.slices),
    "slices are scheduled for years later": lambda client, keys: client.zadd(
        keys.slices, dict.fromkeys(client.zrange(keys.slices, 0, -1), 9e12)
    ),
    "many slices begin at one time": lambda client, keys: [
        (client.zadd(keys.slices, {b"60000:%d" % width: 60_000}), add(client, keys.counts, b"60000:%d" % width, b"1"))
        for width in range(1_200)
    ],
    "the sizes are a text": lambda client, keys: replace(client, keys.sizes),
    "the sizes are no numbers": lambda client, keys: [
        add(client, keys.sizes, name, b"many") for name in client.hkeys(keys.sizes)
    ],
    "lists are deleted": lambda client, keys: client.delete(*lists(client, keys)),
    "lists are texts": lambda client, keys: [replace(client, key) for key in lists(client, keys)],
    "segments are replaced": lambda client, keys: [client.lset(key, 0, "x") for key in lists(client, keys)],
    "segments are cut off": lambda client, keys: [
        client.lset(key, 0, client.lindex(key, 0)[:-1]) for key in lists(client, keys)
    ],
    "foreign segments come first": lambda client, keys: [
        client.lpush(key, *(bytes([byte]) + b"x" for byte in range(256))) for key in lists(client, keys)
    ],
}


@pytest.mark.parametrize("signer", [UNSIGNED, SIGNED], ids=["unsigned", "signed"])
@pytest.mark.parametrize("succeeds", [False, True], ids=["while-it-runs", "before-a-successor"])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_whatever_somebody_does_to_the_keys_each_record_arrives_once_at_its_time(
    redis_connection: RedisConnection, attack: Attack, succeeds: bool, signer: SegmentSigner
) -> None:
    # Given records that wait in a slice of a second, with and without an id, and in one of a minute
    backend_id = f"test.{uuid.uuid4()}"
    world, setup = World(), Setup(signer=signer)
    relay = start(world, RedisBacklogStore(redis_connection, backend_id), "first", setup)
    produce(world, FAR_MS)
    produce(world, FAR_MS, name=b"a")
    produce(world, 1_900_000)
    due_ms = [world.now_ms + after_ms for after_ms in (FAR_MS, FAR_MS, 1_900_000)]
    relay.run(1_000, step_ms=250)

    attack(redis_connection.client, ShardKeys.of(backend_id, 0))
    if succeeds:
        relay = start(world, RedisBacklogStore(redis_connection, backend_id), "second", setup)
    produce(world, FAR_MS, name=b"b")
    due_ms.append(world.now_ms + FAR_MS)
    relay.run(FAR_MS + 5_000, step_ms=500)
    relay.run(1_900_000, step_ms=10_000)

    sent = {delivery.offset: delivery.sent_ms for delivery in deliveries(world)}
    assert sorted(delivered_offsets(world)) == [0, 1, 2, 3]
    assert [offset for offset in range(4) if sent[offset] < due_ms[offset]] == []
    assert {**relay.loop.waiting} == {}


def test_with_a_key_a_forged_segment_delivers_nothing(redis_connection: RedisConnection) -> None:
    # Given a key, and segments that somebody without it has put beside a genuine one
    backend_id = f"test.{uuid.uuid4()}"
    world = World()
    relay = start(world, RedisBacklogStore(redis_connection, backend_id), setup=Setup(signer=SIGNED))
    due_ms = world.now_ms + FAR_MS
    produce(world, FAR_MS)
    relay.run(1_000)
    (list_,) = lists(redis_connection.client, ShardKeys.of(backend_id, 0))
    genuine: Any = redis_connection.client.lindex(list_, 0)
    forged = encode_segment([Schedule(due_ms, -1, b"k", b"forged", None)])

    redis_connection.client.rpush(list_, forged, genuine[:20] + forged, SIGNED.sign(b"elsewhere", forged))
    relay.run(FAR_MS + 2_000)

    assert delivered_offsets(world) == [0]
    assert len(relay.events.skipped) == 3


@pytest.mark.parametrize("after_ms", [FAR_MS, 1_900_000], ids=["narrow", "wide"])
def test_with_a_key_a_copy_in_the_place_of_another_segment_counts_once_and_nothing_is_lost(
    redis_connection: RedisConnection, after_ms: int
) -> None:
    # Given a slice of two segments of a hundred records each, and a copy of the first in the place of the second
    backend_id = f"test.{uuid.uuid4()}"
    world = World()
    relay = start(world, RedisBacklogStore(redis_connection, backend_id), setup=Setup(signer=SIGNED))
    due_ms = (world.now_ms + after_ms) // 60_000 * 60_000 + 30_000
    for _ in range(2):
        for _ in range(100):
            produce(world, due_ms - world.now_ms)
        relay.run(1_000, step_ms=250)
    (list_,) = lists(redis_connection.client, ShardKeys.of(backend_id, 0))
    first: Any = redis_connection.client.lindex(list_, 0)

    redis_connection.client.lset(list_, 1, first)
    relay.run(due_ms - world.now_ms + 5_000, step_ms=1_000)

    assert sorted(delivered_offsets(world)) == [*range(200)]
    assert any("it is a copy of another element" in said for _, said in relay.events.skipped)


def test_an_element_of_absurd_size_costs_a_refill_and_no_memory(
    redis: SharedRedis, redis_connection: RedisConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a record that waits, and beside it an element larger than any answer that a relay takes
    monkeypatch.setattr(connection_module, "MOST_BYTES", 4 << 20)
    backend_id = f"test.{uuid.uuid4()}"
    world = World()
    bounded = connect_redis(RedisFields(url=redis.url))
    relay = start(world, RedisBacklogStore(bounded, backend_id))
    produce(world, FAR_MS)
    relay.run(1_000)
    (list_,) = lists(redis_connection.client, ShardKeys.of(backend_id, 0))
    redis_connection.client.rpush(list_, bytes(64 << 20))

    tracemalloc.start()
    relay.run(FAR_MS + 5_000, step_ms=500)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bounded.client.close()

    assert delivered_offsets(world) == [0]
    assert lists(redis_connection.client, ShardKeys.of(backend_id, 0)) == []
    assert peak_bytes < 16 << 20
