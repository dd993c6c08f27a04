from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.harness.shared_servers import SharedRedis
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.backlog.stores import MemoryStore, RedisStore, Store
from tests.support.servers.redis_server import RedisFields

from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_relay.backlog.redis.connection import RedisConnection, connect_redis
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.store import BacklogStore


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.integration)])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Return what backlogs share, empty: every test of the conformance suite runs once for each kind."""
    if request.param == "memory":
        yield MemoryStore(MemoryBacklogStore())
        return
    connection: RedisConnection = request.getfixturevalue("redis_connection")
    yield RedisStore(connection, f"test.{uuid.uuid4()}")


@pytest.fixture
def backlog(store: Store) -> BacklogStore:
    return store.open()


@pytest.fixture(scope="session")
def redis_connection(redis: SharedRedis) -> Iterator[RedisConnection]:
    connection = connect_redis(RedisFields(url=redis.url))
    yield connection
    connection.client.close()


@pytest.fixture
def redis_store(redis_connection: RedisConnection) -> RedisBacklogStore:
    return RedisBacklogStore(redis_connection, f"test.{uuid.uuid4()}")


@pytest.fixture
def start_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RedisServer]]:
    """Start a server of the test's own, with these settings; the test may stop, kill and spoil it."""
    servers: list[RedisServer] = []

    def start(**settings: str) -> RedisServer:
        named = {name.replace("_", "-"): value for name, value in settings.items()}
        servers.append(RedisServer(tmp_path_factory.mktemp("redis"), settings=named))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.kill()
