"""A DelayTopic that fills the Redis of a class is stopped at its bound; the others on that Redis notice nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.faults import assert_exact, pass_time
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route, Servers

from delaytopic_local.servers.redis_server import RedisServer

pytestmark = pytest.mark.integration

BOUND = 8 << 20
DAY_MS = 86_400_000
RATE = 100
DELAYS_MS = (3_000, 6_000)
"""Beyond the horizon: every record of the neighbour goes through Redis."""
LATE_MS = 2_000


@pytest.fixture
def a_route(kafka: KafkaAddress, own_redis: RedisServer, tmp_path: Path) -> Iterator[Callable[[str], Route]]:
    """Makes DelayTopics on a Redis that has room for three times the bound."""
    with Redis.from_url(own_redis.url) as client, ExitStack() as stack:
        client.config_set("maxmemory", "32mb")
        servers = Servers(kafka.bootstrap_servers, own_redis.url)

        def make(name: str) -> Route:
            spec = {"backend": {"maxRedisMemory": str(BOUND)}}
            route = Route(servers, tmp_path, unique(name), spec).create_topics()
            stack.callback(route.stop_relays)
            return route

        yield make


@pytest.mark.takes_long("relays start, one fills its share, and records of the other wait for seconds")
def test_a_delay_topic_that_fills_redis_is_stopped_at_its_bound_and_its_neighbour_is_in_time(
    a_route: Callable[[str], Route], own_redis: RedisServer
) -> None:
    # Given two DelayTopics on one Redis, and an attacker with five times its bound, due in a day
    greedy, neighbour = a_route("greedy"), a_route("neighbour")
    relay, other = greedy.start_relay(), neighbour.start_relay()
    relay.wait_until_delivering(PARTITIONS)
    other.wait_until_delivering(PARTITIONS)
    flood = [Sent(b"%d" % number, b"x" * 1_000, [at(now_ms() + DAY_MS)]) for number in range(40_000)]

    with neighbour.traffic(RATE, DELAYS_MS):
        produce(greedy.servers.bootstrap_servers, greedy.source, flood)
        wait_for(lambda: relay.shards("Paused") == set(range(PARTITIONS)), relay.why)
        pass_time(8)
        # The lag counts what arrives while nothing is fetched, too
        wait_for(lambda: _end_of_source(relay.status()) == len(flood), relay.why)
        shards = relay.status()["shards"]
        metrics = relay.get("/metrics")
        with Redis.from_url(own_redis.url) as client:
            used = client.info("memory")["used_memory"]
    verdict = neighbour.settled_verdict()

    assert_exact(verdict)
    assert max(late.late_ms for late in verdict.lateness) < LATE_MS
    assert [shard["redisFull"] for shard in shards] == [True] * PARTITIONS
    assert BOUND <= sum(shard["redisBytes"] for shard in shards) < 2 * BOUND
    assert used < 3 * BOUND
    assert "maxRedisMemory" in shards[0]["message"]
    assert sum(shard["position"] for shard in shards) < len(flood) / 2
    assert (
        f'delaytopic_redis_full_shards{{delaytopic_name="{greedy.name}",delaytopic_namespace="tests"}} 4.0' in metrics
    )
    assert (greedy.dead_letters(), greedy.delivered()) == ([], [])


def _end_of_source(status: Any) -> int:
    return sum(shard["position"] + shard["ingestLag"] for shard in status["shards"])
