"""A broker of three is away, and with it a topic that some records go to: all others are delivered meanwhile."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, by an implicit re-export
from tests.harness.shared_servers import RedisAddress
from tests.support.metrics_page import samples, value_of
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import SESSION_TIMEOUT_S, ClientHeaders, Route, Servers
from tests.support.relay.routes import making_routes
from tests.support.servers.kafka_cluster import KafkaCluster, kafka_cluster

from delaytopic_api.records import Receipt, parse_dead_letter
from delaytopic_gateway.client.topics import admin_client
from delaytopic_local.servers.kafka_server import KafkaServer

# Each day simulated targets do not answer.
pytestmark = [pytest.mark.integration, pytest.mark.nightly]

AWAY, STAYING, BESIDE = 3, 1, 2
"""Numbers of brokers."""
RECORDS = 100
"""Of each source partition, due one after another in `LASTS_MS`."""
LASTS_MS = 6_000
SPEC = {"target": {"partitioning": "SamePartition"}}


class Place(NamedTuple):
    """A source record: its topic, partition and offset."""

    topic: str
    partition: int
    offset: int


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path_factory.mktemp("brokers")) as cluster:
        yield cluster


@pytest.fixture
def away(brokers: KafkaCluster) -> Iterator[KafkaServer]:
    """The broker that goes away in each test, and comes back at its end at the latest."""
    broker = brokers.brokers[AWAY - 1]
    yield broker
    if not broker.is_running():
        broker.start()
    brokers.await_in_sync()


@pytest.fixture
def make_route(brokers: KafkaCluster, redis: RedisAddress, backend: str, tmp_path: Path) -> Iterator[MakeRoute]:
    """Makes a DelayTopic of two partitions whose topics outlive any broker, but for those that a test makes."""
    servers = Servers(brokers.bootstrap_servers, redis.url, copies=len(brokers.brokers))
    with making_routes(servers, tmp_path, backend, f"{SESSION_TIMEOUT_S}s") as make:
        yield lambda **spec: make(partitions=2, **spec)


def make_topic(brokers: KafkaCluster, name: str, copies: Sequence[Sequence[int]], **config: str) -> str:
    """Make a topic, of each partition of which these brokers have a copy; in the place of another one of its name."""
    admin = admin_client(brokers.bootstrap_servers)
    settings = {key.replace("_", "."): value for key, value in config.items()}
    topic = NewTopic(name, len(copies), replica_assignment=[*map(list, copies)], config=settings)
    wait_for(lambda: _is_made(admin, topic), lambda: f"another {name} is still there")
    return name


def _is_made(admin: AdminClient, topic: NewTopic) -> bool:
    """Make a topic in the place of another one. The controller knows of that before the broker that is asked does."""
    try:
        admin.delete_topics([topic.topic])[topic.topic].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
    try:
        admin.create_topics([topic])[topic.topic].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def kill(broker: KafkaServer, brokers: KafkaCluster, topic: str, partition: int = 0) -> None:
    """Kill the broker, and wait until the others know that this partition lacks it."""
    broker.kill()
    admin = admin_client(brokers.bootstrap_servers)

    def is_known() -> bool:
        seen = admin.list_topics(topic, timeout=30).topics[topic].partitions.get(partition)
        return seen is not None and (AWAY not in seen.isrs or seen.leader < 0)

    wait_for(is_known, lambda: f"{topic}[{partition}] still has broker {AWAY}")


def send(
    route: Route, partition: int, to: str | None = None, records: int = RECORDS, after_ms: int = 1_000
) -> list[Place]:
    """Records that are due one after another, from then on; with a target each, or with none."""
    due_ms, others = now_ms() + after_ms, [("deliver-to", to.encode())] if to is not None else []
    sent = [
        Sent(b"%d" % number, b"v", [at(due_ms + LASTS_MS * number // records), *others], partition)
        for number in range(records)
    ]
    places = produce(route.servers.bootstrap_servers, route.source, sent)
    return [Place(route.source, place.partition, place.offset) for place in places]


def received(route: Route, topic: str) -> dict[Place, tuple[Receipt, ...]]:
    """Return the receipts of what a topic has, by the source record."""
    found: dict[Place, tuple[Receipt, ...]] = {}
    for record in route.read(topic):
        receipt = Receipt.parse(record.headers[-1][1])
        place = Place(receipt.topic, receipt.partition, receipt.offset)
        found[place] = (*found.get(place, ()), receipt)
    return found


def letters(route: Route) -> dict[Place, tuple[str, int]]:
    """Return reason and time of each dead letter, by the source record."""
    found = [parse_dead_letter(record.headers) for record in route.read(route.dead_letter)]
    return {Place(each.topic, each.partition, each.offset): (each.reason, each.at_ms) for each in found if each}


def await_all(topic: str, route: Route, places: Sequence[Place]) -> dict[Place, tuple[Receipt, ...]]:
    found: dict[Place, tuple[Receipt, ...]] = {}

    def arrived() -> bool:
        found.update(received(route, topic))
        return found.keys() >= {*places}

    wait_for(arrived, lambda: f"{len({*places} - found.keys())} are missing: {route.relays[0].troubles()[-3_000:]}")
    return found


def latest_ms(found: dict[Place, tuple[Receipt, ...]], places: Sequence[Place]) -> int:
    return max(receipt.sent_ms - receipt.due_ms for place in places for receipt in found[place])


def assert_each_once(route: Route, topics: Sequence[str], places: Sequence[Place]) -> None:
    """Nothing is lost or twice, dead letters and all; with `AtLeastOnce`, what was sent beside it may be twice."""
    times = Counter({place: len(receipts) for topic in topics for place, receipts in received(route, topic).items()})
    times.update([*letters(route)])
    assert times.keys() == {*places}
    assert route.config().guarantee == "AtLeastOnce" or times == Counter(places)


ONLY_COPY_AWAY: tuple[Sequence[Sequence[int]], dict[str, str]] = ([[AWAY]], {})
TOO_FEW_IN_SYNC: tuple[Sequence[Sequence[int]], dict[str, str]] = (
    [[STAYING, AWAY]],
    {"min_insync_replicas": "2"},
)


@pytest.mark.parametrize(
    ("copies", "config", "guarantee"),
    [
        pytest.param(*ONLY_COPY_AWAY, "ExactlyOnce", id="its only copy is away"),
        pytest.param(*ONLY_COPY_AWAY, "AtLeastOnce", id="it is away, at least once"),
        pytest.param(*TOO_FEW_IN_SYNC, "ExactlyOnce", id="too few are in sync"),
        pytest.param(*TOO_FEW_IN_SYNC, "AtLeastOnce", id="too few, at least once"),
    ],
)
def test_records_for_a_further_target_that_does_not_answer_are_dead_letters_and_all_others_are_delivered(
    brokers: KafkaCluster,
    away: KafkaServer,
    make_route: MakeRoute,
    copies: Sequence[Sequence[int]],
    config: dict[str, str],
    guarantee: str,
    record_property: Callable[[str, object], None],
) -> None:
    # Given two DelayTopics, and a further target that cannot be written to while a broker is away
    route, neighbour = make_route(guarantee=guarantee), make_route(guarantee=guarantee)
    bad = make_topic(brokers, f"{route.name}.bad", copies, **config)
    route.spec["target"] = {"allowedTopics": [bad]}
    kill(away, brokers, bad)
    for each in (route, neighbour):
        each.start_relay().wait_until_delivering(2)

    # When one record of many asks for it
    asked = send(route, 0, bad, records=1)
    beside, others = send(route, 0), send(route, 1)
    elsewhere = send(neighbour, 0)

    # Then all others are delivered, and it is a dead letter
    found = await_all(route.target, route, [*beside, *others])
    found |= await_all(neighbour.target, neighbour, elsewhere)
    wait_for(lambda: letters(route).keys() >= {*asked}, route.relays[0].why)
    due_ms = next(int(value or 0) for name, value in route.read(route.dead_letter)[0].headers if name == "deliver-at")
    reason, letter_ms = letters(route)[asked[0]]
    record_property("ms until it was a dead letter", letter_ms - due_ms)
    record_property("latest ms beside it", latest_ms(found, beside))
    record_property("latest ms of the other partition", latest_ms(found, others))
    record_property("latest ms of the neighbour", latest_ms(found, elsewhere))
    assert reason == "target-unavailable"

    # And so are others at once, until it answers again
    again = send(route, 1, bad, records=3, after_ms=0)
    wait_for(lambda: letters(route).keys() >= {*again}, route.relays[0].why)
    away.start()
    brokers.await_in_sync()
    healed_s, healed = time.monotonic(), list[Place]()

    def delivered() -> bool:
        healed.extend(send(route, 0, bad, records=1, after_ms=0))
        wait_for(lambda: {*received(route, bad), *letters(route)} >= {*healed}, route.relays[0].why)
        return healed[-1] in received(route, bad)

    wait_for(delivered, route.relays[0].why)
    record_property("s until it was believed", round(time.monotonic() - healed_s, 1))
    assert_each_once(route, [route.target, bad], [*asked, *beside, *others, *again, *healed])
    assert_each_once(neighbour, [neighbour.target], elsewhere)


@pytest.mark.parametrize("guarantee", ["ExactlyOnce", "AtLeastOnce"])
def test_while_one_partition_of_the_target_does_not_answer_only_the_source_partition_that_sends_there_waits(
    brokers: KafkaCluster,
    away: KafkaServer,
    make_route: MakeRoute,
    guarantee: str,
    record_property: Callable[[str, object], None],
) -> None:
    route = make_route(guarantee=guarantee, **SPEC)
    make_topic(brokers, route.target, [[STAYING], [AWAY]])
    kill(away, brokers, route.target, 1)
    route.start_relay().wait_until_delivering(2)

    waiting, others = send(route, 1), send(route, 0)

    # Nobody can read the topic to its end meanwhile.
    relay = route.relays[0]
    wait_for(lambda: relay.status()["deliveredTotal"] >= len(others), relay.why)
    wait_for(lambda: {each["reason"] for each in relay.status()["shards"]} == {None, "TargetUnavailable"}, relay.why)
    away.start()
    brokers.await_in_sync()
    found = await_all(route.target, route, [*waiting, *others])
    record_property("latest ms of the other partition", latest_ms(found, others))
    assert_each_once(route, [route.target], [*waiting, *others])


def test_while_the_dead_letter_topic_does_not_answer_only_the_source_partition_with_a_bad_record_waits(
    brokers: KafkaCluster, away: KafkaServer, make_route: MakeRoute, record_property: Callable[[str, object], None]
) -> None:
    route = make_route()
    make_topic(brokers, route.dead_letter, [[AWAY]])
    kill(away, brokers, route.dead_letter)
    route.start_relay().wait_until_delivering(2)

    bad = [Sent(b"k", b"v", [("deliver-at", b"soon")], 1)]
    (place,) = produce(route.servers.bootstrap_servers, route.source, bad)
    waiting, others = send(route, 1), send(route, 0)

    found = await_all(route.target, route, others)
    record_property("latest ms of the other partition", latest_ms(found, others))
    away.start()
    brokers.await_in_sync()
    await_all(route.target, route, [*waiting, *others])
    wait_for(lambda: len(letters(route)) == 1, route.relays[0].why)
    assert_each_once(route, [route.target], [Place(route.source, place.partition, place.offset), *waiting, *others])


@pytest.mark.parametrize(
    ("copies", "config"),
    [
        pytest.param([[STAYING], [AWAY]], {}, id="its only copy is away"),
        pytest.param([[STAYING, BESIDE], [STAYING, AWAY]], {"min_insync_replicas": "2"}, id="too few are in sync"),
    ],
)
def test_while_a_partition_of_the_outcomes_does_not_answer_only_its_source_partition_waits(
    brokers: KafkaCluster,
    away: KafkaServer,
    make_route: MakeRoute,
    copies: Sequence[Sequence[int]],
    config: dict[str, str],
    record_property: Callable[[str, object], None],
) -> None:
    # Given a topic of outcomes of which a partition has lost its leader
    route = make_route(outcomes={}, **SPEC)
    make_topic(brokers, route.outcomes, copies, **config)
    kill(away, brokers, route.outcomes, 1)
    relay = route.start_relay().wait_until_delivering(2)

    # When records of both source partitions are due, and a cancel that met nothing is in the one without
    nothing: ClientHeaders = [("deliver-action", b"cancel"), ("deliver-id", b"nobody")]
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", None, nothing, 1)])
    waiting, others = send(route, 1), send(route, 0)

    # Then those of the other partition are delivered meanwhile, and the topic is named
    found = await_all(route.target, route, others)
    record_property("latest ms of the other partition", latest_ms(found, others))
    wait_for(lambda: relay.status()["unanswered"], relay.why)
    (shard,) = [each for each in relay.status()["shards"] if each["reason"] == "TargetUnavailable"]
    (unanswered,) = relay.status()["unanswered"]
    metric = value_of(samples(relay), "delaytopic_unanswered_topic_waiting_shards", topic=route.outcomes)
    assert (shard["partition"], unanswered["topic"], metric) == (1, route.outcomes, 1)
    assert received(route, route.target).keys().isdisjoint(waiting)

    # And all arrive once the topic takes records again, each with one outcome
    away.start()
    brokers.await_in_sync()
    await_all(route.target, route, [*waiting, *others])
    assert_each_once(route, [route.target], [*waiting, *others])
    told = wait_for(lambda: len(all_ := route.read(route.outcomes)) > len(waiting) + len(others) and all_, relay.why)
    endings = Counter(json.loads(record.value or b"")["outcome"] for record in told)
    assert endings == {"Delivered": len(waiting) + len(others), "NotPending": 1}
