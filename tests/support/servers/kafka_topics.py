"""Kafka's topics as an administrator sees and changes them."""

from __future__ import annotations

from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tests.support.relay.process import wait_for


class KafkaTopics:
    """Asks the brokers anew each time."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def partitions(self, name: str) -> int:
        """Return how many a topic has; 0: there is no such topic."""
        found = self._admin.list_topics(timeout=30).topics
        return len(found[name].partitions) if name in found else 0

    def id(self, name: str) -> str:
        """Kafka's own of the topic."""
        return str(self._admin.describe_topics(TopicCollection([name]))[name].result(30).topic_id)

    def config(self, name: str) -> dict[str, str]:
        """All settings of a topic."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        found: dict[str, Any] = self._admin.describe_configs([resource])[resource].result(30)
        return {entry: str(found[entry].value) for entry in found}

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        """A topic that is there when this returns; settings have _ for the dots in their names."""
        settings = {setting.replace("_", "."): value for setting, value in config.items()}
        self._admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        wait_for(lambda: self.partitions(name) == partitions, lambda: f"{name} is not there")

    def delete(self, name: str) -> None:
        """A topic that is gone when this returns."""
        self._admin.delete_topics([name])[name].result(30)
        wait_for(lambda: self.partitions(name) == 0, lambda: f"{name} is still there")

    def set(self, name: str, **config: str) -> None:
        """Settings, by names with _ for the dots."""
        operation = AlterConfigOpType.SET
        entries = [
            ConfigEntry(setting.replace("_", "."), value, incremental_operation=operation)
            for setting, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(30)
