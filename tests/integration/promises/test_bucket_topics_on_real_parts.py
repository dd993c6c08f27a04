"""What people do to bucket topics, and to a DelayTopic's backend and partitions, while it delivers."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.faults import assert_exact, pass_time
from tests.support.records import MakeRoute, Sent, at, now_ms, produce
from tests.support.relay_process import RelayProcess, wait_for
from tests.support.route import PARTITIONS, Route

from delaytopic_api.bucket_topics import bucket_names, ids_name
from delaytopic_cli.embedded.topics import TopicPlan, create_topics

pytestmark = pytest.mark.integration

ONLY_BUCKETS = pytest.mark.parametrize("backend", ["KafkaBuckets"], indirect=True)
RATE = 2_000
DELAYS_MS = (0, 12_000)


def names(route: Route) -> list[str]:
    """The route's bucket topics."""
    config = route.config()
    return bucket_names(config.backend.id, config.limits.horizon.ms, config.schedule.max_delay.ms)


def logged(relay: RelayProcess, *words: str) -> bool:
    """Whether one line of its log has all of these words."""
    return any(all(word in str(line) for word in words) for line in relay.log_lines())


def send_far(route: Route, after_ms: int, records: int = 200) -> None:
    """Records that wait in buckets, in every partition."""
    due_ms = now_ms() + after_ms
    batch = [Sent(b"k", b"%d" % number, [at(due_ms)], number % PARTITIONS) for number in range(records)]
    produce(route.servers.bootstrap_servers, route.source, batch)


@ONLY_BUCKETS
def test_a_foreign_record_in_a_bucket_is_left_out_and_named(route: Route) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    foreign = [Sent(b"k", b"who is there? a record of somebody else", [], 1)]
    for topic in names(route)[:3]:
        produce(route.servers.bootstrap_servers, topic, foreign)

    send_far(route, 7_000)

    assert_exact(route.settled_verdict())
    assert logged(relay, "which no segment does", f"{names(route)[0]}[1], offset 0")


@ONLY_BUCKETS
def test_truncated_buckets_are_filled_again_from_the_source(route: Route) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    send_far(route, 12_000)
    wait_for(lambda: sum(shard["committedOffset"] for shard in relay.status()["shards"]) == 200)

    admin = AdminClient({"bootstrap.servers": route.servers.bootstrap_servers})
    everything = [TopicPartition(topic, shard, -1) for topic in names(route)[:4] for shard in range(PARTITIONS)]
    for future in admin.delete_records(everything).values():
        future.result(30)

    wait_for(lambda: logged(relay, "has lost what waited in it", "retention above maxDelay"))
    assert_exact(route.settled_verdict())


@ONLY_BUCKETS
def test_a_segment_of_a_newer_version_stops_its_shard_alone_and_is_named(route: Route) -> None:
    newer = [Sent(b"k", b"\x02" + bytes(40), [], 2)]
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    produce(route.servers.bootstrap_servers, names(route)[0], newer)

    send_far(route, 3_500)

    wait_for(lambda: relay.shards("Failed") == {2})
    message = next(shard["message"] for shard in relay.status()["shards"] if shard["partition"] == 2)
    assert f"{names(route)[0]}[2], offset 0" in message
    assert "version 2" in message
    wait_for(lambda: len(route.delivered()) == 150)


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
    route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = now_ms() + 4_000
    large = Sent(b"k", bytes(3 << 20), [at(due_ms)], 1)

    produce(route.servers.bootstrap_servers, route.source, [large, Sent(b"k", b"small", [at(due_ms)], 1)])

    wait_for(lambda: len(route.delivered()) == 1 and route.dead_letters())
    assert [(letter.source.offset, letter.reason) for letter in route.dead_letters()] == [(0, "too-large")]


def test_the_backend_changes_twice_under_load_and_the_backlog_moves_along(make_route: MakeRoute, backend: str) -> None:
    other = {"RedisZset": "KafkaBuckets", "KafkaBuckets": "RedisZset"}[backend]
    route = make_route()
    create_bucket_topics(route)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        for following in (other, backend):
            pass_time(6)
            route.spec["backend"] = {"type": following}
            successor = route.start_relay()
            pass_time(3)
            assert relay.terminate() == 0
            relay = successor.wait_until_delivering(PARTITIONS)
            assert moved_offsets(relay) > RATE
            assert relay.status()["replayLag"] == 0
        pass_time(4)

    assert_exact(route.settled_verdict(timeout_s=90))
    assert relay.status()["backend"] == backend


def moved_offsets(relay: RelayProcess) -> int:
    """How many source offsets it read again because their backlog was on another backend."""
    moves = [line for line in relay.log_lines() if line["event"] == "the backlog moves here from another backend"]
    return sum(int(line["offsets"]) for line in moves)


def create_bucket_topics(route: Route) -> None:
    """Also for a route that begins without them."""
    kept, route.spec["backend"] = route.spec["backend"], {"type": "KafkaBuckets"}
    route.create_topics()
    route.spec["backend"] = kept


def test_a_relay_that_runs_finds_the_new_partitions_of_source_and_bucket_topics(route: Route, backend: str) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    send_far(route, 8_000)
    wait_for(lambda: relay.status()["pending"] == 200)
    server = route.servers.bootstrap_servers
    of_backend = [*names(route), ids_name(route.config().backend.id)] if backend == "KafkaBuckets" else []

    create_topics(server, [TopicPlan(topic, PARTITIONS + 2, {}) for topic in (route.source, *of_backend)])
    produce(
        server, route.source, [Sent(b"k", b"new", [at(now_ms() + 3_000)], shard) for shard in range(PARTITIONS + 2)]
    )
    relay.wait_until_delivering(PARTITIONS + 2)

    assert_exact(route.settled_verdict())


def test_a_source_that_grows_is_delivered_from_its_new_partitions_too(route: Route, backend: str) -> None:
    first = route.start_relay().wait_until_delivering(PARTITIONS)
    send_far(route, 8_000)
    wait_for(lambda: first.status()["pending"] == 200)
    server = route.servers.bootstrap_servers

    create_topics(server, [TopicPlan(route.source, PARTITIONS + 2, {})])
    second = route.start_relay()
    if backend == "KafkaBuckets":
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
