"""What only a shelf in Redis can do or suffer: its keys, its scripts, half-done puts, faults of the server."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
import redis
from tests.support.redis_server import RedisFields
from tests.support.stores import RedisStore

from delaytopic_cli.embedded.redis_server import RedisServer
from delaytopic_cli.embedded.waiting import wait_until
from delaytopic_relay.errors import ConfigurationError, CorruptState, ShelfMoved, ShelfUnavailable
from delaytopic_relay.shelves import redis_connection as connection_module
from delaytopic_relay.shelves.protocol import IdEntry, Position, Segment, Shelf, Slice
from delaytopic_relay.shelves.redis import RedisShelf
from delaytopic_relay.shelves.redis_connection import Client, RedisConnection, connect_redis
from delaytopic_relay.shelves.redis_parts import MAX_BYTES, MAX_ITEMS

pytestmark = pytest.mark.integration

StartRedis = Callable[..., RedisServer]
CLAIM, FIRST, SECOND = Position("relay-a", 1, 0), Position("relay-a", 2, 100), Position("relay-a", 3, 250)
NEAR, FAR = Slice(1000, 1000), Slice(60_000, 60_000)
ENTRY = IdEntry(7, 1500, 5)
MANY = [Segment(NEAR, 1, b"%d" % number) for number in range(3 * MAX_ITEMS)]


def connect(server: RedisServer) -> RedisConnection:
    return connect_redis(RedisFields(url=server.url))


def load_all(shelf: Shelf, position: Position, slice_: Slice = NEAR) -> list[bytes]:
    return shelf.load(0, position, slice_, 0, 1_000_000)


class Interrupted:
    """A client that does something else before some of its scripts, counted from one: faults at chosen moments."""

    def __init__(self, client: Client, faults: Mapping[int, Callable[[], object]]) -> None:
        self._client, self._faults, self._scripts = client, faults, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def evalsha(self, *arguments: Any) -> Any:
        self._scripts += 1
        self._faults.get(self._scripts, int)()
        return self._client.evalsha(*arguments)


def interrupted(store: RedisStore, faults: Mapping[int, Callable[[], object]]) -> RedisShelf:
    client = cast(Client, Interrupted(store.connection.client, faults))
    return RedisShelf(RedisConnection(client, store.connection.where), store.backend_id)


def break_off() -> None:
    raise redis.ConnectionError("Connection reset by peer")


@pytest.fixture
def redis_store(redis_connection: RedisConnection) -> RedisStore:
    return RedisStore(redis_connection, f"test.{uuid.uuid4()}")


# --- layout


def test_a_shard_has_the_documented_keys_in_one_slot(redis_store: RedisStore) -> None:
    shelf = redis_store.open()

    shelf.put(0, None, FIRST, [Segment(NEAR, 2, b"x"), Segment(FAR, 1, b"y")], {b"id": ENTRY})

    tag = f"{{{redis_store.backend_id}:0}}:"
    names = ["ids", "position", "s:1000:1000", "s:60000:60000", "slices"]
    client: Any = redis_store.connection.client
    assert redis_store.keys() == [f"{tag}{name}".encode() for name in names]
    assert client.get(tag + "position") == b"2:100:relay-a"
    assert client.hgetall(tag + "slices") == {b"1000:1000": b"2", b"60000:60000": b"1"}
    assert client.hgetall(tag + "ids") == {b"id": b"7:1500:5"}


def test_an_emptied_shard_leaves_nothing_but_its_position(redis_store: RedisStore) -> None:
    shelf = redis_store.open()
    shelf.put(0, None, FIRST, [Segment(NEAR, 2, b"x"), Segment(FAR, 1, b"y")], {b"id": ENTRY})

    shelf.drop(0, FIRST, [NEAR, FAR], [b"id"])

    assert redis_store.keys() == [f"{{{redis_store.backend_id}:0}}:position".encode()]


@pytest.mark.parametrize("backend_id", ["", "a{b", "a}b"])
def test_an_id_that_would_break_the_hash_tag_is_refused(redis_connection: RedisConnection, backend_id: str) -> None:
    with pytest.raises(ConfigurationError, match="must not be empty or contain braces"):
        RedisShelf(redis_connection, backend_id)


@pytest.mark.parametrize("junk", [b"7", b"7:x:relay", b"\xff:\xfe"])
def test_a_position_that_no_relay_wrote_is_corrupt(redis_store: RedisStore, junk: bytes) -> None:
    key = f"{{{redis_store.backend_id}:0}}:position"
    redis_store.connection.client.set(key, junk)

    with pytest.raises(CorruptState) as caught:
        redis_store.open().position(0)

    assert str(caught.value) == (
        f"the Redis key {key} holds {junk!r}, which no relay writes: delete the keys that begin with "
        f"{{{redis_store.backend_id}:0}}; the relay then fills the shelf again from the source topic"
    )


def test_a_slice_or_an_id_that_no_relay_wrote_is_corrupt(redis_store: RedisStore) -> None:
    shelf, client = redis_store.open(), cast(Any, redis_store.connection.client)
    shelf.put(0, None, FIRST, [], {})
    client.hset(f"{{{redis_store.backend_id}:0}}:slices", "soon", 1)
    client.hset(f"{{{redis_store.backend_id}:0}}:ids", "id", "1:2")

    with pytest.raises(CorruptState, match="holds b'soon', which no relay writes"):
        shelf.slices(0)
    with pytest.raises(CorruptState, match="holds b'1:2', which no relay writes"):
        shelf.ids(0, FIRST, [b"id"])


def test_keys_of_another_type_are_corrupt(redis_store: RedisStore) -> None:
    shelf, client = redis_store.open(), redis_store.connection.client
    shelf.put(0, None, FIRST, [], {})
    client.set(f"{{{redis_store.backend_id}:0}}:s:1000:1000", "text")

    for call in (
        lambda: shelf.put(0, FIRST, SECOND, [Segment(NEAR, 1, b"x")], {}),
        lambda: load_all(shelf, FIRST),
    ):
        with pytest.raises(CorruptState, match=r"holds keys of another type under the shelf's names: set another back"):
            call()


# --- half-done puts


def test_a_put_that_broke_off_half_way_says_the_offset_from_before(redis_store: RedisStore) -> None:
    redis_store.open().put(0, None, CLAIM, [], {})

    with pytest.raises(ShelfUnavailable):
        interrupted(redis_store, {3: break_off}).put(0, CLAIM, FIRST, MANY, {})

    assert redis_store.open().position(0) == Position("relay-a+2", 2, CLAIM.offset)


@pytest.mark.parametrize("before_script", [1, 2, 3])
def test_a_put_that_broke_off_is_completed_by_its_repeat(redis_store: RedisStore, before_script: int) -> None:
    shelf = redis_store.open()
    shelf.put(0, None, CLAIM, [], {})
    with pytest.raises(ShelfUnavailable):
        interrupted(redis_store, {before_script: break_off}).put(0, CLAIM, FIRST, MANY, {b"id": ENTRY})

    shelf.put(0, CLAIM, FIRST, MANY, {b"id": ENTRY})

    assert (shelf.position(0), shelf.slices(0)) == (FIRST, {NEAR: 3 * MAX_ITEMS})
    assert load_all(shelf, FIRST) == [segment.data for segment in MANY]
    assert shelf.ids(0, FIRST, [b"id"]) == [ENTRY]


def test_a_part_that_was_done_although_its_answer_was_lost_is_not_done_again(redis_store: RedisStore) -> None:
    # Given that the first attempt's part two is carried out only after the repeat has begun
    shelf = redis_store.open()
    shelf.put(0, None, CLAIM, [], {})
    first_attempt = interrupted(redis_store, {3: break_off})

    def late() -> None:
        with pytest.raises(ShelfUnavailable):
            first_attempt.put(0, CLAIM, FIRST, MANY, {})

    interrupted(redis_store, {2: late}).put(0, CLAIM, FIRST, MANY, {})

    assert (shelf.position(0), shelf.slices(0)) == (FIRST, {NEAR: 3 * MAX_ITEMS})


def test_a_successor_claims_over_a_half_done_put_whose_relay_then_can_do_nothing(redis_store: RedisStore) -> None:
    successor = redis_store.open()
    successor.put(0, None, CLAIM, [], {})
    with pytest.raises(ShelfUnavailable):
        interrupted(redis_store, {2: break_off}).put(0, CLAIM, FIRST, MANY, {})
    claimed = Position("relay-b", 2, 0)
    successor.put(0, successor.position(0), claimed, [], {})

    with pytest.raises(ShelfMoved):
        redis_store.open().put(0, CLAIM, FIRST, MANY, {})

    assert (successor.position(0), successor.slices(0)) == (claimed, {NEAR: MAX_ITEMS})


@pytest.mark.parametrize("taken_before", [1, 2])
def test_a_server_that_lost_a_part_in_the_middle_of_a_put_is_noticed(
    redis_store: RedisStore, taken_before: int
) -> None:
    shelf = redis_store.open()
    shelf.put(0, None, CLAIM, [], {})
    taken: list[Callable[[], None]] = []
    faults = {
        taken_before: lambda: taken.append(redis_store.snapshot()),
        3: lambda: [roll_back() for roll_back in taken],
    }

    with pytest.raises(ShelfMoved):
        interrupted(redis_store, faults).put(0, CLAIM, FIRST, MANY, {})

    assert shelf.position(0) == [CLAIM, Position("relay-a+1", 2, CLAIM.offset)][taken_before - 1]


def test_a_claim_in_the_middle_of_a_large_put_stops_it(redis_store: RedisStore) -> None:
    shelf, successor = redis_store.open(), redis_store.open()
    shelf.put(0, None, CLAIM, [], {})
    claimed = Position("relay-b", 2, 0)

    faults = {2: lambda: successor.put(0, successor.position(0), claimed, [], {})}

    with pytest.raises(ShelfMoved, match="another relay claimed it"):
        interrupted(redis_store, faults).put(0, CLAIM, FIRST, MANY, {})

    assert (shelf.position(0), shelf.slices(0)) == (claimed, {NEAR: MAX_ITEMS})


# --- what happens to servers


def test_a_flushed_script_cache_is_filled_again(redis_store: RedisStore) -> None:
    shelf = redis_store.open()
    shelf.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    redis_store.connection.client.script_flush()
    shelf.put(0, FIRST, SECOND, [Segment(NEAR, 1, b"2")], {})
    redis_store.connection.client.script_flush()
    shelf.drop(0, SECOND, [FAR], [])

    assert load_all(shelf, SECOND) == [b"1", b"2"]


def test_a_flushed_server_is_noticed_by_every_call(start_redis: StartRedis) -> None:
    connection = connect(start_redis())
    shelf = RedisShelf(connection, "shop")
    shelf.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    connection.client.flushall()

    for call in (
        lambda: load_all(shelf, FIRST),
        lambda: shelf.ids(0, FIRST, [b"id"]),
        lambda: shelf.put(0, FIRST, SECOND, [], {}),
        lambda: shelf.drop(0, FIRST, [NEAR], []),
    ):
        with pytest.raises(ShelfMoved, match="it was wiped, or it is another server's"):
            call()
    shelf.close()


def test_what_was_put_outlives_a_killed_server_and_the_shelf_goes_on(start_redis: StartRedis) -> None:
    # Given an append-only file, a shelf, and a server that dies
    server = start_redis()
    shelf = RedisShelf(connect(server), "shop")
    shelf.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {b"id": ENTRY})
    server.kill()

    # When it is asked meanwhile
    with pytest.raises(ShelfUnavailable, match=f"Redis at 127.0.0.1:{server.port} is not available"):
        shelf.position(0)

    # Then it is unavailable, and afterwards as it was
    server.start()
    assert (shelf.position(0), load_all(shelf, FIRST)) == (FIRST, [b"1"])
    shelf.put(0, FIRST, SECOND, [Segment(NEAR, 1, b"2")], {})
    assert load_all(shelf, SECOND) == [b"1", b"2"]
    shelf.close()


def test_a_server_that_comes_back_without_its_data_is_noticed(start_redis: StartRedis) -> None:
    server = start_redis()
    shelf = RedisShelf(connect(server), "shop")
    shelf.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    server.kill()
    server.delete_data()
    server.start()

    with pytest.raises(ShelfMoved):
        load_all(shelf, FIRST)
    assert (shelf.position(0), shelf.slices(0)) == (None, {})
    shelf.close()


def test_a_put_whose_answer_never_came_may_be_repeated(
    start_redis: StartRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a frozen server, and a put that waited for it in vain
    monkeypatch.setattr(connection_module, "READ_TIMEOUT_S", 0.3)
    server = start_redis()
    shelf = RedisShelf(connect(server), "shop")
    shelf.put(0, None, CLAIM, [], {})
    server.send_signal(signal.SIGSTOP)
    with pytest.raises(ShelfUnavailable, match="Timeout reading from socket"):
        shelf.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})

    # When the server goes on, and carries out both the first attempt and its repeat
    server.send_signal(signal.SIGCONT)
    shelf.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})

    assert (shelf.position(0), load_all(shelf, FIRST)) == (FIRST, [b"1"])
    shelf.close()


def test_a_full_server_says_what_to_do_and_the_put_is_completed_when_there_is_room(start_redis: StartRedis) -> None:
    # Given room for some parts of a put, and not for all
    connection = connect(start_redis(appendonly="no"))
    client = cast(Any, connection.client)
    shelf = RedisShelf(connection, "shop")
    shelf.put(0, None, CLAIM, [], {})
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 3 * MAX_BYTES)
    segments = [Segment(NEAR, 1, bytes(MAX_BYTES // 2 - 100)) for _ in range(16)]

    with pytest.raises(ShelfUnavailable) as caught:
        shelf.put(0, CLAIM, FIRST, segments, {})

    assert str(caught.value) == (
        f"{connection.where} is full: maxmemory is reached and nothing may be evicted. "
        "Records wait in the source topic meanwhile; raise maxmemory, or move other data elsewhere"
    )
    assert 0 < shelf.slices(0)[NEAR] < 16
    client.config_set("maxmemory", 0)
    shelf.put(0, CLAIM, FIRST, segments, {})
    assert (shelf.position(0), shelf.slices(0)) == (FIRST, {NEAR: 16})
    shelf.close()


def test_a_full_server_still_lets_go(start_redis: StartRedis) -> None:
    connection = connect(start_redis(appendonly="no"))
    shelf = RedisShelf(connection, "shop")
    shelf.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {b"id": ENTRY})
    cast(Any, connection.client).config_set("maxmemory", 1)

    assert load_all(shelf, FIRST) == [b"1"]
    shelf.drop(0, FIRST, [NEAR], [b"id"])

    assert shelf.slices(0) == {}
    shelf.close()


def test_a_replica_is_unavailable_until_it_is_the_primary(start_redis: StartRedis) -> None:
    connection = connect(start_redis())
    client = cast(Any, connection.client)
    shelf = RedisShelf(connection, "shop")
    shelf.put(0, None, CLAIM, [], {})

    client.replicaof("127.0.0.1", "1")
    with pytest.raises(ShelfUnavailable, match="read only replica"):
        shelf.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})

    client.replicaof("NO", "ONE")
    shelf.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})
    assert load_all(shelf, FIRST) == [b"1"]
    shelf.close()


@pytest.mark.parametrize(
    ("setting", "value", "healthy", "text"),
    [
        ("replica-serve-stale-data", "no", "yes", "Link with MASTER is down"),
        ("min-replicas-to-write", "1", "0", "NOREPLICAS"),
    ],
)
def test_a_server_that_may_not_answer_now_is_unavailable(
    start_redis: StartRedis, setting: str, value: str, healthy: str, text: str
) -> None:
    connection = connect(start_redis())
    client = cast(Any, connection.client)
    shelf = RedisShelf(connection, "shop")
    client.config_set(setting, value)
    if setting.startswith("replica"):
        client.replicaof("127.0.0.1", "1")

    with pytest.raises(ShelfUnavailable, match=text):
        shelf.put(0, None, CLAIM, [], {})

    client.config_set(setting, healthy)
    client.replicaof("NO", "ONE")
    shelf.put(0, None, CLAIM, [], {})
    assert shelf.position(0) == CLAIM
    shelf.close()


# --- Redis Cluster


def serves_all_slots(client: Any, nodes: int = 2) -> bool:
    facts = client.execute_command("CLUSTER", "INFO")
    return b"cluster_state:ok" in facts and b"cluster_known_nodes:%d" % nodes in facts


def is_available(shelf: RedisShelf) -> bool:
    try:
        return shelf.position(0) is not None
    except ShelfUnavailable:
        return False


def test_a_cluster_keeps_each_shard_on_one_node(start_redis: StartRedis) -> None:
    # Given a cluster of two nodes that share the slots
    nodes = [start_redis(cluster_enabled="yes") for _ in range(2)]
    clients: list[Any] = [redis.Redis(host="127.0.0.1", port=node.port) for node in nodes]
    for client, (first, last) in zip(clients, [(0, 8191), (8192, 16383)], strict=True):
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
    clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port)
    assert wait_until(lambda: all(map(serves_all_slots, clients)), timeout_seconds=20)

    # When sixteen shards are filled, read and emptied through one of them
    connection = connect(nodes[0])
    shelf = RedisShelf(connection, "shop")
    for shard in range(16):
        shelf.put(shard, None, FIRST, [*MANY[:1500], Segment(FAR, 1, b"%d" % shard)], {b"id": ENTRY})

    # Then both nodes hold some, and all is as on one server
    assert all(client.dbsize() > 0 for client in clients)
    assert [shelf.load(shard, FIRST, FAR, 0, 9) for shard in range(16)] == [[b"%d" % shard] for shard in range(16)]
    assert [shelf.ids(shard, FIRST, [b"id"]) for shard in range(16)] == [[ENTRY]] * 16
    for shard in range(16):
        shelf.drop(shard, FIRST, [NEAR, FAR], [b"id"])
        assert (shelf.position(shard), shelf.slices(shard)) == (FIRST, {})
    with pytest.raises(ShelfMoved):
        shelf.load(0, SECOND, FAR, 0, 9)
    for client in clients:
        client.close()
    shelf.close()


def test_a_cluster_that_went_away_is_unavailable_until_it_is_back(start_redis: StartRedis) -> None:
    node = start_redis(cluster_enabled="yes")
    with redis.Redis(host="127.0.0.1", port=node.port) as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        assert wait_until(lambda: serves_all_slots(client, nodes=1), timeout_seconds=20)
    shelf = RedisShelf(connect(node), "shop")
    shelf.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    node.kill()
    for call in (lambda: shelf.position(0), lambda: load_all(shelf, FIRST)):
        with pytest.raises(ShelfUnavailable, match=f"Redis at 127.0.0.1:{node.port} is not available"):
            call()

    node.start()
    assert wait_until(lambda: is_available(shelf), timeout_seconds=20)
    assert load_all(shelf, FIRST) == [b"1"]
    shelf.close()
