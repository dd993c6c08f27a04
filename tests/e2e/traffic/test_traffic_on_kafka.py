"""Sender and reader around a real relay: the reader agrees when all is well, and tells what is missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.traffic.plan import Plan
from tests.e2e.traffic.reader import Reader, Work, read
from tests.e2e.traffic.sender import Sender
from tests.e2e.traffic.verdict import Expected
from tests.support.route import Route, Servers

from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def route(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Route]:
    """A DelayTopic with a relay that runs."""
    directory = tmp_path_factory.mktemp("traffic")
    with KafkaServer(directory) as kafka, RedisServer(directory) as redis:
        route = Route(Servers(kafka.bootstrap_servers, redis.url), directory, "traffic")
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


def verdict(route: Route, run: str, records: int, patience_s: int = 20) -> dict[str, object]:
    expected = Expected(route.source, route.target, run, records)
    reader = Reader(route.servers.bootstrap_servers, expected)
    try:
        return read(reader, Work(expected, patience_s, quiet_s=1))
    finally:
        reader.close()


def test_all_that_was_sent_arrives_and_what_was_withdrawn_does_not(route: Route) -> None:
    plan = Plan("mixed", 400, per_second=200, delays_ms=(4_000, 8_000), cancel_every=10)

    said = sent(route, plan)
    found = verdict(route, "mixed", 400)

    assert (said["acknowledged"], said["errors"]) == (440, [])
    assert found["faults"] == {}
    assert (found["records"], found["arrived"], found["withdrawn"]) == (400, 360, 40)


def test_a_reader_gives_up_on_records_that_never_came(route: Route) -> None:
    sent(route, Plan("short", 2, delays_ms=(0, 0)))

    found = verdict(route, "short", 3, patience_s=3)

    assert found["faults"] == {"not_accepted": {"count": 1, "first": [2]}}
