"""Records as other services' clients produce them, on real parts: each becomes what its service makes of it.

`tests/unit/relay/dialects/test_conformance.py` runs the same tables on a Kafka in memory.
"""

from __future__ import annotations

import pytest
from tests.support.relay.dialects.table import Beside, Origin, Seen, Stage, beside_of, seen
from tests.support.relay.dialects.tables import TABLES
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute, Sent, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route
from tests.support.relay.routes import STEADY

pytestmark = pytest.mark.integration


def records_seen(route: Route) -> list[Seen]:
    """Return all that was delivered and dead-lettered."""
    topics = (route.target, route.other, route.dead_letter)
    return [seen(topic, record.key, record.value, record.headers) for topic in topics for record in route.read(topic)]


def records_beside(route: Route, produced: int) -> list[Beside]:
    """Return what was written with the deliveries: into the source, behind what was produced, and into the history."""
    stones = [record for record in route.read(route.source) if record.at.offset >= produced]
    copies = route.read(route.history) if route.config().history is not None else []
    return [
        beside_of(record.at.topic, record.at.partition, record.key, record.value, [*record.headers])
        for record in (*stones, *copies)
    ]


EVERY_DAY = ("BlackBox", "Scheduler", "Redelivery")
"""One dialect for each step beside a delivery: none, tombstones and copies, records that are put off. All tables run in
memory every day: what they differ in are pure steps.
"""


@pytest.mark.parametrize(
    "dialect", [pytest.param(name, marks=[] if name in EVERY_DAY else [pytest.mark.nightly]) for name in TABLES]
)
def test_each_record_becomes_what_its_service_makes_of_it(dialect: str, make_route: MakeRoute) -> None:
    table = TABLES[dialect]
    route = make_route(schedule=table.schedule, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    cases = table.cases(Stage(now_ms(), route.target, route.other, route.source, route.history))
    records = [Sent(case.produced.key, case.produced.value, [*case.produced.headers], 0) for case in cases.values()]
    places = dict(zip(cases, produce(route.servers.bootstrap_servers, route.source, records), strict=True))
    timestamps = {record.at: record.timestamp_ms for record in route.read(route.source)}

    def origin(what: str, sent_ms: int) -> Origin:
        place = places[what]
        return Origin(route.source, place.partition, place.offset, timestamps[place], sent_ms)

    ends = sum(case.outcome(origin(what, 0)) is not None for what, case in cases.items())
    wait_for(lambda: relay.status()["deliveredTotal"] + relay.status()["deadLetteredTotal"] >= ends, relay.why)
    found = {(one.partition, one.offset): one for one in records_seen(route)}

    nobody = Seen(0, 0, 0, None)
    outcomes = {what: found.get((place.partition, place.offset), nobody) for what, place in places.items()}
    assert {what: one.outcome for what, one in outcomes.items()} == {
        what: cases[what].outcome(origin(what, one.sent_ms)) for what, one in outcomes.items()
    }
    assert len(found) == ends
    beside = [each for what, one in outcomes.items() for each in cases[what].beside(origin(what, one.sent_ms))]
    assert sorted(records_beside(route, len(cases)), key=str) == sorted(beside, key=str)
