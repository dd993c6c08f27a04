"""A producer that leaves a transaction open on the source: what it holds back is named, and delivered once it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.harness.names import unique
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import MakeRoute, Sent, produce
from tests.support.relay.route import LOG_APPEND_TIME, PARTITIONS, Route

pytestmark = [
    pytest.mark.integration,
    pytest.mark.takes_long("a relay looks twice, five seconds apart, before it calls a transaction open"),
]

BEHIND = 20
END = {"aborted": Producer.abort_transaction, "committed": Producer.commit_transaction}


@pytest.fixture
def hanging(make_route: MakeRoute) -> Iterator[tuple[Route, Producer]]:
    """A route, and a producer that has a record of its partition 0 in a transaction."""
    route = make_route(LOG_APPEND_TIME)
    writer = Producer(
        {
            "bootstrap.servers": route.servers.bootstrap_servers,
            "transactional.id": unique("writer"),
            "transaction.timeout.ms": 600_000,
        }
    )
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(route.source, b"in the transaction", partition=0)
    writer.flush(30)
    yield route, writer
    writer.purge()


def told_by(relay: RelayProcess) -> dict[str, Any] | None:
    """Return what the status says of the transaction in partition 0."""
    shards = {shard["partition"]: shard for shard in relay.status()["shards"]}
    return shards[0].get("openTransaction") if 0 in shards else None


@pytest.mark.parametrize("ending", ["committed", pytest.param("aborted", marks=pytest.mark.nightly)])
def test_p1_p2_a_transaction_that_is_left_open_is_named_and_what_it_held_back_is_delivered_when_it_ends(
    hanging: tuple[Route, Producer], ending: str
) -> None:
    route, writer = hanging
    end: Callable[[Producer, float], None] = END[ending]
    others = [Sent(b"k", b"%d" % number, [], 0) for number in range(BEHIND)]
    produce(route.servers.bootstrap_servers, route.source, others)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    told = wait_for(lambda: told_by(relay), relay.why)
    held, lag = {name: told[name] for name in ("offset", "heldBack")}, relay.status()["ingestLag"]
    metrics = relay.get("/metrics")
    end(writer, 30)
    wait_for(lambda: told_by(relay) is None, relay.why)
    wait_for(lambda: len(route.delivered()) == BEHIND + (ending == "committed"), relay.why)

    assert (held, lag) == ({"offset": 0, "heldBack": BEHIND + 1}, 0)
    labels = f'{{delaytopic_name="{route.name}",delaytopic_namespace="tests",partition="0"}}'
    assert f"delaytopic_open_transaction_seconds{labels}" in metrics
