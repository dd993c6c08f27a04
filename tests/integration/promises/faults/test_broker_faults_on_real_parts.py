"""The only Kafka broker is killed and restarted under load; an outside reader judges."""

from __future__ import annotations

import pytest
from tests.support.relay.faults import DELAYS_MS, RATE, assert_exact, pass_time
from tests.support.relay.process import wait_for
from tests.support.relay.records import BOTH_BACKENDS, BUCKETS_NIGHTLY
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_local.servers.kafka_server import KafkaServer

pytestmark = pytest.mark.integration


@pytest.fixture
def kafka(own_kafka: KafkaServer) -> KafkaServer:
    """A broker of the test alone."""
    return own_kafka


@BUCKETS_NIGHTLY
@pytest.mark.takes_long("a broker has to come back, and what waited meanwhile to be delivered")
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_the_broker_is_killed(route: Route, kafka: KafkaServer) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        wait_for(lambda: relay.status()["deliveredTotal"] > RATE, relay.why)
        kafka.kill()
        kafka.start()
        pass_time(2)

    assert_exact(route.settled_verdict(timeout_s=90))


# A failure here may be KAFKA-20734: docs/explanation/exactness.md, "What Kafka itself gets wrong".
@BOTH_BACKENDS
@pytest.mark.nightly
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_the_broker_restarts(route: Route, kafka: KafkaServer) -> None:
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        wait_for(lambda: relay.status()["deliveredTotal"] > RATE, relay.why)
        kafka.restart()
        pass_time(3)

    assert_exact(route.settled_verdict(timeout_s=90))
