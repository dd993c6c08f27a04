"""Answers to cancels from the outcomes that a relay writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.relay.process import wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute
from tests.support.relay.route import PARTITIONS, Servers
from tests.support.relay.routes import making_routes

from delaytopic.client import Cancelled, DelayedTopic, NotPending, Outcome, Outcomes, Place, TooLate
from delaytopic_api.relay import Ending
from delaytopic_gateway.client.topics import TopicPlan, create_topics

pytestmark = [pytest.mark.integration, BUCKETS_NIGHTLY]


@pytest.fixture
def make_route(kafka: KafkaAddress, redis: RedisAddress, backend: str, tmp_path: Path) -> Iterator[MakeRoute]:
    with making_routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path, backend) as make:
        yield make


def test_a_cancel_is_told_whether_it_won_came_too_late_or_met_nothing(make_route: MakeRoute) -> None:
    # Given one record for later, and one that was delivered
    route = make_route(outcomes={})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    settings = {"bootstrap.servers": route.servers.bootstrap_servers}
    producer, outcomes = Producer(settings), Outcomes(settings, route.outcomes)
    delayed = DelayedTopic(producer, route.source, outcomes=outcomes, requested_by="ann")
    later = delayed.schedule(b"later", id="later", after=timedelta(minutes=30))
    delayed.schedule(b"now", id="now", after=timedelta())
    producer.flush(30)
    (arrived,) = wait_for(lambda: route.read(route.target), relay.why)

    won, late, nothing = (delayed.cancel(name, timeout=30).result() for name in ("later", "now", "nobody"))
    outcomes.close()

    assert isinstance(won, Cancelled)
    assert (won.outcome.source, won.outcome.requested_by) == (later.place, "ann")
    assert isinstance(late, TooLate)
    assert late.outcome is not None
    assert late.outcome.target == Place(route.target, arrived.at.partition, arrived.at.offset)
    assert isinstance(nothing, NotPending)
    assert (nothing.before, nothing.whole) == (None, True)


def test_what_waited_before_outcomes_were_asked_for_is_told_when_it_ends(make_route: MakeRoute) -> None:
    # Given records that a relay without outcomes has taken in
    route = make_route()
    create_topics(route.servers.bootstrap_servers, [TopicPlan(route.outcomes, PARTITIONS)])
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    settings = {"bootstrap.servers": route.servers.bootstrap_servers}
    producer, outcomes = Producer(settings), Outcomes(settings, route.outcomes)
    delayed = DelayedTopic(producer, route.source, outcomes=outcomes)
    later = delayed.schedule(b"later", id="later", after=timedelta(minutes=30))
    soon = delayed.schedule(b"soon", id="soon", after=timedelta(seconds=6))
    producer.flush(30)
    wait_for(lambda: relay.read() == 2, relay.why)

    # When they are asked for, and one record is cancelled while the other is delivered
    assert relay.terminate() == 0
    route.spec["outcomes"] = {}
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    won = delayed.cancel("later", timeout=30).result()
    outcomes.close()
    told = wait_for(lambda: len(found := route.read(route.outcomes)) > 1 and found, relay.why)

    assert isinstance(won, Cancelled)
    assert won.outcome.source == later.place
    endings = {each.source: each.ending for record in told if (each := Outcome.parse(record.value)) is not None}
    assert endings == {later.place: Ending.CANCELLED, soon.place: Ending.DELIVERED}
