from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from delaytopic_local.errors import EmbeddedServerError, ServerStartError
from delaytopic_local.servers.redis_server import RedisServer


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server that the tests here kill, restart and wipe."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    if not redis_server.is_running():
        redis_server.start()
    with redis.Redis.from_url(redis_server.url) as connection:
        connection.flushall()
        yield connection


def test_it_never_evicts_and_persists_what_it_acknowledged(client: redis.Redis) -> None:
    settings = client.config_get("appendonly", "appendfsync", "auto-aof-rewrite-min-size", "maxmemory-policy", "save")

    assert settings == {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "auto-aof-rewrite-min-size": str(1024**3),
        "maxmemory-policy": "noeviction",
        "save": "",
    }


def test_data_and_port_survive_a_crash(redis_server: RedisServer, client: redis.Redis) -> None:
    # By itself it may write a second or two after its answer, when the disk is slow.
    client.config_set("appendfsync", "always")
    client.set("name", "value")
    url = redis_server.url

    redis_server.kill()
    redis_server.start()

    assert (redis_server.url, client.get("name")) == (url, b"value")


def test_data_survive_a_graceful_restart(redis_server: RedisServer, client: redis.Redis) -> None:
    client.set("name", "value")

    redis_server.restart()

    assert client.get("name") == b"value"


def test_a_lost_disk_leaves_an_empty_server(redis_server: RedisServer, client: redis.Redis) -> None:
    client.set("name", "value")

    redis_server.kill()
    redis_server.delete_data()
    redis_server.start()

    assert client.dbsize() == 0


def test_data_are_not_deleted_under_a_running_server(redis_server: RedisServer, client: redis.Redis) -> None:
    with pytest.raises(EmbeddedServerError, match="stop or kill Redis before"):
        redis_server.delete_data()


def test_a_server_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, settings={"maxmemory-policy": "keep-the-nice-ones"})

    with pytest.raises(ServerStartError, match="keep-the-nice-ones"):
        server.start()


def test_settings_of_the_caller_win(tmp_path: Path) -> None:
    with (
        RedisServer(tmp_path, settings={"maxmemory": "64mb"}) as server,
        redis.Redis.from_url(server.url) as connection,
    ):
        assert connection.config_get("maxmemory") == {"maxmemory": str(64 * 1024**2)}
