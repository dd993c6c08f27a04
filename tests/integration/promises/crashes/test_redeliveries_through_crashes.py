"""Markers of a message queue on real parts, through crashes: what nobody ends comes back, once, and nothing else."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.support.relay import markers
from tests.support.relay.faults import pass_time
from tests.support.relay.process import wait_for
from tests.support.relay.records import BOTH_BACKENDS, MakeRoute, Sent, produce
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_api.records import ENDED, RECEIPT, RESTATED, Receipt
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_relay.dialects.redelivery import COUNT

pytestmark = pytest.mark.integration

MESSAGES = 400
SOON_MS, LATER_MS = 5_000, 1_800_000
ABANDONED, ENDED_LATER, FAILED, KEPT = ([*range(kind, MESSAGES, 4)] for kind in range(4))
"""Messages of whose consumer nothing more is heard, that it ends, that it sends back, and that it goes on with."""


def queue(message: int) -> bytes:
    """Return the id of a message's queue, which decides the partition of its markers."""
    return b"queue-%d" % (message % 7)


def start(message: int, after_ms: int) -> Sent:
    """Return the marker of a message that is begun with."""
    value = markers.start(0, message, after_ms, queue(message), b"payload %d" % message)
    return Sent(queue(message), value, [("trace", b"%d" % message)])


def with_header(records: list[RawRecord], name: str) -> list[RawRecord]:
    """Return the records that have a header of this name."""
    return [record for record in records if any(found == name for found, _ in record.headers)]


def receipt_of(record: RawRecord) -> Receipt:
    """Return the receipt of a delivery."""
    name, text = record.headers[-1]
    assert name == RECEIPT
    return Receipt.parse(text)


def send(route: Route, records: list[Sent]) -> None:
    """Produce markers."""
    produce(route.servers.bootstrap_servers, route.source, records)


@pytest.mark.nightly  # each day simulated relays are killed amid them
@pytest.mark.takes_long("a successor waits for the session of each relay that is killed")
@BOTH_BACKENDS
def test_p1_p2_p3_what_nobody_ends_comes_back_once_when_relays_are_killed(make_route: MakeRoute, backend: str) -> None:
    rng = random.Random(20)
    route = make_route(schedule={"redelivery": {}})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    # Given messages that are begun with, most of them kept alive
    begun = {message: [start(message, SOON_MS)] for message in range(MESSAGES)}
    for message in (*ENDED_LATER, *FAILED, *KEPT):
        begun[message].append(Sent(queue(message), markers.keep_alive(0, message, LATER_MS)))
    send(route, [record for records in begun.values() for record in records])
    kept = len(ENDED_LATER) + len(FAILED) + len(KEPT)
    wait_for(lambda: relay.status()["pending"] >= kept and not relay.status()["ingestLag"], relay.why)

    # When relays are killed about the time at which these are put off
    for _ in range(2):
        relay.kill()
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
        pass_time(rng.uniform(0.0, 1.5))
    wait_for(lambda: len(with_header(route.read(route.source), RESTATED)) >= kept, relay.why)

    # And some are ended, some are sent back, and a relay is killed once more
    send(route, [Sent(queue(message), markers.end(0, message)) for message in ENDED_LATER])
    send(route, [start(message, 0) for message in FAILED])
    relay.kill()
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    back = Counter(b"payload %d" % message for message in (*ABANDONED, *FAILED))
    wait_for(lambda: len(route.read(route.target)) >= back.total(), relay.why)
    wait_for(lambda: relay.status()["pending"] >= len(KEPT) and not relay.status()["ingestLag"], relay.why)

    delivered, source = route.read(route.target), route.read(route.source)
    assert Counter(record.value for record in delivered) == back
    assert {dict(record.headers)[COUNT] for record in delivered} == {b"1"}
    assert [record.key for record in delivered] == [
        queue(int(dict(record.headers)["trace"] or 0)) for record in delivered
    ]
    assert Counter(record.value for record in with_header(source, ENDED)) == Counter(
        markers.end(0, message) for message in (*ABANDONED, *FAILED)
    )
    assert len(with_header(source, RESTATED)) == kept
    assert [receipt for record in delivered if (receipt := receipt_of(record)).sent_ms < receipt.due_ms] == []
