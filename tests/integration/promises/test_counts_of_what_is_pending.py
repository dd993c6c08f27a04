"""The counts of what is pending, by relays on real servers, once records were cancelled and replaced."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.support.gateway.of_route import page_of
from tests.support.metrics_page import samples, value_of
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS, REDIS_NIGHTLY, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS

from delaytopic_gateway.client.relay_listing import ask_relay

pytestmark = [pytest.mark.integration, REDIS_NIGHTLY]


class Counts(NamedTuple):
    """Counts of a relay: all that waits, the withdrawn among it, and the number that its pages and metrics show."""

    waiting: int
    withdrawn: int
    listed: int
    metric: float


def counts_of(relay: RelayProcess) -> Counts:
    status, document = relay.status(), ask_relay(page_of(relay), {}).document
    assert document is not None
    metric = value_of(samples(relay), "delaytopic_pending_records")
    return Counts(status["pending"], status["withdrawn"], document.pending, metric)


def test_what_was_cancelled_or_replaced_is_not_counted_as_pending(make_route: MakeRoute, backend: str) -> None:
    # Given records beyond the horizon
    route = make_route()
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    later = at(now_ms() + 1_800_000)
    names = [("deliver-id", name.encode()) for name in ("cancelled", "cancelled too", "replaced", "kept")]
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"v", [later, name], 1) for name in names])
    wait_for(lambda: counts_of(relay) == Counts(4, 0, 4, 4), relay.why)

    # When two are cancelled, and one is replaced by an earlier record
    cancels = [Sent(b"k", None, [("deliver-action", b"cancel"), name], 1) for name in names[:2]]
    earlier = Sent(b"k", b"v", [at(now_ms() + 900_000), names[2]], 1)
    produce(route.servers.bootstrap_servers, route.source, [*cancels, earlier])

    # Then these are not counted
    wait_for(lambda: counts_of(relay) == Counts(5, 3, 2, 2), lambda: f"{counts_of(relay)} {relay.why()}")
    # And a relay that starts again counts them as far as it knows them
    assert relay.terminate() == 0
    relay.start().wait_until_delivering(PARTITIONS)
    known = 3 if backend == BUCKETS else 0
    wait_for(
        lambda: counts_of(relay) == Counts(5, known, 5 - known, 5 - known), lambda: f"{counts_of(relay)} {relay.why()}"
    )
