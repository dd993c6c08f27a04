"""A DelayTopic with one delay for all: source order is due order, and the relay reads on in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest
from tests.support.relay import faults
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute, Sent, produce
from tests.support.relay.route import LOG_APPEND_TIME, PARTITIONS, Route

from delaytopic_gateway.client.raw_records import Coordinates

pytestmark = pytest.mark.integration

RECORDS = 10_000


def fixed_route(make_route: MakeRoute, delay: str) -> Route:
    """More delay than horizon: whatever is sent quickly waits on the source, not in memory."""
    return make_route(
        LOG_APPEND_TIME,
        schedule={"fixedDelay": delay},
        target={"partitioning": "SamePartition"},
        limits={"horizon": "1s"},
    )


def send(route: Route, count: int) -> list[Coordinates]:
    records = [Sent(b"%d" % (number % 97), b"x" * 100, [("n", b"%d" % number)]) for number in range(count)]
    return produce(route.servers.bootstrap_servers, route.source, records)


def in_order_of_arrival(route: Route) -> dict[int, list[int]]:
    """Source offsets by shard, as a reader of the target sees them."""
    arrived = defaultdict(list)
    for record in route.delivered():
        arrived[record.source.partition].append(record.source.offset)
    return arrived


def assert_exact_and_in_order(route: Route, places: Sequence[Coordinates]) -> None:
    verdict = route.settled_verdict()
    faults.assert_exact(verdict)
    assert verdict.delivered == len(places)
    for offsets in in_order_of_arrival(route).values():
        assert offsets == sorted(offsets)


@pytest.mark.nightly  # each day simulated relays are killed, and a burst waits on the source
def test_p1_p2_p3_p5_nothing_is_lost_twice_early_or_out_of_order_when_the_relay_is_killed_after_reading_paused(
    make_route: MakeRoute,
) -> None:
    route = fixed_route(make_route, "4s")
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    places = send(route, RECORDS)
    wait_for(lambda: relay.shards("Paused") == set(range(PARTITIONS)), relay.why)
    read = relay.read()
    wait_for(lambda: relay.status()["deliveredTotal"] > 0, relay.why)
    relay.kill()
    places += send(route, RECORDS)
    route.start_relay()

    assert read < RECORDS, "all was read at once, though reading was to pause"
    assert_exact_and_in_order(route, places)
