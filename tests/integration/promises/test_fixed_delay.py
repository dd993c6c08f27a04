"""A DelayTopic with one delay for all: source order is due order, and the relay reads on in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest
from tests.support.metrics_page import histogram_between, quantile_bound, samples
from tests.support.on_time import rounds_until_on_time
from tests.support.records import MakeRoute, Sent, at, produce
from tests.support.relay_process import RelayProcess, wait_for
from tests.support.route import LOG_APPEND_TIME, PARTITIONS, Route

from delaytopic_cli.audit import Coordinates

pytestmark = pytest.mark.integration

DELAY = "4s"
RECORDS = 20_000
AT_ONCE = 5_000
"""All due at nearly one moment: few enough that a machine with other work, too, has the capacity."""
P99_S = 1.0


def fixed_route(make_route: MakeRoute, delay: str = DELAY) -> Route:
    """More delay than horizon: whatever is sent quickly waits on the source, not in memory."""
    return make_route(
        LOG_APPEND_TIME,
        schedule={"delay": delay},
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


def assert_exact(route: Route, places: Sequence[Coordinates]) -> None:
    verdict = route.settled_verdict()
    assert verdict.faults == {}
    assert (verdict.delivered, verdict.pending) == (len(places), 0)
    for offsets in in_order_of_arrival(route).values():
        assert offsets == sorted(offsets)


def test_p1_p2_p3_p4_p5_each_record_leaves_its_delay_after_its_append_in_order_while_reading_pauses(
    make_route: MakeRoute,
) -> None:
    route = fixed_route(make_route)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    places: list[Coordinates] = []

    def late_s() -> float:
        before = samples(relay)
        places.extend(send_and_wait(route, relay, len(places)))
        return quantile_bound(histogram_between(before, samples(relay), "delaytopic_lateness_seconds"), 0.99)

    on_time, rounds = rounds_until_on_time(late_s, lambda seconds: seconds <= P99_S)

    assert_exact(route, places)
    assert on_time, rounds
    status = relay.status()
    assert (status["pending"], status["ingestLag"]) == (0, 0)


def send_and_wait(route: Route, relay: RelayProcess, delivered: int) -> list[Coordinates]:
    """More records than are read at once, until all are delivered; `delivered` were before."""
    places = send(route, AT_ONCE)
    wait_for(lambda: relay.shards("Paused") == set(range(PARTITIONS)))
    behind = relay.status()["ingestLag"]
    wait_for(lambda: relay.status()["deliveredTotal"] >= delivered + AT_ONCE)
    assert behind > 0, "all was read at once, though reading was to pause"
    return places


def test_p1_p2_p3_p5_nothing_is_lost_twice_early_or_out_of_order_when_the_relay_is_killed(
    make_route: MakeRoute,
) -> None:
    route = fixed_route(make_route)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    places = send(route, RECORDS // 2)
    wait_for(lambda: relay.status()["deliveredTotal"] > 0)
    relay.kill()
    places += send(route, RECORDS // 2)
    route.start_relay()

    assert_exact(route, places)


def test_a_record_with_a_time_of_its_own_is_a_dead_letter_and_keeps_nobody_waiting(make_route: MakeRoute) -> None:
    route = fixed_route(make_route, delay="1s")
    route.start_relay().wait_until_delivering(PARTITIONS)
    headers = [at(1), ("deliver-after", b"1s"), ("deliver-id", b"i"), ("deliver-action", b"schedule")]

    bad = produce(
        route.servers.bootstrap_servers, route.source, [Sent(b"k", header[1], [header], 0) for header in headers]
    )
    good = produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"good", [], 0)])

    wait_for(lambda: len(route.delivered()) == len(good))
    letters = route.dead_letters()
    assert {(letter.source, letter.reason) for letter in letters} == {(place, "contradictory-headers") for place in bad}
    assert [record.source for record in route.delivered()] == good
