"""Replace and cancel by id, near and far: one run, seen case by case."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.support.metrics_page import samples, value_of
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, ClientHeaders, Route

from delaytopic_local.verifier.verdict import Verdict

pytestmark = [pytest.mark.integration, BUCKETS_NIGHTLY]

MANY = 1_000
HORIZON = "5s"
NEAR_MS, FAR_MS = 4_000, 8_000
"""Within the horizon, and beyond it, in the backlog; a busy machine has this long to take in both commands of a
pair.
"""
DELIVERED = {
    "many near": [b"%d" % (MANY - 1)],
    "many far": [b"%d" % (MANY - 1)],
    "postponed": [b"new"],
    "brought forward": [b"new"],
    "cancelled near": [],
    "cancelled far": [],
    "cancelled and asked for again": [b"new"],
    "replaced by a record that is malformed": [b"old"],
    "one id in two partitions": [b"other partition"],
    "cancelled too late": [b"old"],
    "used again after its delivery": [b"new", b"old"],
}


def schedule(case: str, value: bytes, due_ms: int, partition: int = 0) -> Sent:
    return Sent(b"key", value, [("case", case), ("deliver-id", case), at(due_ms)], partition)


def cancel(case: str) -> Sent:
    headers: ClientHeaders = [("case", case), ("deliver-id", case), ("deliver-action", b"cancel")]
    return Sent(b"key", None, headers, 0)


def commands(base_ms: int) -> list[Sent]:
    """Return all commands but those that need a delivery before them."""
    near_ms, far_ms = base_ms + NEAR_MS, base_ms + FAR_MS
    bad = Sent(b"key", b"bad", [("deliver-id", b"replaced by a record that is malformed"), ("deliver-at", b"?")], 0)
    return [
        *(schedule("many near", b"%d" % number, near_ms) for number in range(MANY)),
        *(schedule("many far", b"%d" % number, far_ms) for number in range(MANY)),
        *(schedule("postponed", b"old", near_ms), schedule("postponed", b"new", far_ms)),
        *(schedule("brought forward", b"old", far_ms), schedule("brought forward", b"new", near_ms)),
        *(schedule("cancelled near", b"old", near_ms), cancel("cancelled near")),
        *(schedule("cancelled far", b"old", far_ms), cancel("cancelled far")),
        schedule("cancelled and asked for again", b"old", near_ms),
        cancel("cancelled and asked for again"),
        schedule("cancelled and asked for again", b"new", near_ms),
        *(schedule("replaced by a record that is malformed", b"old", near_ms), bad),
        schedule("one id in two partitions", b"other partition", near_ms, partition=1),
        schedule("one id in two partitions", b"old", near_ms),
        cancel("one id in two partitions"),
        *(schedule(case, b"old", base_ms) for case in ("cancelled too late", "used again after its delivery")),
    ]


@dataclass
class Run:
    """Values that arrived, by case; counters of the relay; and the audit."""

    delivered: dict[str, list[bytes | None]]
    status: dict[str, object]
    too_late: float
    verdict: Verdict


@pytest.fixture(scope="module")
def run(make_shared_route: MakeRoute) -> Run:
    route = make_shared_route(limits={"horizon": HORIZON})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    servers = route.servers.bootstrap_servers
    base_ms = now_ms()
    produce(servers, route.source, commands(base_ms))
    wait_for(lambda: delivered_total(relay) >= 2)
    late = [cancel("cancelled too late"), schedule("used again after its delivery", b"new", base_ms + FAR_MS)]
    produce(servers, route.source, late)
    expected = sum(map(len, DELIVERED.values()))
    wait_for(lambda: delivered_total(relay) >= expected and relay.status()["pending"] == 0)
    return _seen(route, relay)


def delivered_total(relay: RelayProcess) -> int:
    total: int = relay.status()["deliveredTotal"]
    return total


def _seen(route: Route, relay: RelayProcess) -> Run:
    delivered: dict[str, list[bytes | None]] = {case: [] for case in DELIVERED}
    for record in route.read(route.target):
        delivered[(dict(record.headers)["case"] or b"").decode()].append(record.value)
    too_late = value_of(samples(relay), "delaytopic_cancels_too_late_total")
    return Run(delivered, relay.status(), too_late, route.verdict())


@pytest.mark.parametrize("case", DELIVERED)
def test_of_an_id_the_latest_command_wins(run: Run, case: str) -> None:
    assert sorted(run.delivered[case], key=bytes) == DELIVERED[case]  # type: ignore[arg-type]


def test_what_did_not_arrive_is_counted_as_superseded_or_cancelled(run: Run) -> None:
    replaced = 2 * (MANY - 1) + 2
    cancelled = 4

    assert (run.status["supersededTotal"], run.status["cancelledTotal"]) == (replaced, cancelled)
    assert run.too_late == 1


def test_p1_p2_nothing_is_lost_or_twice_among_replaced_and_cancelled_records(run: Run) -> None:
    assert run.verdict.faults == {}
    assert run.verdict.pending == 0
    assert run.status["deadLetteredTotal"] == 1
