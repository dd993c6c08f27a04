"""A relay that is told to stop hands its shards over: nobody waits for its session, and nothing is fenced."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.records import ONLY_REDIS, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay_ends import lines_of
from tests.support.relay_process import RelayProcess, wait_for
from tests.support.route import PARTITIONS, Route

pytestmark = pytest.mark.integration

GRACE_S = 20.0
LONG_SESSION = {"limits": {"sessionTimeout": "45s"}}
"""Whoever had to wait for a session of this length would be too late for every bound here."""
SOON_S = 15.0
RATE = 200


def owners(route: Route) -> list[str]:
    """Who wrote each shard's progress: the last field of the metadata that is committed with the offset."""
    consumer = Consumer({"bootstrap.servers": route.servers.bootstrap_servers, "group.id": route.config().group_id})
    shards = [TopicPartition(route.source, shard) for shard in range(PARTITIONS)]
    committed = consumer.committed(shards, timeout=30)
    consumer.close()
    return [(partition.metadata or "no metadata").split(";")[-1] for partition in committed]


def delivering_shards(relays: Sequence[RelayProcess]) -> set[int]:
    return {shard for relay in relays for shard in relay.shards()}


def test_a_relay_that_is_told_to_stop_ends_well_within_its_grace_and_names_no_owner(route: Route) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    with route.traffic(RATE, (0, 2_000)):
        wait_for(lambda: relay.status()["deliveredTotal"] > RATE)
        named = owners(route)
        started_s = time.monotonic()
        code = relay.terminate(GRACE_S)
        took_s = time.monotonic() - started_s

    assert code == 0
    assert took_s < GRACE_S
    assert len(set(named)) == 1
    assert named[0].startswith(route.config().group_id)
    assert owners(route) == [""] * PARTITIONS
    assert relay.log_lines()[-1]["event"] == "stopped"


def test_p1_p2_p3_a_successor_goes_on_without_waiting_for_the_session_and_without_fencing(
    make_route: MakeRoute, capsys: pytest.CaptureFixture[str]
) -> None:
    route = make_route(**LONG_SESSION)
    first = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, (0, 2_000)):
        wait_for(lambda: first.status()["deliveredTotal"] > RATE)
        assert first.terminate(GRACE_S) == 0
        started_s = time.monotonic()
        second = route.start_relay()
        wait_for(lambda: first_delivery(second), timeout_s=SOON_S)
        took_s = time.monotonic() - started_s

    verdict = route.settled_verdict()
    assert verdict.faults == {}
    assert verdict.delivered == verdict.schedules > 0
    assert "former owner fenced" not in [line["event"] for line in second.log_lines()]
    assert lines_of(second, "error", "critical") == []
    with capsys.disabled():
        print(f"\nhand-over: a successor that was started afterwards delivered within {took_s:.1f} s")


def test_p1_p2_p3_the_shards_of_a_relay_that_leaves_go_to_the_one_that_is_there(
    make_route: MakeRoute, capsys: pytest.CaptureFixture[str]
) -> None:
    route = make_route(**LONG_SESSION)
    leaving = route.start_relay().wait_until_delivering(PARTITIONS)
    staying = route.start_relay().wait_until_delivering(PARTITIONS // 2)
    wait_for(lambda: delivering_shards([leaving, staying]) == set(range(PARTITIONS)))
    moving = leaving.shards()

    with route.traffic(RATE, (0, 2_000)):
        wait_for(lambda: leaving.status()["deliveredTotal"] > RATE)
        told_s, told_ms = time.monotonic(), now_ms()
        assert leaving.terminate(GRACE_S) == 0
        wait_for(lambda: staying.shards() == set(range(PARTITIONS)), timeout_s=SOON_S)
        took_s = time.monotonic() - told_s

    verdict = route.settled_verdict()
    assert verdict.faults == {}
    assert verdict.delivered == verdict.schedules > 0
    sent_ms = sorted(record.sent_ms for record in route.delivered() if record.source.partition in moving)
    gap_ms = max(later - sooner for sooner, later in pairwise(sent_ms) if later > told_ms)
    with capsys.disabled():
        print(f"\nhand-over: {took_s:.1f} s until all shards deliver again; longest silence of theirs {gap_ms} ms")
    assert gap_ms < SOON_S * 1_000


def first_delivery(relay: RelayProcess) -> bool:
    """Whether it has delivered anything yet; it may not even answer."""
    try:
        return bool(relay.status()["deliveredTotal"])
    except OSError:
        return False


@ONLY_REDIS
def test_a_relay_that_waits_for_something_can_be_told_to_stop(make_route: MakeRoute) -> None:
    route = make_route(backend={"redis": {"url": "redis://127.0.0.1:1/0"}})
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"v", [at(now_ms())])])
    relay = route.start_relay()
    wait_for(lambda: lines_of(relay, "warning"))

    assert relay.terminate(GRACE_S) == 0
