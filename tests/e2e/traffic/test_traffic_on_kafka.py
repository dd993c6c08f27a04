"""Sender and reader around a real relay: the reader agrees when all is well, and names what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.e2e.traffic.plan import Plan
from tests.e2e.traffic.reader import Reader, Work, read
from tests.e2e.traffic.sender import Sender
from tests.e2e.traffic.verdict import Expected
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.relay.route import Route, Servers

pytestmark = pytest.mark.integration

SETTLE_MS = 60_000
"""Longer than any delay here: for each cancel both outcomes are right, however late the relay takes it in."""


@pytest.fixture(scope="module")
def route(kafka: KafkaAddress, redis: RedisAddress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Route]:
    """A DelayTopic with a relay that runs."""
    servers = Servers(kafka.bootstrap_servers, redis.url)
    route = Route(servers, tmp_path_factory.mktemp("traffic"), unique("traffic"))
    route.dead_letter = f"{route.source}.dlq"
    route.spec = {"deadLetter": {"topic": route.dead_letter}}
    route.create_topics(**{"message.timestamp.type": "LogAppendTime"})
    try:
        route.start_relay().wait_until_delivering(4)
        yield route
    finally:
        route.stop_relays()


def sent(route: Route, plan: Plan) -> dict[str, object]:
    return Sender(route.servers.bootstrap_servers, route.source, plan).run()


def expected(route: Route, run: str, records: int) -> Expected:
    return Expected(route.source, route.target, run, records, SETTLE_MS)


def reading(route: Route, run: str) -> closing[Reader]:
    return closing(Reader(route.servers.bootstrap_servers, expected(route, run, 0)))


def test_all_that_was_sent_arrives_or_was_withdrawn(route: Route) -> None:
    plan = Plan("mixed", 400, delays_ms=(500, 2_500), cancel_every=10, cancel_after_ms=0)

    said = sent(route, plan)
    with reading(route, "mixed") as reader:
        found = read(reader, Work(expected(route, "mixed", 400), quiet_s=1))

    assert (said["acknowledged"], said["errors"]) == (440, [])
    assert found["faults"] == {}
    assert (found["records"], found["arrived"] + found["withdrawn"]) == (400, 400)
    assert found["withdrawn"] <= 40


def test_a_reader_gives_up_on_records_that_never_came(route: Route) -> None:
    sent(route, Plan("short", 2, delays_ms=(0, 0)))
    with reading(route, "short") as reader:
        read(reader, Work(expected(route, "short", 2), quiet_s=0))

        found = read(reader, Work(expected(route, "short", 3), patience_s=0))

    assert found["faults"] == {"not_accepted": {"count": 1, "first": [2]}}
