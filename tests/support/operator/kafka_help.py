"""Steps of tests in Kafka beside the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from delaytopic_operator.kafka.admin import KafkaCluster
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts
from delaytopic_operator.topics.actions import CreateTopic
from delaytopic_process.waiting import wait_until


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until it holds; raises AssertionError if it does not in time."""
    assert wait_until(condition, timeout_seconds=seconds)


def looked_at(cluster: KafkaCluster, topic: str) -> TopicFacts:
    """The topic as it is now."""
    found = cluster.view([topic], fresh=True).find(topic)
    assert found is not None
    return found


def made(cluster: KafkaCluster, topic: str, partitions: int = 1, **config: str) -> TopicFacts:
    """A topic that is there, and seen to be."""
    named = {name.replace("_", "."): value for name, value in config.items()}
    cluster.perform(CreateTopic(topic, partitions, 1, named))
    wait_for(lambda: topic in cluster.view([topic], fresh=True).topics)
    return looked_at(cluster, topic)


def is_missing(view: KafkaView, topic: str) -> bool:
    """Tell whether a topic is not there."""
    return topic in view.missing


def delete_behind_its_back(bootstrap_servers: str, topic: str) -> None:
    """As somebody else does."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for done in admin.delete_topics([topic]).values():
        done.result(30)


def configure_behind_its_back(bootstrap_servers: str, topic: str, config: Mapping[str, str]) -> None:
    """As somebody else does."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def produce(bootstrap_servers: str, topic: str, records: int, partition: int = 0) -> None:
    """Some records."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(records):
        producer.produce(topic, f"record {number}", partition=partition)
    assert producer.flush(30) == 0


def commit(bootstrap_servers: str, group_id: str, topic: str, offset: int, metadata: str = "") -> None:
    """As a relay does, without being a member afterwards."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group_id})

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata)], asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR):
                return False  # of a new cluster
            raise
        return True

    wait_for(is_committed)
    consumer.close()
