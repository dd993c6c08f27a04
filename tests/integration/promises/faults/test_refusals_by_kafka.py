"""Records that Kafka itself refuses, though all checks before it passed: dead letters, and nobody else's trouble."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_api.records import DeadLetter, parse_dead_letter
from delaytopic_gateway.client.raw_records import Coordinates
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_local.verifier.verdict import Fate, SourceRecord, Verdict, verify

pytestmark = pytest.mark.integration

GOOD = 300
REFUSED = 3
NOISE = random.Random(1).randbytes(30_000)
"""No codec makes it smaller."""


def test_records_that_became_too_large_for_the_target_are_dead_letters_and_all_others_arrive_once(
    route: Route,
) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    configure(route, route.target, "max.message.bytes", "20000")

    places = send_mixed(route, [Sent(b"key", NOISE)] * REFUSED)

    wait_until_done(relay, REFUSED)
    assert_exact(judged(route, places), REFUSED)
    letters = dead_letters(route)
    assert {(letter.partition, letter.offset) for letter in letters} == {(at.partition, at.offset) for at in places}
    assert {letter.reason for letter in letters} == {"too-large"}


@pytest.mark.nightly  # each day simulated brokers refuse records, and a real one those that are too large
def test_records_that_a_compacted_target_refuses_are_dead_letters_with_kafkas_words(make_route: MakeRoute) -> None:
    route = make_route()
    configure(route, route.target, "cleanup.policy", "compact")
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    places = send_mixed(route, [Sent(None, b"a compacted topic takes no record without a key", [], 1)] * REFUSED)

    wait_until_done(relay, REFUSED)
    assert_exact(judged(route, places), REFUSED)
    letters = dead_letters(route)
    assert {letter.reason for letter in letters} == {"refused-by-kafka"}
    assert all(route.target in letter.detail for letter in letters), letters


def test_a_record_that_the_dead_letter_topic_refuses_too_leaves_its_key_and_size_there(route: Route) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    configure(route, route.target, "max.message.bytes", "20000")
    configure(route, route.dead_letter, "max.message.bytes", "20000")

    places = send_mixed(route, [Sent(b"large", NOISE, [("a", b"1")])])

    wait_until_done(relay, 1)
    assert_exact(judged(route, places), 1)
    (record,) = route.read(route.dead_letter)
    (letter,) = dead_letters(route)
    assert (record.key, record.value, letter.omitted_bytes) == (b"large", None, 30_000)
    assert Coordinates(letter.topic, letter.partition, letter.offset) == places[0]


def configure(route: Route, topic: str, name: str, value: str) -> None:
    create_topics(route.servers.bootstrap_servers, [TopicPlan(topic, config={name: value})])


def send_mixed(route: Route, refused: list[Sent]) -> list[Coordinates]:
    """Good records before, beside and after some that Kafka will refuse; where these are."""
    due_ms = now_ms() + 500
    good = [Sent(b"%d" % number, b"good", [at(due_ms + number % 3 * 500)]) for number in range(GOOD)]
    bad = [record._replace(headers=[at(due_ms + 500), *record.headers]) for record in refused]
    middle = GOOD // 2
    where = produce(route.servers.bootstrap_servers, route.source, [*good[:middle], *bad, *good[middle:]])
    return where[middle : middle + len(bad)]


def wait_until_done(relay: RelayProcess, refused: int) -> None:
    """Until so many are delivered and refused as are to be; says what became of them otherwise."""

    def totals() -> tuple[int, int]:
        status = relay.status()
        return status["deliveredTotal"], status["deadLetteredTotal"]

    wait_for(lambda: sum(totals()) >= GOOD + refused, lambda: f"delivered and refused: {totals()}", timeout_s=30)


def judged(route: Route, refused: list[Coordinates]) -> Verdict:
    """The audit, which knows which records are to be dead letters."""
    sources: list[SourceRecord] = [
        replace(record, fate=Fate.DEAD_LETTER) if record.at in refused else record for record in route.source_records()
    ]
    return verify(sources, route.delivered(), route.dead_letters(), until_ms=now_ms())


def dead_letters(route: Route) -> list[DeadLetter]:
    letters = [parse_dead_letter(record.headers) for record in route.read(route.dead_letter)]
    return [letter for letter in letters if letter is not None]


def assert_exact(verdict: Verdict, refused: int) -> None:
    assert verdict.faults == {}
    assert (verdict.delivered, verdict.dead_lettered, verdict.pending) == (GOOD, refused, 0)
