"""Edge: what Kafka says of topics: whether they exist, their partitions and settings."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AclOperation,
    AdminClient,
    ConfigResource,
    ResourceType,
)

from delaytopic_process.kafka_log import client_logger
from delaytopic_relay.errors import ConfigurationError, KafkaUnavailable, TopicForbidden
from delaytopic_relay.kafka_settings import Settings
from delaytopic_relay.topics import UNLIMITED_BYTES, TopicFacts

TIMEOUT_S = 10.0
SLICE_S = 1.0
"""A refused log-in is known at once, but `list_topics` would wait for its whole timeout."""
FRESH_S = 5.0
NOT_LET_IN = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError._SSL,
    }
)


class TopicReader:
    """Asks the cluster about topics, and remembers the answers for some seconds."""

    def __init__(self, connection: Settings, own: Collection[str]) -> None:
        """`own` are the topics without which this relay cannot work; others are named by records."""
        self._own = frozenset(own)
        self._refused: KafkaError | None = None
        self._known: dict[str, tuple[float, TopicFacts | None]] = {}
        settings: dict[str, Any] = {**connection, "error_cb": self._on_error, "allow.auto.create.topics": False}
        self._admin = AdminClient(settings, logger=client_logger("admin"))

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in NOT_LET_IN:
            self._refused = error

    def read(self, topic: str) -> TopicFacts | None:
        """The topic's facts, None if it does not exist.

        Raises `KafkaUnavailable` when the cluster does not answer, `ConfigurationError` when it does not let us in.
        """
        known = self._known.get(topic)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        return self.read_anew(topic)

    def read_anew(self, topic: str) -> TopicFacts | None:
        """The same, as of now."""
        facts = self._ask(topic)
        self._known[topic] = (time.monotonic() + FRESH_S, facts)
        return facts

    def limit(self, topic: str) -> int | None:
        """The largest record batch of a topic; None if nothing can be sent there. No answer limits nothing."""
        try:
            facts = self.read(topic)
        except KafkaUnavailable:
            return UNLIMITED_BYTES
        except TopicForbidden:
            if topic in self._own:
                raise
            # Remembered like a topic that does not exist: each record that names it would wait for an answer.
            self._known[topic] = (time.monotonic() + FRESH_S, None)
            return None
        return facts.largest_batch_bytes if facts is not None and facts.writable else None

    def _ask(self, topic: str) -> TopicFacts | None:
        metadata = self._metadata(topic)
        if metadata.error is not None:
            self._check_it_is_unknown(topic, metadata.error)
            return None
        writable = topic in self._own or self._may_write(topic)
        return TopicFacts(topic, len(metadata.partitions), self._settings(topic), writable)

    def _metadata(self, topic: str) -> Any:
        give_up_s = time.monotonic() + TIMEOUT_S
        while True:
            self._admin.poll(0)
            try:
                return self._admin.list_topics(topic, timeout=SLICE_S).topics[topic]
            except KafkaException as error:
                self._admin.poll(0)
                if self._refused is not None or time.monotonic() > give_up_s:
                    raise self._unreachable(error.args[0]) from error

    def _unreachable(self, error: KafkaError) -> Exception:
        if self._refused is not None:
            return ConfigurationError(
                f"Kafka does not let this relay in ({self._refused.str()}); "
                "check kafka.security and the Secret behind it"
            )
        return KafkaUnavailable(f"Kafka does not answer: {error.str()}; check kafka.bootstrapServers and the network")

    def _check_it_is_unknown(self, topic: str, error: KafkaError) -> None:
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise TopicForbidden(f"the topic {topic} may not be described by this user; grant it Describe")
        if error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise KafkaUnavailable(f"the topic {topic}: {error.str()}")

    def _may_write(self, topic: str) -> bool:
        """Asked beforehand: a transaction fails as a whole for one topic that may not be written to."""
        asked = self._admin.describe_topics(
            TopicCollection([topic]), include_authorized_operations=True, request_timeout=TIMEOUT_S
        )
        try:
            operations = asked[topic].result(TIMEOUT_S).authorized_operations
        except (KafkaException, TimeoutError):
            return True
        return not operations or AclOperation.WRITE in operations

    def _settings(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            entries = self._admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        except (KafkaException, TimeoutError):
            return {}
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}
