"""A relay that is told to stop hands its shards over: nobody waits for its session, and nothing is fenced."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.relay.ends import lines_of
from tests.support.relay.faults import assert_exact
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import (
    BUCKETS_NIGHTLY,
    IN_TURN,
    MakeRoute,
    Sent,
    at,
    now_ms,
    produce,
)
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_operator.kafka.admin import KafkaClusters

pytestmark = pytest.mark.integration

GRACE_S = 20.0
ENDLESS_SESSION = {"limits": {"sessionTimeout": "10m"}}
"""Whoever had to wait for it would be too late for any test."""
RATE = 200
REMOVED = ("partitions lost", "joining the group anew")
"""The words of a relay that finds itself out of its group: whether its next request comes before or after the end."""


def owners(route: Route) -> list[str]:
    """The owners of the shards by the last field of the metadata that is committed with the offset."""
    consumer = Consumer({"bootstrap.servers": route.servers.bootstrap_servers, "group.id": route.config().group_id})
    shards = [TopicPartition(route.source, shard) for shard in range(PARTITIONS)]
    committed = consumer.committed(shards, timeout=30)
    consumer.close()
    return [(partition.metadata or "no metadata").split(";")[-1] for partition in committed]


def delivering_shards(relays: Sequence[RelayProcess]) -> list[int]:
    return sorted(shard for relay in relays for shard in relay.shards())


@BUCKETS_NIGHTLY
@pytest.mark.takes_long("a second relay starts after the first has ended")
def test_p1_p2_p3_a_relay_that_is_told_to_stop_names_no_owner_and_its_successor_need_not_wait_or_fence(
    make_route: MakeRoute,
) -> None:
    route = make_route(**ENDLESS_SESSION)
    first = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, (0, 2_000)):
        wait_for(lambda: first.status()["deliveredTotal"] > RATE, first.why)
        named = owners(route)
        assert first.terminate(GRACE_S) == 0
        left = owners(route)
        second = route.start_relay().wait_until_delivering(PARTITIONS)

    assert [owner.startswith(route.config().group_id) for owner in named] == [True] * PARTITIONS
    assert len(set(named)) == 1
    assert left == [""] * PARTITIONS
    assert first.log_lines()[-1]["event"] == "stopped"
    assert_exact(route.settled_verdict())
    assert "former owner fenced" not in [line["event"] for line in second.log_lines()]
    assert lines_of(second, "error", "critical") == []


@pytest.mark.nightly
@pytest.mark.takes_long("relays start one after another, and share what is there")
def test_p1_p2_p3_the_shards_of_a_relay_that_leaves_go_to_the_one_that_is_there(make_route: MakeRoute) -> None:
    route = make_route(**ENDLESS_SESSION)
    leaving = route.start_relay().wait_until_delivering(PARTITIONS)
    staying = route.start_relay().wait_until_delivering(PARTITIONS // 2)
    wait_for(lambda: delivering_shards([leaving, staying]) == list(range(PARTITIONS)))

    with route.traffic(RATE, (0, 2_000)):
        wait_for(lambda: leaving.status()["deliveredTotal"] > RATE, leaving.why)
        assert leaving.terminate(GRACE_S) == 0
        staying.wait_until_delivering(PARTITIONS)

    assert_exact(route.settled_verdict())


@IN_TURN
@pytest.mark.takes_long("a relay starts again under load")
def test_p1_p2_p3_p4_a_relay_that_was_killed_and_is_started_again_by_hand_goes_on_before_its_session_ends(
    make_route: MakeRoute, speedups: bool
) -> None:
    route = make_route(**ENDLESS_SESSION)
    killed, other = route.relay(), route.relay()
    killed.by_hand = other.by_hand = True
    killed.start().wait_until_delivering(PARTITIONS)
    other.start()
    wait_for(lambda: delivering_shards([killed, other.wait_until_delivering(1)]) == list(range(PARTITIONS)))
    shards = killed.shards()

    with route.traffic(RATE, (0, 2_000)):
        wait_for(lambda: killed.status()["deliveredTotal"] > RATE, killed.why)
        killed.kill()
        killed.start().wait_until_delivering(len(shards))

    assert_exact(route.settled_verdict())
    assert killed.shards() == shards
    assert [line["speedups"] for line in killed.log_lines() if line["event"] == "started"] == [speedups]


@pytest.mark.nightly
@pytest.mark.takes_long("a relay is replaced under load, and joins again")
def test_p1_p2_p3_a_frozen_relay_whose_name_another_one_took_joins_without_it_when_it_wakes_and_harms_nothing(
    make_route: MakeRoute,
) -> None:
    route = make_route(**ENDLESS_SESSION)
    frozen = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, (0, 2_000)):
        wait_for(lambda: frozen.status()["deliveredTotal"] > RATE, frozen.why)
        frozen.freeze()
        heir = route.relay(frozen.name).start().wait_until_delivering(PARTITIONS)
        frozen.thaw()
        wait_for(lambda: "joining the group anew" in frozen.troubles(), frozen.why)
        frozen.wait_until_delivering(1)
        wait_for(lambda: delivering_shards([frozen, heir]) == list(range(PARTITIONS)), frozen.why)

    assert_exact(route.settled_verdict())
    assert frozen.terminate(GRACE_S) == 0


@pytest.mark.nightly
@pytest.mark.takes_long("a relay is taken out of its group under load, and joins again")
def test_p1_p2_p3_a_relay_that_runs_and_was_taken_out_of_its_group_by_mistake_loses_time_and_nothing_else(
    make_route: MakeRoute,
) -> None:
    route = make_route(**ENDLESS_SESSION)
    relay, other = route.start_relay().wait_until_delivering(PARTITIONS), route.start_relay()
    wait_for(lambda: delivering_shards([relay, other.wait_until_delivering(1)]) == list(range(PARTITIONS)))
    clusters = KafkaClusters()
    cluster = clusters.cluster({"bootstrap.servers": route.servers.bootstrap_servers, "security.protocol": "PLAINTEXT"})

    with route.traffic(RATE, (0, 2_000)):
        wait_for(lambda: relay.status()["deliveredTotal"] > RATE, relay.why)
        removed = cluster.remove_members(route.config().group_id, route.source, [relay.name])
        wait_for(lambda: any(each in relay.troubles() for each in REMOVED), relay.why)
        relay.wait_until_delivering(1)
        wait_for(lambda: delivering_shards([relay, other]) == list(range(PARTITIONS)), relay.why)
    clusters.close()

    assert removed == [relay.name]
    assert_exact(route.settled_verdict())


def test_a_relay_that_waits_for_something_can_be_told_to_stop(make_route: MakeRoute) -> None:
    route = make_route(backend={"redis": {"url": "redis://127.0.0.1:1/0"}})
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"v", [at(now_ms())])])
    relay = route.start_relay()
    wait_for(lambda: lines_of(relay, "warning"), relay.why)

    assert relay.terminate(GRACE_S) == 0
