"""The clock of a real broker, by the append time of a probe."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import pytest
from confluent_kafka import Producer
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.records import now_ms

from delaytopic_api.values import bucket_topics
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.backlog.kafka.log import KafkaBuckets
from delaytopic_relay.backlog.kafka.time import ProbeTime
from delaytopic_relay.backlog.kafka.topics import BucketNames
from delaytopic_relay.errors import ConfigurationError, KafkaUnavailable
from delaytopic_relay.kafka.settings import Settings, bucket_reader_settings, probe_settings

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(kafka: KafkaAddress) -> Settings:
    return {"bootstrap.servers": kafka.bootstrap_servers}


@pytest.fixture
def names(kafka: KafkaAddress) -> BucketNames:
    """The topic of ids as it is created for relays."""
    names = BucketNames(unique("time"))
    ids = bucket_topics(names.backend_id, 10_000, 10_000)[-1]
    create_topics(kafka.bootstrap_servers, [TopicPlan(ids.name, 1, ids.config)])
    return names


@pytest.fixture
def opened() -> Iterator[list[ProbeTime]]:
    """Clocks to close at the end."""
    times: list[ProbeTime] = []
    yield times
    for each in times:
        each.close()


def test_a_broker_tells_the_time_between_question_and_answer(
    connection: Settings, names: BucketNames, opened: list[ProbeTime]
) -> None:
    time = ProbeTime(probe_settings(connection, "relay"), names.ids)
    opened.append(time)

    found = [(now_ms(), time.time_ms(), now_ms()) for _ in repeat(None, 3)]

    assert [asked_ms <= time_ms <= answered_ms for asked_ms, time_ms, answered_ms in found] == [True] * 3


def test_readers_of_ids_pass_probes_over(connection: Settings, names: BucketNames, opened: list[ProbeTime]) -> None:
    time = ProbeTime(probe_settings(connection, "relay"), names.ids)
    opened.append(time)
    producer = Producer(connection)
    time.time_ms()
    producer.produce(names.ids, b"entry", b"id", 0)
    producer.flush()
    time.time_ms()

    buckets = KafkaBuckets(bucket_reader_settings(connection, "nobody", "reader"), names)
    try:
        assert buckets.ids([0]) == {0: {b"id": b"entry"}}
    finally:
        buckets.close()


def test_a_topic_that_keeps_the_times_of_producers_is_refused_with_the_setting_to_change(
    kafka: KafkaAddress, connection: Settings, opened: list[ProbeTime]
) -> None:
    topic = unique("time")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 1)])
    time = ProbeTime(probe_settings(connection, "relay"), topic)
    opened.append(time)

    with pytest.raises(ConfigurationError, match=f"^the topic {topic} does not say .*type=LogAppendTime there$"):
        time.time_ms()


@pytest.mark.takes_long("the client asks for the topic again for some seconds")
def test_a_topic_that_is_not_there_is_named(connection: Settings, opened: list[ProbeTime]) -> None:
    topic = unique("time")
    time = ProbeTime(probe_settings(connection, "relay"), topic)
    opened.append(time)

    with pytest.raises(KafkaUnavailable, match=rf"^no probe .*{topic}\[0\]"):
        time.time_ms()
