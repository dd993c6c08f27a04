"""A dialect that writes a tombstone and a copy with each delivery, through crashes: all three, or none of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from tests.support.relay.faults import pass_time
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute, Sent, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_gateway.client.raw_records import RawRecord

pytestmark = pytest.mark.integration

KILLS = 3
BATCH = 3_000


def send(route: Route, batch: int) -> list[tuple[int, bytes]]:
    """Produce schedules that are due within four seconds; tells where they are, and their ids."""
    names = [b"%d-%d" % (batch, number) for number in range(BATCH)]
    records = [
        Sent(
            name,
            b"v",
            [
                ("scheduler-epoch", b"%d" % (now_ms() // 1_000 + number % 4)),
                ("scheduler-target-topic", route.target.encode()),
                ("scheduler-target-key", name),
            ],
        )
        for number, name in enumerate(names)
    ]
    places = produce(route.servers.bootstrap_servers, route.source, records)
    return [(place.partition, name) for place, name in zip(places, names, strict=True)]


def named(records: Iterable[RawRecord]) -> Counter[bytes | None]:
    """Count records by the id of their schedule, which is a header of all that is written."""
    return Counter(dict(record.headers)["scheduler-key"] for record in records)


@pytest.mark.nightly  # each day simulated relays are killed amid them
@pytest.mark.takes_long("a successor waits for the session of each relay that is killed")
def test_p1_p2_a_delivery_its_tombstone_and_its_copy_are_there_once_each_when_relays_are_killed(
    make_route: MakeRoute,
) -> None:
    rng = random.Random(18)
    route = make_route({"cleanup.policy": "compact"}, schedule={"scheduler": {}})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    sent: list[tuple[int, bytes]] = []

    for kill in range(KILLS):
        sent += send(route, kill)
        pass_time(rng.uniform(0.2, 2.0))
        relay.kill()
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
    wait_for(lambda: relay.status()["pending"] == 0 and not relay.status()["ingestLag"], relay.why)
    wait_for(lambda: len(route.read(route.target)) >= len(sent), relay.why)

    delivered, copies = route.read(route.target), route.read(route.history)
    stones = [record for record in route.read(route.source) if record.value is None]
    once = Counter(name for _, name in sent)
    assert (named(delivered), named(copies)) == (once, once)
    assert Counter((stone.at.partition, stone.key) for stone in stones) == Counter(sent)
