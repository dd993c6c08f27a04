"""Redis is filled by somebody else, or demoted behind its one address, under load: deliveries go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.faults import assert_exact, pass_time
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.route import PARTITIONS, Route, Servers
from tests.support.servers.leading_proxy import LeadingProxy

from delaytopic_local.servers.redis_server import RedisServer

# Each day simulated ones are full and demoted, and writes to a full one are refused.
pytestmark = [pytest.mark.integration, pytest.mark.nightly]

RATE = 100
DELAYS_MS = (0, 6_000)
"""Within the horizon of two seconds, and beyond it."""
FULL_S = 15
LATE_MS = 10_000
"""Less than Redis is full for, or its former primary answers for: if it held deliveries up, some would be later."""
MakeRoute = Callable[..., Route]
Record = Callable[[str, object], None]


@pytest.fixture
def a_route(kafka: KafkaAddress, tmp_path: Path) -> Iterator[MakeRoute]:
    """Makes DelayTopics on a Redis at this address."""
    with ExitStack() as stack:

        def make(redis_url: str, spec: dict[str, Any] | None = None) -> Route:
            route = Route(Servers(kafka.bootstrap_servers, redis_url), tmp_path, unique("trouble"), spec or {})
            stack.callback(route.create_topics().stop_relays)
            return route

        yield make


def started(route: Route) -> RelayProcess:
    return route.start_relay().wait_until_delivering(PARTITIONS)


def lists_of(client: Any, route: Route) -> list[bytes]:
    """The lists of segments."""
    return [*client.scan_iter(match=f"{{delaytopic.tests.{route.name}:*}}:s:*", count=10_000)]


def test_p1_p2_p3_while_redis_is_full_what_waits_leaves_in_time_and_nothing_is_lost(
    a_route: MakeRoute, own_redis: RedisServer, record_property: Record
) -> None:
    # Given a DelayTopic that uses Redis, another one on it that needs none of it, and what somebody else puts there
    route, neighbour = a_route(own_redis.url), a_route(own_redis.url, {"limits": {"horizon": "60s"}})
    relay = started(route)
    started(neighbour)
    with Redis.from_url(own_redis.url) as connection:
        client = cast(Any, connection)
        with route.traffic(RATE, DELAYS_MS), neighbour.traffic(RATE, (0, 6_000)):
            wait_for(lambda: relay.status()["pending"] > 2 * RATE, relay.why)
            waiting = {*lists_of(client, route)}
            client.config_set("maxmemory", 1)

            # Then slices leave Redis, whoever has filled it, and the page says what is the matter
            wait_for(lambda: not waiting & {*lists_of(client, route)}, relay.why)
            wait_for(lambda: any(shard["redisFull"] for shard in relay.status()["shards"]), relay.why)
            pass_time(FULL_S)
            client.config_set("maxmemory", 0)
            wait_for(lambda: not any(shard["redisFull"] for shard in relay.status()["shards"]), relay.why)
        said = [line["reason"] for line in relay.log_lines() if line.get("event") == "not available"]
        verdicts = route.settled_verdict(), neighbour.settled_verdict()

    assert waiting
    assert any("is full: maxmemory is reached" in reason for reason in said)
    assert [line for line in relay.log_lines() if line.get("event") == "starting over"] == []
    for verdict, name in zip(verdicts, ("full", "neighbour"), strict=True):
        assert_exact(verdict)
        late_ms = sorted(late.late_ms for late in verdict.lateness)
        record_property(name, {"records": len(late_ms), "latest_ms": late_ms[-1]})
        assert late_ms[-1] < LATE_MS


def test_p1_p2_p3_a_primary_that_is_demoted_behind_its_address_is_left_within_seconds(
    a_route: MakeRoute, tmp_path: Path, record_property: Record
) -> None:
    # Given a primary with a replica, behind an address that keeps open connections where they are
    with (
        RedisServer(tmp_path / "former") as former,
        RedisServer(tmp_path / "promoted") as promoted,
        LeadingProxy(former.port) as proxy,
        Redis.from_url(former.url) as old,
        Redis.from_url(promoted.url) as new,
    ):
        cast(Any, new).replicaof("127.0.0.1", str(former.port))
        wait_for(lambda: cast(Any, new).info("replication").get("master_link_status") == "up", lambda: "no replica")
        route = a_route(f"redis://127.0.0.1:{proxy.port}/0")
        relay = started(route)

        # When they change places under load
        with route.traffic(RATE, DELAYS_MS):
            wait_for(lambda: relay.status()["pending"] > 2 * RATE, relay.why)
            cast(Any, new).replicaof("NO", "ONE")
            cast(Any, old).replicaof("127.0.0.1", str(promoted.port))
            proxy.lead_to(promoted.port)
            pass_time(8)
        verdict = route.settled_verdict()

    assert_exact(verdict)
    late_ms = max(late.late_ms for late in verdict.lateness)
    record_property("demoted", {"records": len(verdict.lateness), "latest_ms": late_ms})
    assert late_ms < LATE_MS
