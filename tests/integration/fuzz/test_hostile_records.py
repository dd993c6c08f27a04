"""Whatever a producer sends to a relay: what honest producers send beside it arrives, exactly once and never early."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import pytest
from playground.traffic.hostile import Assault, attack
from tests.support.fuzzing import peak_memory_bytes
from tests.support.relay.faults import DELAYS_MS, assert_exact
from tests.support.relay.process import wait_for
from tests.support.relay.records import BUCKETS, REDIS
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_local.verifier.verdict import SourceRecord, Verdict, verify

pytestmark = pytest.mark.integration

RATE = 100
HOSTILE_RATE = 200
MEMORY_LIMIT_BYTES = 512 << 20
"""The memory that the chart gives a relay (`operator.relayResources`)."""
SHORT = pytest.mark.takes_long("sends for seconds, and waits for all that is due in seconds")
LONG = [pytest.mark.nightly, pytest.mark.takes_long("half an hour of fuzzing, with its fellows")]
ASSAULTS = [
    pytest.param(REDIS, 6, marks=SHORT),
    *(pytest.param(backend, 300, marks=LONG) for backend in (REDIS, BUCKETS)),
]


def is_honest(record: SourceRecord) -> bool:
    """Tell the records of `Route.traffic`, which are numbered."""
    return any(name == "n" for name, _ in record.sent_headers)


def verdict_of_the_honest(route: Route, honest: list[SourceRecord]) -> Verdict:
    """Judge them alone: what becomes of the others is told by their counts."""
    places = {record.at for record in honest}
    delivered = [record for record in route.delivered() if record.source in places]
    letters = [letter for letter in route.dead_letters() if letter.source in places]
    return verify(honest, delivered, letters, until_ms=time.time_ns() // 1_000_000)


@pytest.mark.parametrize(("backend", "seconds"), ASSAULTS, indirect=["backend"])
def test_no_record_stops_a_relay_or_touches_another_record(
    route: Route, seconds: int, record_property: Callable[[str, object], None]
) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    assault = Assault(seconds, HOSTILE_RATE, (route.source, route.dead_letter, "__consumer_offsets"))

    with route.traffic(RATE, DELAYS_MS):
        sent = attack(route.servers.bootstrap_servers, route.source, assault)

    honest = [record for record in route.source_records() if is_honest(record)]
    wait_for(lambda: not verdict_of_the_honest(route, honest).lost, relay.why)
    times = Counter(each.source for each in route.delivered()) + Counter(each.source for each in route.dead_letters())
    record_property("hostile", {**sent, "peak_memory_bytes": peak_memory_bytes(relay.child.pid)})
    assert_exact(verdict_of_the_honest(route, honest))
    assert (sent["records"] > 0, sent["unsent"], max(times.values()), relay.exit_code()) == (True, 0, 1, None)
    assert peak_memory_bytes(relay.child.pid) < MEMORY_LIMIT_BYTES
