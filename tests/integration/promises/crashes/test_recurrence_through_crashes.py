"""Records that recur on real servers: each slot once, whatever is killed, and none after its cancel."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from tests.support.relay.faults import pass_time
from tests.support.relay.process import wait_for
from tests.support.relay.records import BOTH_BACKENDS, MakeRoute, Sent, produce
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_api.records import OCCURRENCE, RECEIPT, RESTATED, Receipt
from delaytopic_gateway.client.raw_records import RawRecord

pytestmark = pytest.mark.integration

KEY = b"shop"
CHAINS, CANCELLED, COUNT, KILLS = 200, 40, 6, 2


def name_of(chain: int) -> bytes:
    return b"chain-%d" % chain


def every_two_seconds(chain: int) -> Sent:
    headers = [("deliver-id", name_of(chain)), ("deliver-every", b"2s"), ("deliver-count", b"%d" % COUNT)]
    return Sent(KEY, name_of(chain), [*headers, ("deliver-missed", b"All"), ("deliver-catch-up", b"1h")])


def a_cancel(chain: int) -> Sent:
    return Sent(KEY, None, [("deliver-id", name_of(chain)), ("deliver-action", b"cancel")])


def send(route: Route, records: list[Sent]) -> set[int]:
    """Produce records; tells in which partitions they are."""
    return {place.partition for place in produce(route.servers.bootstrap_servers, route.source, records)}


def by_chain(delivered: list[RawRecord]) -> dict[bytes, list[tuple[int, int]]]:
    """Return number and slot of each delivery, by chain, in their order."""
    found: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for record in delivered:
        number, _, slot = (dict(record.headers)[OCCURRENCE] or b"").partition(b":")
        found[record.value or b""].append((int(number), int(slot)))
    return found


@pytest.mark.nightly  # each day simulated relays are killed amid them
@pytest.mark.takes_long("a successor waits for the session of each relay that is killed")
@BOTH_BACKENDS
def test_p1_p2_p3_each_slot_is_delivered_once_when_relays_are_killed(make_route: MakeRoute, backend: str) -> None:
    rng = random.Random(52)
    route = make_route()
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    # Given records that recur
    partitions = send(route, [every_two_seconds(chain) for chain in range(CHAINS)])
    wait_for(lambda: len(route.read(route.target)) >= CHAINS, relay.why)

    # When relays are killed amid them, and some are cancelled
    for _ in range(KILLS):
        pass_time(rng.uniform(0.5, 2.5))
        relay.kill()
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
    send(route, [a_cancel(chain) for chain in range(CANCELLED)])
    whole = {name_of(chain) for chain in range(CANCELLED, CHAINS)}
    wait_for(lambda: all(len(by_chain(route.read(route.target))[name]) >= COUNT for name in whole), relay.why)
    wait_for(lambda: relay.status()["pending"] == 0 and not relay.status()["ingestLag"], relay.why)

    delivered = route.read(route.target)
    for name, occurrences in by_chain(delivered).items():
        first_ms = occurrences[0][1]
        most = COUNT if name in whole else len(occurrences)
        assert occurrences == [(number + 1, first_ms + 2_000 * number) for number in range(most)], name
    receipts = [Receipt.parse(dict(record.headers)[RECEIPT]) for record in delivered]
    assert [receipt for receipt in receipts if receipt.sent_ms < receipt.due_ms] == []
    written = [record for record in route.read(route.source) if RESTATED in dict(record.headers)]
    assert {record.at.partition for record in written} == partitions


def test_what_recurs_in_kaspr_is_delivered_by_its_rule_until_it_is_cancelled(make_route: MakeRoute) -> None:
    route = make_route(schedule={"kaspr": {}})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    name = ("x-scheduler-request-id", b"report")
    rule = [("x-scheduler-cron-expr", b"* * * * * *"), ("x-scheduler-deliver-to", route.target.encode())]

    send(route, [Sent(KEY, b"every second", [("x-scheduler-action", b"CRON_ADD"), name, *rule])])
    wait_for(lambda: len(route.read(route.target)) >= 2, relay.why)
    send(route, [Sent(KEY, None, [("x-scheduler-action", b"CRON_CANCEL"), name])])
    wait_for(lambda: relay.status()["pending"] == 0 and not relay.status()["ingestLag"], relay.why)

    [occurrences] = by_chain(route.read(route.target)).values()
    first_ms = occurrences[0][1]
    assert occurrences == [(number + 1, first_ms + 1_000 * number) for number in range(len(occurrences))]
