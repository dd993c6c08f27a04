"""Redis is wiped, set back, restarted and killed under load; an outside reader judges."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis as redis_client
from tests.support.relay.faults import DELAYS_MS, RATE, assert_exact, pass_time
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_local.servers.redis_server import RedisServer

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis of this file: its tests break it, one after the other."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def relay(route: Route) -> RelayProcess:
    return route.start_relay().wait_until_delivering(PARTITIONS)


def wait_until_the_backlog_is_used(relay: RelayProcess) -> None:
    """Until more waits than fits into the horizon of two of five seconds."""
    wait_for(lambda: relay.status()["pending"] > 2 * RATE, relay.why)


def wait_until_it_was_rebuilt(relay: RelayProcess) -> None:
    """Until the relay has noticed that Redis is not what it was, and delivers again."""
    wait_for(lambda: "backlog-moved" in [line.get("cause") for line in relay.log_lines()], relay.why)
    relay.wait_until_delivering(PARTITIONS)


@pytest.mark.takes_long("what waits has to build up before it is wiped, and to be delivered afterwards")
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_redis_is_wiped(
    route: Route, relay: RelayProcess, redis: RedisServer
) -> None:
    with route.traffic(RATE, DELAYS_MS), redis_client.Redis.from_url(redis.url) as client:
        wait_until_the_backlog_is_used(relay)
        client.flushall()
        wait_until_it_was_rebuilt(relay)

    assert_exact(route.settled_verdict())


@pytest.mark.nightly  # each day simulated ones are set back
@pytest.mark.takes_long("what waits has to build up twice, and to be delivered afterwards")
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_redis_is_set_back_to_an_older_snapshot(
    route: Route, relay: RelayProcess, redis: RedisServer, tmp_path: Path
) -> None:
    with route.traffic(RATE, DELAYS_MS):
        wait_until_the_backlog_is_used(relay)
        redis.stop()
        shutil.copytree(redis.directory / "data", tmp_path / "snapshot")
        redis.start()
        pass_time(3)
        redis.kill()
        redis.delete_data()
        shutil.copytree(tmp_path / "snapshot", redis.directory / "data")
        redis.start()
        wait_until_it_was_rebuilt(relay)

    assert_exact(route.settled_verdict())


@pytest.mark.nightly
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_redis_restarts_and_when_it_crashes(
    route: Route, relay: RelayProcess, redis: RedisServer
) -> None:
    with route.traffic(RATE, DELAYS_MS):
        wait_until_the_backlog_is_used(relay)
        redis.restart()
        pass_time(3)
        redis.kill()
        redis.start()
        pass_time(3)

    assert_exact(route.settled_verdict())
