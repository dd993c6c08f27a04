"""Records that cannot be delivered, each with its outcome; and good ones beside them, which lose nothing."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException
from tests.support.metrics_page import samples, value_of
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, ClientHeaders, Route
from tests.support.relay.routes import STEADY

from delaytopic_api.records import DeadLetter, DeadLetterReason, parse_dead_letter
from delaytopic_gateway.client.raw_records import Coordinates, RawRecord
from delaytopic_gateway.client.topics import TopicPlan, admin_client, create_topics, partitions_by_topic
from delaytopic_local.verifier.reading import read_delivered, read_source
from delaytopic_local.verifier.verdict import Fate, SourceRecord, Verdict, verify

pytestmark = pytest.mark.integration

SPEC = {"target": {"allowedTopics": ["*.other", "*.missing"]}, "schedule": {"maxDelay": "1h"}, "limits": STEADY}
DAY_MS = 86_400_000
NOW_MS = now_ms()
GOOD = 200


class Bad(NamedTuple):
    """Headers that no delivery follows from, and why not. A {name} in a value stands for that of the route."""

    reason: str
    headers: ClientHeaders


# A header whose name is not UTF-8 is not among them: no client library for Python can write one.
BAD: dict[str, Bad] = {
    "words": Bad("malformed-header", [("deliver-at", b"tomorrow")]),
    "empty": Bad("malformed-header", [("deliver-at", b"")]),
    "null": Bad("malformed-header", [("deliver-at", None)]),
    "negative": Bad("malformed-header", [("deliver-at", b"-1")]),
    "10^30": Bad("malformed-header", [("deliver-at", b"1" + b"0" * 30)]),
    "a megabyte of digits": Bad("malformed-header", [("deliver-at", b"9" * 900_000)]),
    "no offset": Bad("malformed-header", [("deliver-at", b"2026-11-21T14:01:26")]),
    "no such day": Bad("malformed-header", [("deliver-at", b"2026-02-30T00:00:00Z")]),
    "binary": Bad("malformed-header", [("deliver-at", b"\x00\xff\xfe")]),
    "other digits": Bad("malformed-header", [("deliver-at", "١٢٣".encode())]),
    "negative delay": Bad("malformed-header", [("deliver-after", b"-5s")]),
    "delay in days": Bad("malformed-header", [("deliver-after", b"5d")]),
    "one of two readable": Bad("malformed-header", [at(NOW_MS), ("deliver-after", b"soon")]),
    "the last of two": Bad("malformed-header", [at(NOW_MS), ("deliver-at", b"later")]),
    "unreadable expiry": Bad("malformed-header", [at(NOW_MS), ("deliver-expires-at", b"never")]),
    "empty id": Bad("malformed-header", [("deliver-id", b"")]),
    "null id": Bad("malformed-header", [("deliver-id", None)]),
    "long id": Bad("malformed-header", [("deliver-id", b"x" * 257)]),
    "no id to cancel": Bad("malformed-header", [("deliver-action", b"cancel")]),
    "no topic name": Bad("malformed-header", [("deliver-to", b"no topic/name")]),
    "year 9999": Bad("beyond-max-delay", [("deliver-at", b"9999-12-31T23:59:59Z")]),
    "year 9999 in digits": Bad("beyond-max-delay", [("deliver-at", b"253402300799999")]),
    "beyond maxDelay": Bad("beyond-max-delay", [at(NOW_MS + DAY_MS)]),
    "after beyond maxDelay": Bad("beyond-max-delay", [("deliver-after", b"1h1m")]),
    "cancel at a time": Bad("contradictory-headers", [("deliver-action", b"cancel"), ("deliver-id", b"c"), at(NOW_MS)]),
    "expires before due": Bad(
        "contradictory-headers", [at(NOW_MS + 60_000), ("deliver-expires-at", b"%d" % (NOW_MS + 59_999))]
    ),
    "unknown action": Bad("unknown-action", [("deliver-action", b"explode")]),
    "null action": Bad("unknown-action", [("deliver-action", None)]),
    "reserved": Bad("unsupported", [("deliver-window", b"09:00/17:00")]),
    "forbidden": Bad("forbidden-target", [("deliver-to", b"payments")]),
    "dead letters": Bad("forbidden-target", [("deliver-to", b"{name}.dlq")]),
    "missing": Bad("unknown-target", [("deliver-to", b"{name}.missing")]),
    "missing, later": Bad("unknown-target", [("deliver-to", b"{name}.missing"), ("deliver-after", b"3s")]),
    "expired": Bad("expired", [("deliver-at", b"1700000000000"), ("deliver-expires-at", b"1700000000001")]),
    "with headers of its own": Bad(
        "malformed-header", [("a", None), ("deliver-at", b"?"), ("a", b"\xff"), ("dead-letter-reason", b"of before")]
    ),
}


@dataclass
class Run:
    """One relay, with all of the above among good records. `places`: each case's coordinates on the source."""

    route: Route
    relay: RelayProcess
    places: dict[str, Coordinates]
    sources: dict[Coordinates, RawRecord]
    letters: dict[Coordinates, RawRecord]
    verdict: Verdict

    def letter(self, case: str) -> tuple[RawRecord, DeadLetter]:
        """The record on the dead-letter topic, and what the relay says in it."""
        record = self.letters[self.places[case]]
        said = parse_dead_letter(record.headers)
        assert said is not None
        return record, said


@pytest.fixture(scope="module")
def run(make_shared_route: MakeRoute) -> Run:
    route = make_shared_route(**SPEC)
    largest = largest_value(route)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    records = [Sent(b"key", b"value of " + case.encode(), _named(bad.headers, route)) for case, bad in BAD.items()]
    records += [Sent(b"key", largest)]
    good = [Sent(b"%d" % number, b"good", [at(now_ms() + number * 10)]) for number in range(GOOD)]
    mixed = [record for pair in zip(good, records, strict=False) for record in pair] + good[len(records) :]
    where = produce(route.servers.bootstrap_servers, route.source, mixed)
    places = dict(zip([*BAD, "too large"], where[1::2], strict=False))
    wait_for(lambda: _totals(relay) == (GOOD, len(records)), lambda: f"{_totals(relay)}")
    return _seen(route, relay, places)


def _named(headers: ClientHeaders, route: Route) -> ClientHeaders:
    def fill(value: str | bytes | None) -> str | bytes | None:
        return value.replace(b"{name}", route.name.encode()) if isinstance(value, bytes) else value

    return [(name, fill(value)) for name, value in headers]


def _totals(relay: RelayProcess) -> tuple[int, int]:
    status = relay.status()
    return status["deliveredTotal"], status["deadLetteredTotal"]


def _seen(route: Route, relay: RelayProcess, places: dict[str, Coordinates]) -> Run:
    raw = {record.at: record for record in route.read(route.source)}
    sources = _expected(raw, places["too large"], route)
    delivered = [read_delivered(record) for topic in (route.target, route.other) for record in route.read(topic)]
    verdict = verify(sources, delivered, route.dead_letters(), until_ms=now_ms())
    letters = {}
    for record in route.read(route.dead_letter):
        said = parse_dead_letter(record.headers)
        assert said is not None
        letters[Coordinates(said.topic, said.partition, said.offset)] = record
    return Run(route, relay, places, raw, letters, verdict)


def _expected(raw: dict[Coordinates, RawRecord], too_large: Coordinates, route: Route) -> list[SourceRecord]:
    """Return what the records ask for, as the audit reads them; sizes are not its business."""
    rules = route.rules()
    sources = [read_source(record, rules) for record in raw.values()]
    return [replace(record, fate=Fate.DEAD_LETTER) if record.at == too_large else record for record in sources]


def largest_value(route: Route) -> bytes:
    """The largest value that the source takes with the key `key`: found by asking a topic with the same limit.

    No codec makes it smaller.
    """
    servers, topic = route.servers.bootstrap_servers, f"{route.name}.sizes"
    create_topics(servers, [TopicPlan(topic)])
    fits, too_much = 1_048_000, 1_048_588
    value = random.Random(1).randbytes(too_much)
    while too_much - fits > 1:
        size = (fits + too_much) // 2
        try:
            produce(servers, topic, [Sent(b"key", value[:size])])
            fits = size
        except KafkaException:
            too_much = size
    return value[:fits]


@pytest.mark.parametrize("case", BAD)
def test_a_record_that_cannot_be_delivered_is_a_dead_letter_with_the_reason(run: Run, case: str) -> None:
    record, said = run.letter(case)
    source = run.sources[run.places[case]]

    assert (said.topic, said.partition, said.offset) == run.places[case]
    assert said.reason == BAD[case].reason
    assert "\n" not in said.detail
    assert 10 < len(said.detail) < 300, said.detail
    assert said.at_ms >= source.timestamp_ms
    assert (record.key, record.value) == (source.key, source.value)
    assert record.headers[:-4] == source.headers
    assert [name for name, _ in record.headers[-4:]] == [
        *("dead-letter-reason", "dead-letter-detail", "dead-letter-source", "dead-letter-at")
    ]


def test_a_record_that_its_receipt_makes_too_large_is_a_dead_letter_untouched(run: Run) -> None:
    record, said = run.letter("too large")
    source = run.sources[run.places["too large"]]

    assert said.reason == "too-large"
    assert "max.message.bytes" in said.detail
    assert said.omitted_bytes is None
    assert (record.key, record.value, record.headers[:-4]) == (source.key, source.value, source.headers)


def test_bad_records_cost_no_other_record_anything(run: Run) -> None:
    verdict = run.verdict

    assert verdict.faults == {}
    assert (verdict.delivered, verdict.dead_lettered, verdict.pending) == (GOOD, len(BAD) + 1, 0)
    assert [line for line in run.relay.log_lines() if line["event"] == "starting over"] == []


def test_dead_letters_are_counted_by_reason(run: Run) -> None:
    expected = dict.fromkeys(map(str, DeadLetterReason), 0) | {"too-large": 1}
    for bad in BAD.values():
        expected[bad.reason] += 1

    page = samples(run.relay)

    assert {
        dict(labels)["reason"]: value
        for (name, labels), value in page.items()
        if name == "delaytopic_dead_letter_records_total"
    } == expected
    assert value_of(page, "delaytopic_delivered_records_total") == GOOD


def test_a_topic_that_a_record_asks_for_in_vain_is_not_created_by_the_asking(run: Run) -> None:
    kafka = admin_client(run.route.servers.bootstrap_servers)

    topics = partitions_by_topic(kafka, run.route.servers.bootstrap_servers)

    assert f"{run.route.name}.missing" not in topics
    assert "payments" not in topics
