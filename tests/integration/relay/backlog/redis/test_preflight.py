from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.support.servers.redis_server import RedisFields

from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.preflight import RedisFacts, check_redis, read_facts
from delaytopic_relay.errors import ConfigurationError


@pytest.mark.integration
def test_a_real_server_is_read(start_redis: Callable[..., RedisServer]) -> None:
    connection = connect_redis(RedisFields(url=start_redis().url))
    client = cast(Any, connection.client)

    facts = read_facts(client, connection.where)

    assert facts == RedisFacts(
        connection.where,
        version=client.info()["redis_version"],
        maxmemory_policy="noeviction",
        append_only=True,
        snapshots="",
        rewrite_min_bytes=1 << 30,
    )
    connection.client.close()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("settings", "warnings"),
    [
        ({}, []),
        ({"appendonly": "no"}, ["has no persistence"]),
        ({"appendonly": "no", "save": "3600 1"}, []),
        ({"auto-aof-rewrite-min-size": "64mb"}, ["rewrites its AOF"]),
    ],
)
def test_a_real_server_gives_the_warnings_it_deserves(
    start_redis: Callable[..., RedisServer], settings: dict[str, str], warnings: list[str]
) -> None:
    connection = connect_redis(RedisFields(url=start_redis().url))
    for name, value in settings.items():
        cast(Any, connection.client).config_set(name, value)

    given = check_redis(connection)

    assert len(given) == len(warnings)
    assert all(text.startswith(f"{connection.where} {words}") for text, words in zip(given, warnings, strict=True))
    connection.client.close()


@pytest.mark.integration
def test_a_real_evicting_server_is_refused(start_redis: Callable[..., RedisServer]) -> None:
    connection = connect_redis(RedisFields(url=start_redis(maxmemory_policy="allkeys-lru").url))

    with pytest.raises(ConfigurationError, match="set maxmemory-policy noeviction"):
        check_redis(connection)
    connection.client.close()


@pytest.mark.integration
def test_an_evicting_server_that_forbids_config_is_refused_all_the_same(
    start_redis: Callable[..., RedisServer],
) -> None:
    connection = connect_redis(RedisFields(url=start_redis(maxmemory_policy="allkeys-lru").url))
    cast(Any, connection.client).execute_command("ACL", "SETUSER", "default", "-config")

    with pytest.raises(ConfigurationError, match="set maxmemory-policy noeviction"):
        check_redis(connection)
    connection.client.close()
