"""Relays, broker and Redis are killed, frozen, wiped and set back under load; an outside reader judges."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
import redis as redis_client
from tests.support.faults import assert_exact, pass_time
from tests.support.records import ONLY_REDIS, MakeRoute
from tests.support.relay_process import RelayProcess, wait_for
from tests.support.route import PARTITIONS, Route

from delaytopic_cli.audit import Outage
from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer

pytestmark = pytest.mark.integration

RATE = 1_000
DELAYS_MS = (0, 8_000)
FAILOVER_MS = 8_000


def replace(route: Route, relay: RelayProcess) -> RelayProcess:
    """Kill a relay, start another, and wait until that has taken over."""
    relay.kill()
    return route.start_relay().wait_until_delivering(PARTITIONS)


def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_the_relay_is_killed_ten_times_under_load(route: Route) -> None:
    rng = random.Random(7)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        for _ in range(10):
            pass_time(rng.uniform(0.2, 2.5))
            relay = replace(route, relay)

    assert_exact(route.settled_verdict())


def test_p1_p3_nothing_is_lost_or_early_with_at_least_once_and_duplicates_come_from_the_crash_alone(
    make_route: MakeRoute,
) -> None:
    route = make_route(guarantee="AtLeastOnce")
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        for _ in range(3):
            pass_time(2)
            relay = replace(route, relay)

    verdict = route.settled_verdict()
    assert {name: found for name, found in verdict.faults.items() if name != "twice"} == {}
    assert verdict.delivered == verdict.schedules > 0
    assert len(verdict.twice) < 3 * RATE


def test_p2_a_frozen_relay_that_wakes_up_after_its_session_does_no_harm(route: Route) -> None:
    frozen = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        pass_time(2)
        frozen.freeze()
        route.start_relay().wait_until_delivering(PARTITIONS)
        frozen.thaw()
        pass_time(5)

    assert_exact(route.settled_verdict())
    assert frozen.exit_code() is None, frozen.why()


def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_the_broker_restarts(route: Route, kafka: KafkaServer) -> None:
    route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        pass_time(3)
        kafka.restart()
        pass_time(3)
        kafka.kill()
        kafka.start()
        pass_time(3)

    assert_exact(route.settled_verdict(timeout_s=90))


@ONLY_REDIS
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_redis_restarts_and_when_it_crashes(
    route: Route, redis: RedisServer
) -> None:
    route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        pass_time(3)
        redis.restart()
        pass_time(3)
        redis.kill()
        redis.start()
        pass_time(3)

    assert_exact(route.settled_verdict())


@ONLY_REDIS
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_redis_is_wiped(route: Route, redis: RedisServer) -> None:
    route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS), redis_client.Redis.from_url(redis.url) as client:
        pass_time(4)
        client.flushall()
        pass_time(4)

    assert_exact(route.settled_verdict())


@ONLY_REDIS
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_redis_is_set_back_to_an_older_snapshot(
    route: Route, redis: RedisServer, tmp_path: Path
) -> None:
    route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        pass_time(3)
        redis.stop()
        shutil.copytree(redis.directory / "data", tmp_path / "snapshot")
        redis.start()
        pass_time(4)
        redis.kill()
        redis.delete_data()
        shutil.copytree(tmp_path / "snapshot", redis.directory / "data")
        redis.start()
        pass_time(3)

    assert_exact(route.settled_verdict())


def test_p1_p2_p3_nothing_is_lost_twice_or_early_while_three_relays_join_and_leave(route: Route) -> None:
    first = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        second, third = route.start_relay(), route.start_relay()
        wait_for(
            lambda: sum(len(relay.shards()) for relay in (first, second, third) if relay.log_lines()) == PARTITIONS
        )
        pass_time(2)
        assert first.terminate() == 0
        pass_time(3)
        fourth = route.start_relay()
        pass_time(3)
        assert second.terminate() == 0
        assert third.terminate() == 0
        fourth.wait_until_delivering(PARTITIONS)

    assert_exact(route.settled_verdict())


def test_the_orphaned_shards_of_a_killed_relay_are_delivered_again_within_eight_seconds(
    route: Route, capsys: pytest.CaptureFixture[str]
) -> None:
    doomed = route.start_relay().wait_until_delivering(PARTITIONS)
    survivor = route.start_relay()
    wait_for(lambda: doomed.shards() and survivor.shards() and len(doomed.shards() | survivor.shards()) == PARTITIONS)
    orphans = doomed.shards()

    with route.traffic(RATE, (0, 500)):
        pass_time(2)
        killed_ms = time.time_ns() // 1_000_000
        doomed.kill()
        survivor.wait_until_delivering(PARTITIONS)
        pass_time(1)

    outage = Outage(killed_ms, killed_ms + FAILOVER_MS)
    assert_exact(route.settled_verdict(outages=[outage]))
    sent_ms = [record.sent_ms for record in route.delivered() if record.source.partition in orphans]
    failover_ms = min(moment for moment in sent_ms if moment > killed_ms + 1_000) - killed_ms
    with capsys.disabled():
        print(f"\nfailover after SIGKILL: shards {sorted(orphans)} delivered again after {failover_ms} ms")
    assert failover_ms <= FAILOVER_MS
