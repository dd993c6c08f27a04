"""Sources that are not what progress was committed for, on real servers, and offsets that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.harness.shared_servers import RedisAddress
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, ONLY_BUCKETS, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import Route, Servers

from delaytopic_gateway.client.topics import TopicPlan, create_topics, delete_topics
from delaytopic_local.servers.kafka_server import KafkaServer

pytestmark = pytest.mark.integration

FAR_MS = 120_000


def with_id(name: str, due_ms: int, value: bytes) -> Sent:
    return Sent(b"k", value, [at(due_ms), ("deliver-id", name)], 0)


def values(route: Route) -> list[bytes | None]:
    return [record.value for record in route.read(route.target)]


def send(route: Route, records: list[Sent]) -> None:
    produce(route.servers.bootstrap_servers, route.source, records)


def until_committed(route: Route, offset: int) -> None:
    """Until all below the offset is taken in; a group that is just being made has no coordinator for a moment."""

    def committed() -> bool:
        with suppress(KafkaException):
            return position_of(route) >= offset
        return False

    wait_for(committed, route.relays[-1].why)


def position_of(route: Route) -> int:
    metadata = committed_of(route).metadata
    return int(metadata.split(";")[1]) if metadata else -1


def committed_of(route: Route) -> TopicPartition:
    consumer = Consumer({"bootstrap.servers": route.servers.bootstrap_servers, "group.id": route.config().group_id})
    try:
        return consumer.committed([TopicPartition(route.source, 0)], timeout=30)[0]
    finally:
        consumer.close()


def commit_by_a_tool(servers: str, route: Route, offset: int, metadata: str = "") -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": route.config().group_id})
    try:
        place = TopicPartition(route.source, 0, offset, metadata)
        (committed,) = consumer.commit(offsets=[place], asynchronous=False)
        assert committed.error is None
    finally:
        consumer.close()


def make_anew(route: Route) -> None:
    servers = route.servers.bootstrap_servers
    delete_topics(servers, [route.source])
    create_topics(servers, [TopicPlan(route.source, 1)])


def stands_still(relay: RelayProcess, reason: str) -> Mapping[str, Any]:
    """The status of a relay's shard, as soon as it stands still for this reason."""

    def found() -> Mapping[str, Any] | None:
        shards = relay.status()["shards"]
        return next((shard for shard in shards if shard["reason"] == reason), None)

    shard: Mapping[str, Any] = wait_for(found, relay.why)
    assert shard["state"] == "Failed"
    assert f'delaytopic_standing_shards{{delaytopic_name="{relay.name.rpartition("-")[0]}"' in relay.get("/metrics")
    return shard


def accepting(route: Route, **accepted: str) -> RelayProcess:
    route.spec = {**route.spec, "source": accepted}
    return route.start_relay()


def topic_id_in(message: str) -> str:
    return message.partition("--accept-source ")[2].split()[0]


@BUCKETS_NIGHTLY
@pytest.mark.takes_long("a topic is deleted and made anew, two relays start, and ghosts would have their time")
def test_p1_a_source_that_is_made_anew_while_a_relay_runs_is_no_more_read_until_it_is_accepted(
    make_route: MakeRoute,
) -> None:
    # Given schedules of the former topic, with an id whose last command has a higher offset than any that comes
    route = make_route(partitions=1)
    ghosts_due_ms = now_ms() + FAR_MS
    send(route, [with_id("reminder", ghosts_due_ms + n, b"ghost %d" % n) for n in range(20)])
    relay = route.start_relay()
    until_committed(route, 20)

    # When the topic is made anew, and the id is used again
    make_anew(route)
    send(route, [with_id("reminder", now_ms() + 5_000, b"of the second topic")])
    shard = stands_still(relay, "TopicChanged")
    refused = values(route)
    assert relay.terminate(30) == 0
    accepted = accepting(route, acceptedTopicId=topic_id_in(shard["message"])).wait_until_delivering(1)

    # Then it is delivered, and nothing of the former topic waits any more
    wait_for(lambda: values(route) and accepted.status()["pending"] == 0, accepted.why)
    assert (refused, values(route)) == ([], [b"of the second topic"])
    lost = [line for line in accepted.log_lines() if "in place of the former one" in line["event"]]
    assert [line["records"] for line in lost] == [20]


@ONLY_BUCKETS
@pytest.mark.nightly
@pytest.mark.takes_long("two relays start one after another")
def test_p1_a_group_that_a_tool_has_set_to_the_end_stands_still_with_bucket_topics_until_repeats_are_accepted(
    make_route: MakeRoute,
) -> None:
    route = make_route(partitions=1)
    due_ms = now_ms() + 30_000
    send(route, [Sent(b"k", b"%d" % n, [at(due_ms)], 0) for n in range(50)])
    first = route.start_relay()
    until_committed(route, 50)
    assert first.terminate(30) == 0
    commit_by_a_tool(route.servers.bootstrap_servers, route, 50)

    refusing = route.start_relay()
    shard = stands_still(refusing, "OffsetsLost")
    assert refusing.terminate(30) == 0
    accepted = accepting(route, acceptRepeats=in_an_hour())

    wait_for(lambda: len(values(route)) == 50, accepted.why)
    assert "the bare offset 50, set by a tool" in shard["message"]
    assert sorted(map(int, filter(None, values(route)))) == [*range(50)]


def in_an_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:00Z")


@pytest.mark.nightly
@pytest.mark.takes_long("two relays start one after another")
def test_p1_a_group_that_a_tool_has_set_to_the_end_delivers_what_waits_in_redis(make_route: MakeRoute) -> None:
    route = make_route(partitions=1)
    due_ms = now_ms() + 25_000
    send(route, [Sent(b"k", b"%d" % n, [at(due_ms)], 0) for n in range(50)])
    first = route.start_relay()
    until_committed(route, 50)
    assert first.terminate(30) == 0
    commit_by_a_tool(route.servers.bootstrap_servers, route, 50)

    second = route.start_relay()

    wait_for(lambda: len(values(route)) == 50, second.why)
    assert sorted(map(int, filter(None, values(route)))) == [*range(50)]


@pytest.mark.nightly  # each day simulated groups lose their offsets
@pytest.mark.takes_long("two relays start one after another")
def test_p2_a_group_that_was_deleted_stands_still_until_repeats_are_accepted(make_route: MakeRoute) -> None:
    route = make_route(partitions=1)
    due_ms = now_ms() + 15_000
    send(route, [Sent(b"k", b"%d" % n, [at(due_ms)], 0) for n in range(50)])
    first = route.start_relay()
    until_committed(route, 50)
    assert first.terminate(30) == 0
    admin = AdminClient({"bootstrap.servers": route.servers.bootstrap_servers})
    admin.delete_consumer_groups([route.config().group_id])[route.config().group_id].result(30)

    refusing = route.start_relay()
    shard = stands_still(refusing, "OffsetsLost")
    assert refusing.terminate(30) == 0
    accepted = accepting(route, acceptRepeats=in_an_hour())

    wait_for(lambda: len(values(route)) >= 50, accepted.why)
    assert "nothing committed" in shard["message"]
    assert {*map(int, filter(None, values(route)))} == {*range(50)}


@pytest.mark.nightly
@pytest.mark.takes_long("a second Kafka starts, and three relays do")
def test_p1_offsets_that_a_mirror_has_translated_are_no_progress_of_the_mirrored_topic(
    make_route: MakeRoute, own_kafka: KafkaServer, redis: RedisAddress, tmp_path: Path
) -> None:
    # Given 40 records due at one instant, of which the relay of the first cluster has committed the delivery
    route = make_route(partitions=1)
    due_ms = now_ms() + 3_000
    records = [Sent(b"k", b"%d" % n, [at(due_ms)], 0) for n in range(40)]
    send(route, records[:20])
    first = route.start_relay()
    wait_for(lambda: len(values(route)) == 20, first.why)
    until_committed(route, 20)
    assert first.terminate(30) == 0

    # When a second cluster has all of them, from another offset on, and the group with its metadata as MirrorMaker does
    standby = Route(Servers(own_kafka.bootstrap_servers, redis.url), tmp_path, route.name, route.spec, 1)
    standby.create_topics()
    committed = committed_of(route)
    send(standby, records[:10])
    commit_by_a_tool(own_kafka.bootstrap_servers, standby, 10, committed.metadata or "")
    send(standby, records[10:])
    try:
        refusing = standby.start_relay()
        shard = stands_still(refusing, "ClusterChanged")
        refused = values(standby)
        assert refusing.terminate(30) == 0
        accepted = accepting(standby, acceptedTopicId=topic_id_in(shard["message"]))

        # Then nothing is taken for delivered, and all is delivered once somebody has accepted the topic
        wait_for(lambda: len(values(standby)) == 40, accepted.why)
    finally:
        standby.stop_relays()
    assert refused == []
    assert sorted(map(int, filter(None, values(standby)))) == [*range(40)]
