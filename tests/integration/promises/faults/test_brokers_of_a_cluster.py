"""One broker of three is killed, frozen or restarted under load, and others take over what it led."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.shared_servers import RedisAddress
from tests.support.relay.faults import assert_exact, assert_exact_but_for_repeats, pass_time
from tests.support.relay.records import BOTH_BACKENDS, MakeRoute
from tests.support.relay.route import PARTITIONS, SESSION_TIMEOUT_S, Route, Servers
from tests.support.relay.routes import making_routes
from tests.support.servers.kafka_cluster import SESSION_MS, KafkaCluster, kafka_cluster

pytestmark = [pytest.mark.integration, pytest.mark.nightly, BOTH_BACKENDS]

RATE = 500
DELAYS_MS = (0, 8_000)
FAILOVER_S = SESSION_MS / 1_000 + 3


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path_factory.mktemp("brokers")) as cluster:
        yield cluster


@pytest.fixture
def make_route(brokers: KafkaCluster, redis: RedisAddress, backend: str, tmp_path: Path) -> Iterator[MakeRoute]:
    """Makes a DelayTopic whose topics have a copy on each broker."""
    servers = Servers(brokers.bootstrap_servers, redis.url, copies=len(brokers.brokers))
    # Whoever leads the group changes, too: a session has to outlive that.
    with making_routes(servers, tmp_path, backend, f"{SESSION_TIMEOUT_S}s") as make:
        yield make


@pytest.fixture
def route(make_route: MakeRoute) -> Route:
    return make_route()


def kill_leader(brokers: KafkaCluster, topic: str) -> None:
    """Once all are in sync; it comes back when others have led for a while."""
    brokers.await_in_sync()
    leader = brokers.leader(topic)
    leader.kill()
    pass_time(FAILOVER_S)
    leader.start()


def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_leaders_are_killed(brokers: KafkaCluster, route: Route) -> None:
    route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        for topic in (route.target, route.source):
            pass_time(2)
            kill_leader(brokers, topic)
        pass_time(3)

    assert_exact(route.settled_verdict(timeout_s=90))


def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_a_leader_is_frozen_until_others_lead_and_wakes_up(
    brokers: KafkaCluster, route: Route
) -> None:
    route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        brokers.await_in_sync()
        leader = brokers.leader(route.target)
        pass_time(2)
        leader.send_signal(signal.SIGSTOP)
        pass_time(FAILOVER_S)
        leader.send_signal(signal.SIGCONT)
        pass_time(3)

    assert_exact(route.settled_verdict(timeout_s=90))


def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_brokers_are_restarted_one_after_another(
    brokers: KafkaCluster, route: Route
) -> None:
    route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        for broker in brokers.brokers:
            brokers.await_in_sync()
            broker.restart()
        pass_time(3)

    assert_exact(route.settled_verdict(timeout_s=90))


def test_p1_p3_nothing_is_lost_or_early_with_at_least_once_when_a_leader_is_killed(
    brokers: KafkaCluster, make_route: MakeRoute
) -> None:
    route = make_route(guarantee="AtLeastOnce")
    route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        pass_time(2)
        kill_leader(brokers, route.target)

    verdict = route.settled_verdict(timeout_s=90)
    assert_exact_but_for_repeats(verdict)
