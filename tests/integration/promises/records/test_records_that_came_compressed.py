"""Records that are larger than their topics allow unless they are compressed: delivered as they came, or told of."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import product
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import (
    BUCKETS,
    BUCKETS_NIGHTLY,
    REDIS,
    MakeRoute,
    Sent,
    at,
    now_ms,
    produce,
)
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_api.records import DeadLetter, parse_dead_letter
from delaytopic_gateway.client.topics import TopicPlan, create_topics

pytestmark = pytest.mark.integration

MIB = 1 << 20
SOURCE_KEEPS = {"max.message.bytes": str(4 * MIB), "retention.ms": "3600000"}
LARGE = b"".join(b'{"order": %d, "state": "open"}' % number for number in range(3 * MIB // 30))
NOISE = random.Random(1).randbytes(1_200_000)
"""No codec makes it smaller."""
DIGITS = random.Random(2).randbytes(3_500_000).translate(b"0123456789" * 25 + b"012345")
"""Codecs halve it, and that is not enough."""
NEIGHBOURS = 20
AT_ONCE_MS, FAR_MS = 1_000, 4_000
"""Within the horizon of the route's relays, and beyond it, in the backlog."""
ON_TIME_MS = 5_000
"""As late as a record may be that nothing disturbs, on a machine with other work."""

GUARANTEES = ("AtLeastOnce", "ExactlyOnce")
BOTH_GUARANTEES = pytest.mark.parametrize(
    "guarantee", ["ExactlyOnce", pytest.param("AtLeastOnce", marks=pytest.mark.nightly)]
)
EVERY_DAY = {
    (REDIS, True, "ExactlyOnce"),
    (BUCKETS, False, "AtLeastOnce"),
}
"""Backend, speedups, guarantee: each value of these is among them."""


class Letter(NamedTuple):
    """A dead letter as it is in its topic."""

    value: bytes | None
    said: DeadLetter | None


@pytest.mark.parametrize(
    ("backend", "speedups", "guarantee"),
    [
        pytest.param(*each, marks=[] if each in EVERY_DAY else [pytest.mark.nightly])
        for each in product((REDIS, BUCKETS), (True, False), GUARANTEES)
    ],
    indirect=["backend", "speedups"],
)
def test_a_large_record_that_came_compressed_is_delivered_whole_and_its_neighbours_once(
    make_route: MakeRoute, guarantee: str, speedups: bool
) -> None:
    route = make_route(guarantee=guarantee)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = now_ms() + AT_ONCE_MS

    send_compressed(route, LARGE, due_ms)
    send_compressed(route, LARGE, due_ms - AT_ONCE_MS + FAR_MS)
    send_neighbours(route, due_ms)
    wait_until_done(relay, NEIGHBOURS + 2)

    delivered = route.read(route.target)
    assert sorted(record.value or b"" for record in delivered) == [b"n"] * NEIGHBOURS + [LARGE, LARGE]
    assert route.read(route.dead_letter) == []
    assert route.verdict().faults == {}
    assert started_over(relay) == ([] if guarantee == "AtLeastOnce" else ["producer-outdated"])


@pytest.mark.nightly
def test_large_records_of_a_delaytopic_do_not_make_those_of_another_late(make_route: MakeRoute) -> None:
    route, another = make_route(SOURCE_KEEPS), make_route()
    relays = [each.start_relay().wait_until_delivering(PARTITIONS) for each in (route, another)]
    due_ms = now_ms() + AT_ONCE_MS

    for value in (LARGE, DIGITS, NOISE):
        send_compressed(route, value, due_ms)
    send_neighbours(another, due_ms)
    wait_until_done(relays[0], 3)
    wait_until_done(relays[1], NEIGHBOURS)

    assert [record.value for record in route.read(route.target)] == [LARGE]
    assert len(route.read(route.dead_letter)) == 2
    assert latest_neighbour_ms(another, due_ms) < ON_TIME_MS


@pytest.mark.nightly  # each day by a record that is too large even compressed
def test_without_compression_a_record_that_would_fit_only_with_it_is_a_dead_letter(make_route: MakeRoute) -> None:
    route = make_route(target={"compression": "None"})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    send_compressed(route, LARGE, now_ms() + AT_ONCE_MS)
    wait_until_done(relay, 1)

    assert [letter.said and letter.said.reason for letter in letters(route)] == ["too-large"]


@pytest.mark.nightly  # each day by a dead letter that may not have its value
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_record_that_no_codec_makes_small_enough_is_a_dead_letter_with_its_value_where_that_fits(
    make_route: MakeRoute, guarantee: str
) -> None:
    route = make_route(SOURCE_KEEPS, guarantee=guarantee)
    configure(route, route.dead_letter, "max.message.bytes", str(4 * MIB))

    relay = send_beside_neighbours(route, NOISE)

    ((value, said),) = letters(route)
    assert value == NOISE
    assert said is not None
    assert (said.reason, said.omitted_bytes, said.source_until) == ("too-large", None, None)
    assert started_over(relay) == []


@BOTH_GUARANTEES
def test_a_dead_letter_that_may_not_have_its_value_says_until_when_the_source_has_it(
    make_route: MakeRoute, guarantee: str
) -> None:
    route = make_route(SOURCE_KEEPS, guarantee=guarantee)

    relay = send_beside_neighbours(route, NOISE)

    assert_source_has(route, NOISE)
    assert started_over(relay) == []


@BUCKETS_NIGHTLY
@BOTH_GUARANTEES
def test_a_record_that_kafka_finds_too_large_even_compressed_costs_its_neighbours_no_record(
    make_route: MakeRoute, guarantee: str
) -> None:
    route = make_route(SOURCE_KEEPS, guarantee=guarantee)

    relay = send_beside_neighbours(route, DIGITS)

    assert_source_has(route, DIGITS)
    assert len(started_over(relay, "Kafka refused")) == (0 if guarantee == "AtLeastOnce" else 1)


def send_beside_neighbours(route: Route, value: bytes) -> RelayProcess:
    """Send a record that the target cannot take, and see that nothing else is lost or doubled."""
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = now_ms() + AT_ONCE_MS
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", value, [at(due_ms)], 1)])
    send_neighbours(route, due_ms)
    wait_until_done(relay, NEIGHBOURS + 1)
    delivered = route.delivered()
    if route.config().guarantee == "ExactlyOnce":
        assert len(delivered) == NEIGHBOURS
    assert len({record.source for record in delivered}) == NEIGHBOURS
    return relay


def send_compressed(route: Route, value: bytes, due_ms: int) -> None:
    settings = {"bootstrap.servers": route.servers.bootstrap_servers, "message.max.bytes": 8 * MIB}
    producer = Producer({**settings, "compression.type": "zstd"})
    producer.produce(route.source, value, b"large", 1, headers=[at(due_ms)])
    assert producer.flush(30) == 0


def send_neighbours(route: Route, due_ms: int) -> None:
    neighbours = [Sent(b"%d" % number, b"n", [at(due_ms)], number % PARTITIONS) for number in range(NEIGHBOURS)]
    produce(route.servers.bootstrap_servers, route.source, neighbours)


def configure(route: Route, topic: str, name: str, value: str) -> None:
    create_topics(route.servers.bootstrap_servers, [TopicPlan(topic, config={name: value})])


def wait_until_done(relay: RelayProcess, records: int) -> None:
    def total() -> int:
        status = relay.status()
        return int(status["deliveredTotal"] + status["deadLetteredTotal"])

    wait_for(lambda: total() >= records, lambda: f"{total()} of {records}: {relay.why()}", timeout_s=40)


def letters(route: Route) -> list[Letter]:
    return [Letter(record.value, parse_dead_letter(record.headers)) for record in route.read(route.dead_letter)]


def assert_source_has(route: Route, value: bytes) -> None:
    """The only dead letter lacks its value, and says where it is and until when."""
    ((left, said),) = letters(route)
    (source,) = [record for record in route.read(route.source) if record.value == value]
    until = datetime.fromtimestamp((source.timestamp_ms + 3_600_000) // 1_000, UTC)
    assert left is None
    assert said is not None
    assert (said.reason, said.omitted_bytes) == ("too-large", len(value))
    assert said.source_until == until.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (said.topic, said.partition, said.offset) == source.at


def started_over(relay: RelayProcess, reason: str = "") -> list[str]:
    """The causes for which the relay gave up what it had not committed, of those whose reason has this text."""
    return [
        line["cause"] for line in relay.log_lines() if line["event"] == "starting over" and reason in line["reason"]
    ]


def latest_neighbour_ms(route: Route, due_ms: int) -> int:
    return max(record.timestamp_ms - due_ms for record in route.read(route.target) if record.value == b"n")
