"""Attacks by who can write where a relay keeps its backlog and its progress: Redis, bucket topics, the group's offsets.

Nothing is sent beyond what the DelayTopic allows, nobody else's producer is fenced, and the relay goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from redis import Redis
from tests.harness.names import unique
from tests.support.relay.faults import assert_exact
from tests.support.relay.process import wait_for
from tests.support.relay.records import BOTH_BACKENDS, BUCKETS, REDIS, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_api.values import bucket_name, source_mark
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.backlog.kafka.segments import encode_bucket_segment, pack_parts
from delaytopic_relay.backlog.redis.layout import ShardKeys
from delaytopic_relay.backlog.segments import encode_segment
from delaytopic_relay.backlog.store import Slice
from delaytopic_relay.core.commands import Schedule

pytestmark = pytest.mark.integration

SHARD = 0


@pytest.fixture
def redis_keys(route: Route) -> Iterator[Redis]:
    """A client that may write to the relay's keys."""
    with Redis.from_url(route.servers.redis_url) as client:
        yield client


def keys_of(route: Route) -> ShardKeys:
    """The keys of the attacked shard."""
    return ShardKeys.of(route.config().backend.id, SHARD, route.topic_mark())


def send_far(route: Route, after_ms: int = 5_000) -> int:
    """A record to the attacked shard that waits in the backlog; when it is due."""
    due_ms = now_ms() + after_ms
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"genuine", [at(due_ms)], SHARD)])
    return due_ms


def in_the_backlog(route: Route, client: Redis, due_ms: int) -> bytes:
    """The list that the record waits in, once it does."""
    list_ = keys_of(route).list(Slice(due_ms - due_ms % 1_000, 1_000))
    wait_for(lambda: client.exists(list_), route.relays[-1].why)
    return list_


@pytest.mark.takes_long("a relay starts, and a record waits in the backlog for seconds")
def test_a_schedule_that_was_put_into_redis_with_a_target_of_its_own_goes_to_the_dead_letter(
    route: Route, redis_keys: Redis
) -> None:
    # Given a topic that the relay may write to, and its DelayTopic may not
    payments = unique("payments")
    create_topics(route.servers.bootstrap_servers, [TopicPlan(payments, 1)])
    route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = send_far(route)
    list_ = in_the_backlog(route, redis_keys, due_ms)

    redis_keys.rpush(list_, encode_segment([Schedule(due_ms, -1, b"k", b"forged", None, target=payments)]))

    wait_for(lambda: route.delivered() and route.dead_letters(), route.relays[-1].why)
    assert route.read(payments) == []
    assert [letter.reason for letter in route.dead_letters()] == ["forbidden-target"]
    assert [record.source.offset for record in route.delivered()] == [0]


@pytest.mark.takes_long("a relay starts beside a producer with an open transaction")
def test_a_name_in_the_groups_metadata_makes_no_relay_fence_the_producer_of_somebody_else(route: Route) -> None:
    # Given somebody else's open transaction, and metadata that names its producer
    settings = {"bootstrap.servers": route.servers.bootstrap_servers}
    name = payments = unique("payments")
    create_topics(route.servers.bootstrap_servers, [TopicPlan(payments, 1)])
    somebody = Producer({**settings, "transactional.id": name})
    somebody.init_transactions(30)
    somebody.begin_transaction()
    somebody.produce(payments, b"payment")
    assert somebody.flush(30) == 0
    place = TopicPartition(route.source, SHARD, 0, metadata=f"5;0;-1;-1;0;;;;;;{name}")
    committer = Consumer({**settings, "group.id": route.config().group_id})
    committer.commit(offsets=[place], asynchronous=False)
    committer.close()

    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    somebody.commit_transaction(30)
    assert any(f"names '{name}', which is no relay of this group" in str(line) for line in relay.log_lines())
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"at once", [], SHARD)])
    assert_exact(route.settled_verdict())


def signed(make_route: MakeRoute, directory: Path, *keys: str) -> Route:
    """A DelayTopic whose relays sign what waits."""
    file = directory / "keys"
    file.write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")
    return make_route(backend={"signingKeysFile": str(file)})


@BOTH_BACKENDS
@pytest.mark.takes_long("a relay starts, and a record waits for seconds")
def test_with_a_key_nothing_is_delivered_that_somebody_else_put_into_the_backlog(
    make_route: MakeRoute, tmp_path: Path, backend: str
) -> None:
    # Given a forged schedule of every kind that a relay without a key would deliver
    route = signed(make_route, tmp_path, "a key that nobody guesses")
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = now_ms() + 5_000
    forged = [Schedule(due_ms, -1, b"k", b"forged", None)]
    if backend == BUCKETS:
        mark, backend_id = source_mark(route.source, route.topic_mark()), route.config().backend.id
        (part,) = pack_parts(forged, 1 << 20)
        segments = [Sent(None, encode_bucket_segment(mark, number, 0, part), [], SHARD) for number in range(4)]
        for bucket in range(3):
            produce(route.servers.bootstrap_servers, bucket_name(backend_id, bucket), segments)
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"genuine", [at(due_ms)], SHARD)])
    if backend == REDIS:
        with Redis.from_url(route.servers.redis_url) as client:
            client.rpush(in_the_backlog(route, client, due_ms), encode_segment(forged))

    wait_for(route.delivered, relay.why)

    assert_exact(route.settled_verdict())
    assert [record.source.offset for record in route.delivered()] == [0]
    assert any("it is not signed" in str(line) for line in relay.log_lines())
    assert "delaytopic_foreign_entries_total" in relay.get("/metrics")


@BOTH_BACKENDS
@pytest.mark.nightly  # each day keys change between simulated relays
@pytest.mark.takes_long("three relays start, one after another, while records wait")
def test_keys_are_set_rotated_and_replaced_while_records_wait(make_route: MakeRoute, tmp_path: Path) -> None:
    route = make_route()
    due_ms = now_ms() + 15_000
    batch = [Sent(b"k", b"%d" % number, [at(due_ms + number)], number % PARTITIONS) for number in range(200)]
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    produce(route.servers.bootstrap_servers, route.source, batch)
    wait_for(lambda: relay.status()["pending"] == len(batch), relay.why)

    for keys in (
        ["the first of the keys"],
        ["the second of the keys", "the first of the keys"],
        ["a third of the keys"],
    ):
        assert relay.terminate() == 0
        file = tmp_path / "keys"
        file.write_text("\n".join(keys), encoding="utf-8")
        route.spec["backend"] = {**route.spec.get("backend", {}), "signingKeysFile": str(file)}
        relay = route.start_relay().wait_until_delivering(PARTITIONS)

    assert_exact(route.settled_verdict())
