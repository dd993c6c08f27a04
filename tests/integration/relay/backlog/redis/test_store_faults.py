"""A backlog in a Redis that is wiped, killed, frozen, full or failing over, and one in a Redis Cluster."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, cast

import pytest
import redis
from tests.support.relay.backlog.stores import slices_of
from tests.support.servers.leading_proxy import LeadingProxy
from tests.support.servers.redis_server import RedisFields

from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_process.waiting import wait_until
from delaytopic_relay.backlog.redis import connection as connection_module
from delaytopic_relay.backlog.redis.connection import RedisConnection, connect_redis
from delaytopic_relay.backlog.redis.layout import ShardKeys
from delaytopic_relay.backlog.redis.parts import MAX_BYTES, MAX_ITEMS
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.store import BacklogStore, PutRefused, Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogMoved, BacklogUnavailable, OversizedAnswer

pytestmark = pytest.mark.integration

StartRedis = Callable[..., RedisServer]
CLAIM, FIRST, SECOND = StoreVersion("relay-a", 1, 0), StoreVersion("relay-a", 2, 100), StoreVersion("relay-a", 3, 250)
NEAR, FAR = Slice(1000, 1000), Slice(60_000, 60_000)
ENTRY = IdEntry(7, 1500, 5)
MANY = [Segment(NEAR, 1, b"%d" % number) for number in range(3 * MAX_ITEMS)]


def connect(server: RedisServer) -> RedisConnection:
    return connect_redis(RedisFields(url=server.url))


def load_all(store: BacklogStore, version: StoreVersion, slice_: Slice = NEAR) -> list[bytes]:
    return store.load(0, version, slice_, 0, 1_000_000)


def test_a_flushed_server_is_noticed_by_every_call(start_redis: StartRedis) -> None:
    connection = connect(start_redis())
    store = RedisBacklogStore(connection, "shop")
    store.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    connection.client.flushall()

    for call in (
        lambda: load_all(store, FIRST),
        lambda: store.ids(0, FIRST, [b"id"]),
        lambda: store.put(0, FIRST, SECOND, [], {}),
        lambda: store.drop(0, FIRST, [NEAR], []),
    ):
        with pytest.raises(BacklogMoved, match="it was wiped, or it is another server's"):
            call()
    store.close()


def test_what_was_put_outlives_a_killed_server_and_the_backlog_goes_on(start_redis: StartRedis) -> None:
    # Given an append-only file, a backlog, and a server that dies
    server = start_redis()
    store = RedisBacklogStore(connect(server), "shop")
    store.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {b"id": ENTRY})
    server.kill()

    # When it is asked meanwhile
    with pytest.raises(BacklogUnavailable, match=f"Redis at 127.0.0.1:{server.port} is not available"):
        store.version(0)

    # Then it is unavailable, and afterwards as it was
    server.start()
    assert (store.version(0), load_all(store, FIRST)) == (FIRST, [b"1"])
    store.put(0, FIRST, SECOND, [Segment(NEAR, 1, b"2")], {})
    assert load_all(store, SECOND) == [b"1", b"2"]
    store.close()


def test_a_server_that_comes_back_without_its_data_is_noticed(start_redis: StartRedis) -> None:
    server = start_redis()
    store = RedisBacklogStore(connect(server), "shop")
    store.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    server.kill()
    server.delete_data()
    server.start()

    with pytest.raises(BacklogMoved):
        load_all(store, FIRST)
    assert (store.version(0), slices_of(store, 0)) == (None, {})
    store.close()


def test_a_put_whose_answer_never_came_may_be_repeated(
    start_redis: StartRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a frozen server, and a put that waited for it in vain
    monkeypatch.setattr(connection_module, "READ_TIMEOUT_S", 0.3)
    server = start_redis()
    store = RedisBacklogStore(connect(server), "shop")
    store.put(0, None, CLAIM, [], {})
    server.send_signal(signal.SIGSTOP)
    with pytest.raises(BacklogUnavailable, match="Timeout reading from socket"):
        store.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})

    # When the server goes on, and carries out both the first attempt and its repeat
    server.send_signal(signal.SIGCONT)
    store.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})

    assert (store.version(0), load_all(store, FIRST)) == (FIRST, [b"1"])
    store.close()


def test_a_full_server_says_what_to_do_and_the_put_is_completed_when_there_is_room(start_redis: StartRedis) -> None:
    # Given room for some parts of a put, and not for all
    connection = connect(start_redis(appendonly="no"))
    client = cast(Any, connection.client)
    store = RedisBacklogStore(connection, "shop")
    store.put(0, None, CLAIM, [], {})
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 3 * MAX_BYTES)
    segments = [Segment(NEAR, 1, bytes(MAX_BYTES // 2 - 100)) for _ in range(16)]

    with pytest.raises(PutRefused) as caught:
        store.put(0, CLAIM, FIRST, segments, {})

    assert str(caught.value) == (
        f"{connection.where} is full: maxmemory is reached and nothing may be evicted. What waits there is delivered "
        "in time, and further records wait in the source topic meanwhile; raise maxmemory, or move other data elsewhere"
    )
    assert 0 < slices_of(store, 0)[NEAR] == len(caught.value.stored) < 16
    assert caught.value.reached == store.version(0)
    client.config_set("maxmemory", 0)
    store.put(0, CLAIM, FIRST, segments, {})
    assert (store.version(0), slices_of(store, 0)) == (FIRST, {NEAR: 16})
    store.close()


def test_a_full_server_still_lets_go(start_redis: StartRedis) -> None:
    connection = connect(start_redis(appendonly="no"))
    store = RedisBacklogStore(connection, "shop")
    store.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {b"id": ENTRY})
    cast(Any, connection.client).config_set("maxmemory", 1)

    assert load_all(store, FIRST) == [b"1"]
    store.drop(0, FIRST, [NEAR], [b"id"])

    assert slices_of(store, 0) == {}
    store.close()


def test_a_full_server_is_claimed_and_moved_on_and_told_of_ids_and_takes_no_segments(start_redis: StartRedis) -> None:
    # Given a shard with a slice, another without anything, and a server that is full from now on
    connection = connect(start_redis(appendonly="no"))
    store = RedisBacklogStore(connection, "shop")
    store.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})
    cast(Any, connection.client).config_set("maxmemory", 1)
    claim = StoreVersion("relay-b", 3, 100)

    # When a successor claims both, and states ids
    store.put(0, FIRST, claim, [], {})
    store.put(1, None, CLAIM, [], {})
    store.put(0, claim, claim._replace(counter=4), [], {b"id": ENTRY})

    # Then each is the successor's, the former owner is refused, and segments have to wait
    assert (store.version(0), store.version(1)) == (claim._replace(counter=4), CLAIM)
    assert store.ids(0, claim._replace(counter=4), [b"id"]) == [ENTRY]
    with pytest.raises(BacklogMoved):
        store.put(0, FIRST, SECOND, [], {})
    with pytest.raises(PutRefused) as caught:
        store.put(1, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})
    assert (caught.value.reached, caught.value.stored) == (CLAIM, [])
    assert (store.version(1), slices_of(store, 1)) == (CLAIM, {})
    store.close()


def test_what_is_left_of_maxmemory_is_told_where_there_is_one(start_redis: StartRedis) -> None:
    connection = connect(start_redis(appendonly="no"))
    client = cast(Any, connection.client)
    store = RedisBacklogStore(connection, "shop")

    unbounded = store.free_bytes()
    client.config_set("maxmemory", client.info("memory")["used_memory"] + (8 << 20))
    some = store.free_bytes()
    client.config_set("maxmemory", 1)

    assert (unbounded, store.free_bytes()) == (None, 0)
    assert some is not None
    assert 7 << 20 < some <= 8 << 20
    store.close()


def test_an_element_of_absurd_size_is_not_read_and_the_connection_goes_on(
    start_redis: StartRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "MOST_BYTES", 4 << 20)
    connection = connect(start_redis(appendonly="no"))
    client = cast(Any, connection.client)
    store = RedisBacklogStore(connection, "shop")
    store.put(0, None, FIRST, [Segment(NEAR, 1, b"1"), Segment(FAR, 1, b"2")], {})
    keys = ShardKeys.of("shop", 0)
    client.lset(keys.list(NEAR), 0, bytes(32 << 20))
    client.hset(keys.ids, b"id", bytes(32 << 20))

    for call in (lambda: load_all(store, FIRST), lambda: store.ids(0, FIRST, [b"id"])):
        with pytest.raises(OversizedAnswer, match="answers with more than 4 MiB, which no relay has put there"):
            call()
    assert load_all(store, FIRST, FAR) == [b"2"]
    client.set(keys.version, bytes(32 << 20))
    with pytest.raises(OversizedAnswer):
        store.version(0)
    store.close()


def test_a_demoted_server_is_left_for_the_one_that_its_address_leads_to_by_then(start_redis: StartRedis) -> None:
    # Given a server and its replica, and an address that keeps old connections open
    former, promoted = start_redis(appendonly="no"), start_redis(appendonly="no")
    replica = redis.Redis(host="127.0.0.1", port=promoted.port)
    replica.replicaof("127.0.0.1", str(former.port))
    with LeadingProxy(former.port) as proxy:
        store = RedisBacklogStore(connect_redis(RedisFields(url=f"redis://127.0.0.1:{proxy.port}/0")), "shop")
        store.put(0, None, CLAIM, [], {})
        assert wait_until(lambda: replica.exists(ShardKeys.of("shop", 0).version) == 1, timeout_seconds=20)

        # When the replica is promoted, and the former primary follows it
        replica.replicaof("NO", "ONE")
        with redis.Redis(host="127.0.0.1", port=former.port) as client:
            client.replicaof("127.0.0.1", str(promoted.port))
        proxy.lead_to(promoted.port)

        # Then one question is refused, and the next one reaches the new primary
        with pytest.raises(BacklogUnavailable, match="read only replica"):
            store.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})
        store.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})
        assert load_all(store, FIRST) == [b"1"]
        store.close()
    replica.close()


def test_a_replica_is_unavailable_until_it_is_the_primary(start_redis: StartRedis) -> None:
    connection = connect(start_redis())
    client = cast(Any, connection.client)
    store = RedisBacklogStore(connection, "shop")
    store.put(0, None, CLAIM, [], {})

    client.replicaof("127.0.0.1", "1")
    with pytest.raises(BacklogUnavailable, match="read only replica"):
        store.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})

    client.replicaof("NO", "ONE")
    store.put(0, CLAIM, FIRST, [Segment(NEAR, 1, b"1")], {})
    assert load_all(store, FIRST) == [b"1"]
    store.close()


def test_a_replica_that_lost_its_primary_is_unavailable(start_redis: StartRedis) -> None:
    connection = connect(start_redis(replica_serve_stale_data="no"))
    store = RedisBacklogStore(connection, "shop")
    store.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    cast(Any, connection.client).replicaof("127.0.0.1", "1")

    for call in (
        lambda: store.version(0),
        lambda: load_all(store, FIRST),
        lambda: store.put(0, FIRST, SECOND, [], {}),
        lambda: store.drop(0, FIRST, [NEAR], []),
    ):
        with pytest.raises(BacklogUnavailable, match="Link with MASTER is down"):
            call()
    store.close()


# --- Redis Cluster


def serves_all_slots(client: Any, nodes: int = 2) -> bool:
    facts = client.execute_command("CLUSTER", "INFO")
    return b"cluster_state:ok" in facts and b"cluster_known_nodes:%d" % nodes in facts


def is_available(store: RedisBacklogStore) -> bool:
    try:
        return store.version(0) is not None
    except BacklogUnavailable:
        return False


def test_a_cluster_keeps_each_shard_on_one_node(start_redis: StartRedis) -> None:
    # Given a cluster of two nodes that share the slots
    nodes = [start_redis(cluster_enabled="yes") for _ in range(2)]
    clients: list[Any] = [redis.Redis(host="127.0.0.1", port=node.port) for node in nodes]
    for client, slots in zip(clients, [range(8192), range(8192, 16384)], strict=True):
        client.execute_command("CLUSTER", "ADDSLOTS", *slots)
    clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, nodes[1].bus_port)
    assert wait_until(lambda: all(map(serves_all_slots, clients)), timeout_seconds=20)

    # When sixteen shards are filled, read and emptied through one of them
    connection = connect(nodes[0])
    store = RedisBacklogStore(connection, "shop")
    for partition in range(16):
        store.put(partition, None, FIRST, [*MANY[:1500], Segment(FAR, 1, b"%d" % partition)], {b"id": ENTRY})

    # Then both nodes hold some, and all is as on one server
    assert all(client.dbsize() > 0 for client in clients)
    assert [store.load(partition, FIRST, FAR, 0, 9) for partition in range(16)] == [
        [b"%d" % partition] for partition in range(16)
    ]
    assert [store.ids(partition, FIRST, [b"id"]) for partition in range(16)] == [[ENTRY]] * 16
    for partition in range(16):
        store.drop(partition, FIRST, [NEAR, FAR], [b"id"])
        assert (store.version(partition), slices_of(store, partition)) == (FIRST, {})
    with pytest.raises(BacklogMoved):
        store.load(0, SECOND, FAR, 0, 9)
    for client in clients:
        client.close()
    store.close()


def test_a_cluster_that_went_away_is_unavailable_until_it_is_back(start_redis: StartRedis) -> None:
    node = start_redis(cluster_enabled="yes")
    with redis.Redis(host="127.0.0.1", port=node.port) as client:
        client.execute_command("CLUSTER", "ADDSLOTS", *range(16384))
        assert wait_until(lambda: serves_all_slots(client, nodes=1), timeout_seconds=20)
    store = RedisBacklogStore(connect(node), "shop")
    store.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    node.kill()
    for call in (lambda: store.version(0), lambda: load_all(store, FIRST)):
        with pytest.raises(BacklogUnavailable, match=f"Redis at 127.0.0.1:{node.port} is not available"):
            call()

    node.start()
    assert wait_until(lambda: is_available(store), timeout_seconds=20)
    assert load_all(store, FIRST) == [b"1"]
    store.close()
