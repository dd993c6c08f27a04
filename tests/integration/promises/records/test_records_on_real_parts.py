"""P1 to P3, P5 and P6 of a relay at work: one run for each guarantee and backend. P4 has `test_lateness`."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS, REDIS, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, ClientHeaders, Route

from delaytopic_api.records import Receipt
from delaytopic_gateway.client.raw_records import Coordinates, RawRecord
from delaytopic_local.verifier.reading import read_delivered, read_source
from delaytopic_local.verifier.verdict import DeliveredRecord, SourceRecord, Verdict, out_of_order, verify

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize(
        ("backend", "run"),
        [
            (REDIS, "ExactlyOnce"),
            (BUCKETS, "ExactlyOnce"),
            *(pytest.param(backend, "AtLeastOnce", marks=pytest.mark.nightly) for backend in (REDIS, BUCKETS)),
        ],
        indirect=True,
    ),
]

BACKLOG = 5_000
HOUR_MS = 3_600_000
LEADS_MS = (2_000, 10_000, 30_000)
ORDERED = 2_000
STEPS = 8
STEP_MS = 500

OLD_RECEIPT = b"1700000000000:0:7:1700000000001:elsewhere"
CONTENTS: list[tuple[bytes | None, bytes | None, ClientHeaders]] = [
    (b"key", b"value", []),
    (None, b"no key", []),
    (b"no value", None, []),
    (None, None, []),
    (b"", b"", []),
    (b"\xff\xfe\x00not utf-8", bytes(range(256)), []),
    (b"large", random.Random(3).randbytes(300_000), []),
    (b"k", b"same name again", [("twice", b"1"), ("other", b"2"), ("twice", b"1"), ("twice", b"3")]),
    (b"k", b"null and empty headers", [("null", None), ("empty", b""), ("null", None)]),
    (b"k", b"binary header", [("binary", bytes(range(256))), ("größe", "ü".encode())]),
    (b"k", b"delivered before", [("a", b"1"), ("delay-receipt", OLD_RECEIPT), ("b", b"2")]),
    (b"k", b"no receipt at all", [("delay-receipt", b"\x00garbage"), ("delay-receipt", None)]),
    (b"k", b"resembles", [("Deliver-At", b"1"), ("deliver-att", b"2"), ("deliver", b"3"), ("", b"no name")]),
    (b"k", b"dead letter sent again", [("dead-letter-reason", b"expired"), ("dead-letter-source", b"x:0:0")]),
    (b"k", b"many", [(f"h{number}", b"x" * 20) for number in range(100)]),
]
DELAYS_MS = (0, 700, 3_500)
"""At once, within the horizon of two seconds, and beyond it."""


@dataclass
class Run:
    """Records that one relay was given, and what it made of them."""

    caught_up_ms: int
    ordered: list[Coordinates]
    contents: list[Coordinates]
    status: dict[str, object]
    source: list[RawRecord]
    target: list[RawRecord]
    sources: list[SourceRecord]
    delivered: list[DeliveredRecord]
    verdict: Verdict


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, make_shared_route: MakeRoute) -> Iterator[Run]:
    target = {"partitioning": "SamePartition"}
    route = make_shared_route(guarantee=request.param, target=target, schedule={"maxDelay": "3h"})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    _store_far(route, relay)
    ordered, caught_up_ms = _send_ordered(route, relay)
    contents = _send_contents(route)
    total = len(ordered) + len(contents)
    wait_for(lambda: relay.status()["deliveredTotal"] >= total, relay.why)
    yield _seen(route, relay, (ordered, caught_up_ms), contents)
    route.stop_relays()


def _store_far(route: Route, relay: RelayProcess) -> None:
    rng, base_ms = random.Random(5), now_ms() + HOUR_MS
    far = [
        Sent(b"%d" % number, b"x" * 100, [at(base_ms + rng.randrange(HOUR_MS))], number % PARTITIONS)
        for number in range(BACKLOG)
    ]
    produce(route.servers.bootstrap_servers, route.source, far)
    wait_for(lambda: relay.status()["pending"] >= BACKLOG, relay.why)


def _send_ordered(route: Route, relay: RelayProcess) -> tuple[list[Coordinates], int]:
    """Few due times for many records, in no order; with a moment at which all are taken in and half are not yet due."""
    rng, places = random.Random(11), list[Coordinates]()
    # How long it takes until they are taken in is the machine's affair: they are sent further ahead until it does.
    for lead_ms in LEADS_MS:
        base_ms = now_ms() + lead_ms
        records = [
            Sent(b"%d" % number, b"ordered", [at(base_ms + STEP_MS * rng.randrange(STEPS))], number % PARTITIONS)
            for number in range(ORDERED)
        ]
        places += produce(route.servers.bootstrap_servers, route.source, records)
        wait_for(partial(_is_taken_in, relay, BACKLOG + len(places)), relay.why)
        if now_ms() < base_ms + STEP_MS * (STEPS // 2):
            return places, now_ms()
    raise AssertionError(f"{ORDERED} records were not taken in within {LEADS_MS[-1]} ms")


def _is_taken_in(relay: RelayProcess, records: int) -> bool:
    status = relay.status()
    return bool(status["pending"] + status["deliveredTotal"] >= records)


def _send_contents(route: Route) -> list[Coordinates]:
    moment_ms = now_ms()
    records = [
        Sent(key, value, [*headers[:1], at(moment_ms + delay_ms), *headers[1:]])
        for delay_ms in DELAYS_MS
        for key, value, headers in CONTENTS
    ]
    records += [Sent(key, value, headers) for key, value, headers in CONTENTS]
    return produce(route.servers.bootstrap_servers, route.source, records)


def _seen(
    route: Route,
    relay: RelayProcess,
    ordered: tuple[list[Coordinates], int],
    contents: list[Coordinates],
) -> Run:
    places, caught_up_ms = ordered
    source, target = route.read(route.source), route.read(route.target)
    rules = route.rules()
    sources, delivered = [read_source(record, rules) for record in source], list(map(read_delivered, target))
    return Run(
        caught_up_ms=caught_up_ms,
        ordered=places,
        contents=contents,
        status=relay.status(),
        source=source,
        target=target,
        sources=sources,
        delivered=delivered,
        verdict=verify(sources, delivered, route.dead_letters(), until_ms=now_ms()),
    )


def test_p1_p2_every_record_that_was_due_arrived_once_and_the_others_are_pending(run: Run) -> None:
    verdict = run.verdict

    assert verdict.faults == {}
    assert (verdict.pending, verdict.delivered) == (BACKLOG, len(run.source) - BACKLOG)
    assert run.status["pending"] == BACKLOG


def test_p3_no_record_is_early_by_the_clock_of_relay_and_broker(run: Run) -> None:
    due_ms = {record.at: record.due_ms for record in run.sources}

    assert [
        record.source for record in run.delivered if min(record.sent_ms, record.timestamp_ms) < due_ms[record.source]
    ] == []


def test_p5_each_source_partition_leaves_in_the_order_of_due_time_and_offset(run: Run) -> None:
    due_ms = {record.at: record.due_ms for record in run.sources}
    expected, found = defaultdict(list), defaultdict(list)
    # What is due before it is read goes at once, and has no order to keep.
    wanted = {place for place in run.ordered if due_ms[place] > run.caught_up_ms}
    for place in sorted(wanted, key=lambda place: (due_ms[place], place.offset)):
        expected[place.partition].append(place)
    for record in run.delivered:
        if record.source in wanted:
            found[record.source.partition].append(record.source)

    assert found == expected
    assert set(found) == set(range(PARTITIONS))
    assert out_of_order(run.sources, run.delivered, caught_up_ms=run.caught_up_ms) == ()


def test_same_partition_delivers_into_the_partition_that_a_record_came_from(run: Run) -> None:
    elsewhere = []
    for record in run.target:
        receipt = Receipt.parse(dict(record.headers)["delay-receipt"])
        if receipt.partition != record.at.partition:
            elsewhere.append(receipt)

    assert elsewhere == []


def test_p6_key_value_and_headers_arrive_byte_for_byte_with_one_receipt_behind_them(run: Run) -> None:
    before = {record.at: record for record in run.source}
    arrived = {}
    for record in run.target:
        receipt = Receipt.parse(record.headers[-1][1])
        arrived[Coordinates(receipt.topic, receipt.partition, receipt.offset)] = record

    for place in run.contents:
        sent, after = before[place], arrived[place]
        assert record_of(after) == (sent.key, sent.value, tuple(h for h in sent.headers if h[0] != "deliver-at"))
        assert after.headers[-1][0] == "delay-receipt"


def test_the_receipt_has_the_timestamp_that_the_record_had_in_the_source(run: Run) -> None:
    before = {record.at: record.timestamp_ms for record in run.source}
    receipts = [Receipt.parse(record.headers[-1][1]) for record in run.target]

    told = {Coordinates(each.topic, each.partition, each.offset): each.timestamp_ms for each in receipts}
    assert told == {place: before[place] for place in told}


def record_of(record: RawRecord) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
    """Key, value and headers without the last one."""
    return record.key, record.value, record.headers[:-1]
