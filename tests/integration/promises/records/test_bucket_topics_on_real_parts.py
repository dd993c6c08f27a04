"""Changes by people to bucket topics, and to a DelayTopic's backend and partitions, while it delivers."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.relay.faults import assert_exact
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import (
    BOTH_BACKENDS,
    BUCKETS,
    ONLY_BUCKETS,
    MakeRoute,
    Sent,
    at,
    now_ms,
    produce,
)
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_api.values import bucket_names, ids_name
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.backlog.signing import MAGIC

pytestmark = pytest.mark.integration

RATE = 500
DELAYS_MS = (0, 6_000)
STREAM = 100, (2_500, 6_000)
"""Rate and delays of records that pass through the first buckets, however late a busy machine takes them in."""


def names(route: Route) -> list[str]:
    """The route's bucket topics."""
    config = route.config()
    return bucket_names(config.backend.id, config.limits.horizon.ms, config.schedule.max_delay.ms)


def logged(relay: RelayProcess, *words: str) -> bool:
    """Return whether one line of its log has all of these words."""
    return any(all(word in str(line) for word in words) for line in relay.log_lines())


def send_far(route: Route, after_ms: int, records: int = 200) -> None:
    """Records that wait in buckets, in every partition."""
    due_ms = now_ms() + after_ms
    batch = [Sent(b"k", b"%d" % number, [at(due_ms)], number % PARTITIONS) for number in range(records)]
    produce(route.servers.bootstrap_servers, route.source, batch)


@ONLY_BUCKETS
@pytest.mark.nightly  # a record that no relay signed is left out each day, in the tests of hostile backlogs
@pytest.mark.takes_long("a bucket is read when half of a delay is over")
def test_a_foreign_record_in_a_bucket_is_left_out_and_named(route: Route) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    foreign = [Sent(b"k", b"who is there? a record of somebody else", [], 1)]
    for topic in names(route)[:3]:
        produce(route.servers.bootstrap_servers, topic, foreign)

    with route.traffic(*STREAM):
        wait_for(lambda: logged(relay, "which no segment does", f"{names(route)[0]}[1], offset 0"), relay.why)

    assert_exact(route.settled_verdict())


@ONLY_BUCKETS
@pytest.mark.nightly  # each day simulated buckets are damaged
@pytest.mark.takes_long("the loss is noticed when half of the delay is over")
def test_truncated_buckets_are_filled_again_from_the_source(make_route: MakeRoute) -> None:
    route = make_route(limits={"horizon": "1s"})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    send_far(route, 9_000)
    wait_for(lambda: sum(shard["committedOffset"] for shard in relay.status()["shards"]) == 200)

    admin = AdminClient({"bootstrap.servers": route.servers.bootstrap_servers})
    everything = [TopicPartition(topic, shard, -1) for topic in names(route)[:4] for shard in range(PARTITIONS)]
    for future in admin.delete_records(everything).values():
        future.result(30)

    wait_for(lambda: logged(relay, "has lost what waited in it", "retention above maxDelay"))
    assert_exact(route.settled_verdict())


@pytest.mark.nightly
@ONLY_BUCKETS
@pytest.mark.takes_long("a bucket is read when half of a delay is over")
def test_a_segment_of_a_newer_version_stops_its_shard_alone_and_is_named(route: Route) -> None:
    newer = [Sent(b"k", MAGIC + bytes(16) + b"\x02" + bytes(40), [], 2)]
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    produce(route.servers.bootstrap_servers, names(route)[0], newer)

    with route.traffic(*STREAM):
        wait_for(lambda: relay.shards("Failed") == {2}, relay.why)

    message = next(shard["message"] for shard in relay.status()["shards"] if shard["partition"] == 2)
    assert f"{names(route)[0]}[2], offset 0" in message
    assert "version 2" in message
    elsewhere = {record.at for record in route.source_records() if record.at.partition != 2}
    wait_for(lambda: {record.source for record in route.delivered()} >= elsewhere, relay.why)


@ONLY_BUCKETS
def test_a_relay_waits_for_missing_bucket_topics_and_names_them(route: Route) -> None:
    admin = AdminClient({"bootstrap.servers": route.servers.bootstrap_servers})
    for future in admin.delete_topics([ids_name(route.config().backend.id)], operation_timeout=30).values():
        future.result(30)

    relay = route.start_relay()

    missing = f"the topic {ids_name(route.config().backend.id)} does not exist"
    wait_for(lambda: logged(relay, missing, "create it with 4 partitions"))


@ONLY_BUCKETS
def test_what_is_too_large_for_a_bucket_is_a_dead_letter_and_holds_up_nobody(make_route: MakeRoute) -> None:
    route = make_route({"max.message.bytes": str(4 << 20)})
    smaller = {"max.message.bytes": str(2 << 20)}
    create_topics(route.servers.bootstrap_servers, [TopicPlan(name, config=smaller) for name in names(route)])
    route.start_relay().wait_until_delivering(PARTITIONS)
    far = [("deliver-after", b"30m")]
    large = Sent(b"k", bytes(3 << 20), [*far], 1)

    produce(route.servers.bootstrap_servers, route.source, [large, Sent(b"k", b"small", [], 1)])

    wait_for(lambda: len(route.delivered()) == 1 and route.dead_letters())
    assert [(letter.source.offset, letter.reason) for letter in route.dead_letters()] == [(0, "too-large")]


@pytest.mark.takes_long("two backlogs of seconds have to build up, move and be delivered")
def test_the_backend_changes_there_and_back_under_load_and_the_backlog_moves_along(route: Route, backend: str) -> None:
    create_bucket_topics(route)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        for following in (BUCKETS, backend):
            relay = succeed(relay, route, following)
            assert moved_offsets(relay) > RATE
            assert relay.status()["replayLag"] == 0

    assert_exact(route.settled_verdict(timeout_s=90))
    assert relay.status()["backend"] == backend


def succeed(relay: RelayProcess, route: Route, backend: str) -> RelayProcess:
    """Replace a relay that has a backlog by one with another backend: the new one comes before the old one goes."""
    wait_for(lambda: relay.status()["pending"] > 2 * RATE, relay.why)
    route.spec["backend"] = {"type": backend}
    successor = route.start_relay()
    wait_for(lambda: relay.shards() != set(range(PARTITIONS)), relay.why)
    assert relay.terminate() == 0
    return successor.wait_until_delivering(PARTITIONS)


def moved_offsets(relay: RelayProcess) -> int:
    """Return how many source offsets it read again because their backlog was on another backend."""
    moves = [line for line in relay.log_lines() if line["event"] == "the backlog moves here from another backend"]
    return sum(int(line["offsets"]) for line in moves)


def create_bucket_topics(route: Route) -> None:
    """Also for a route that begins without them."""
    kept, route.spec["backend"] = route.spec["backend"], {"type": BUCKETS}
    route.create_topics()
    route.spec["backend"] = kept


@BOTH_BACKENDS
@pytest.mark.nightly
def test_a_relay_that_runs_finds_the_new_partitions_of_source_and_bucket_topics(route: Route, backend: str) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    send_far(route, 8_000)
    wait_for(lambda: relay.status()["pending"] == 200)
    server = route.servers.bootstrap_servers
    of_backend = [*names(route), ids_name(route.config().backend.id)] if backend == BUCKETS else []

    create_topics(server, [TopicPlan(topic, PARTITIONS + 2, {}) for topic in (*of_backend, route.source)])
    produce(
        server, route.source, [Sent(b"k", b"new", [at(now_ms() + 3_000)], shard) for shard in range(PARTITIONS + 2)]
    )
    relay.wait_until_delivering(PARTITIONS + 2)

    assert_exact(route.settled_verdict())


@BOTH_BACKENDS
@pytest.mark.nightly
def test_a_source_that_grows_is_delivered_from_its_new_partitions_too(route: Route, backend: str) -> None:
    first = route.start_relay().wait_until_delivering(PARTITIONS)
    send_far(route, 8_000)
    wait_for(lambda: first.status()["pending"] == 200)
    server = route.servers.bootstrap_servers

    create_topics(server, [TopicPlan(route.source, PARTITIONS + 2, {})])
    second = route.start_relay()
    if backend == BUCKETS:
        wait_for(lambda: logged(second, f"has {PARTITIONS} partitions, the source {PARTITIONS + 2}"))
        grown = [*names(route), ids_name(route.config().backend.id)]
        create_topics(server, [TopicPlan(topic, PARTITIONS + 2, {}) for topic in grown])
    wait_for(second.shards)
    assert first.terminate() == 0
    produce(
        server, route.source, [Sent(b"k", b"new", [at(now_ms() + 3_000)], shard) for shard in range(PARTITIONS + 2)]
    )
    second.wait_until_delivering(PARTITIONS + 2)

    assert_exact(route.settled_verdict())
