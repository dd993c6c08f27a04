"""Topics that are created, grown, configured and deleted, as often as one likes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    ConfigResource,
    ResourceType,
)
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress

from delaytopic_gateway.client.topic_reader import read_topic
from delaytopic_gateway.client.topics import TopicPlan, admin_client, create_topics, delete_topics, partitions_by_topic
from delaytopic_gateway.errors import KafkaUnreachableError, TopicError
from delaytopic_process.waiting import wait_until

pytestmark = pytest.mark.integration
PATIENCE_S = 60


def partitions(bootstrap_servers: str, topic: str) -> int | None:
    """Return the number of partitions; None without such a topic."""
    return partitions_by_topic(admin_client(bootstrap_servers), bootstrap_servers).get(topic)


def settings_of(bootstrap_servers: str, topic: str, *names: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_client(bootstrap_servers)
    found = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    return {name: found[name].value for name in names}


def comes_true(condition: Callable[[], bool]) -> bool:
    """Wait for it: a broker learns of a change a moment after the controller has made it."""
    return wait_until(condition, timeout_seconds=PATIENCE_S)


def test_creating_topics_again_grows_them_and_keeps_their_records(kafka: KafkaAddress) -> None:
    servers, topic = kafka.bootstrap_servers, unique("grown")
    create_topics(servers, [TopicPlan(topic, 2)])
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, b"kept")
    assert producer.flush(PATIENCE_S) == 0

    for _ in range(2):
        create_topics(servers, [TopicPlan(topic, 3)])

    assert partitions(servers, topic) == 3
    assert [record.value for record in read_topic({"bootstrap.servers": servers}, topic)] == [b"kept"]


def test_creating_topics_again_configures_them_and_leaves_other_settings_alone(kafka: KafkaAddress) -> None:
    servers, topic = kafka.bootstrap_servers, unique("configured")
    create_topics(servers, [TopicPlan(topic, 1, {"retention.ms": "1000000", "segment.ms": "3000000"})])

    for _ in range(2):
        create_topics(servers, [TopicPlan(topic, 1, {"retention.ms": "2000000"})])

    wanted = {"retention.ms": "2000000", "segment.ms": "3000000"}
    assert comes_true(lambda: settings_of(servers, topic, *wanted) == wanted), settings_of(servers, topic, *wanted)


def test_deleting_topics_that_are_not_there_is_fine(kafka: KafkaAddress) -> None:
    topic = unique("deleted")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic)])

    for _ in range(2):
        delete_topics(kafka.bootstrap_servers, [topic])

    assert comes_true(lambda: partitions(kafka.bootstrap_servers, topic) is None)


def test_a_refused_topic_setting_is_named(kafka: KafkaAddress) -> None:
    topic = unique("bad")

    with pytest.raises(TopicError, match=rf"Kafka refused to create topic {topic}: .*retention\.ms"):
        create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 1, {"retention.ms": "soon"})])


def test_no_broker_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delaytopic_gateway.client.topics._TIMEOUT_SECONDS", 0.5)

    with pytest.raises(KafkaUnreachableError, match=r"no Kafka broker answers at 127\.0\.0\.1:1 "):
        create_topics("127.0.0.1:1", [TopicPlan("any")])
