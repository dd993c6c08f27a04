"""Whatever a relay writes in Redis, it reads: observed by MONITOR on a real server."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import redis
from tests.support.relay.in_world import delivered_offsets, produce, start
from tests.support.relay.world import World
from tests.support.servers.redis_server import RedisFields

from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.store import RedisBacklogStore

pytestmark = pytest.mark.integration

READS = {"GET", "LRANGE", "ZRANGE", "ZCARD", "HGET", "HMGET", "HLEN", "HSTRLEN"}
WRITES = {"SET", "RPUSH", "ZADD", "ZREM", "HSET", "HINCRBY", "HDEL", "DEL", "UNLINK"}
OTHER = {"EVAL", "EVALSHA", "PING", "HELLO", "CLIENT", "ECHO"}


def observed(server: RedisServer, work: Callable[[], object]) -> list[list[str]]:
    """Return the commands that the server carries out meanwhile, those of scripts among them."""
    commands: list[list[str]] = []
    with redis.Redis(host="127.0.0.1", port=server.port) as client, client.monitor() as monitor:
        work()
        last = str(uuid.uuid4())
        with redis.Redis(host="127.0.0.1", port=server.port) as other:
            other.echo(last)
        while not commands or commands[-1][-1] != last:
            commands.append(monitor.next_command()["command"].split())
    return commands


def kind(key: str) -> str:
    """Return the key without backend id, shard, and the slice of a list."""
    return re.sub(r"^\{.*\}:|:\d+:\d+$", "", key)


def test_every_key_that_a_relay_writes_is_read_and_the_schedule_by_range(start_redis: Callable[..., Any]) -> None:
    # Given a relay that takes records over from another one, with and without ids, near and far
    server, world = start_redis(), World()
    connection = connect_redis(RedisFields(url=server.url))

    def work() -> None:
        relay = start(world, RedisBacklogStore(connection, "shop"), "first")
        for after_ms in (30_000, 31_000, 1_900_000, 90_000_000):
            produce(world, after_ms)
            produce(world, after_ms, name=b"a%d" % after_ms)
        relay.run(5_000, step_ms=500)
        relay = start(world, RedisBacklogStore(connection, "shop"), "second")
        relay.run(40_000, step_ms=500)

    commands = observed(server, work)

    assert len(delivered_offsets(world)) == 4
    assert {command[0] for command in commands} <= READS | WRITES | OTHER
    read, written = ({kind(command[1]) for command in commands if command[0] in names} for names in (READS, WRITES))
    assert written == {"position", "slices", "counts", "ids", "sizes", "s", "topic"}
    assert written - read == set()
    ranges = [command for command in commands if command[0] == "ZRANGE"]
    assert {(kind(command[1]), command[3], command[4]) for command in ranges} == {("slices", "+inf", "BYSCORE")}
