"""Edge: the clock of the broker that leads the topic of ids: the append time of a small probe."""

from __future__ import annotations

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Message, Producer

from delaytopic_process.kafka_log import client_logger
from delaytopic_relay.errors import ConfigurationError, KafkaUnavailable
from delaytopic_relay.kafka.settings import Settings

PROBE = b""
"""The key of a probe, which is no id: ids have at least a byte. Without a value, a probe says that nothing is known of
it, and compaction keeps one at the most."""
TIMEOUT_S = 5.0


class ProbeTime:
    """Implements `TimeSource`. The probes are part of no transaction: nothing else waits for them."""

    def __init__(self, settings: Settings, topic: str) -> None:
        """Connect when asked for the first time. The topic has to have append times."""
        self._settings = settings
        self._topic = topic
        self._producer: Producer | None = None

    @property
    def name(self) -> str:
        """The broker, by what it leads."""
        return f"the broker of {self._topic}[0]"

    def time_ms(self) -> int:
        """Append a probe. Raises `KafkaUnavailable` and `ConfigurationError`."""
        producer = self._producer = self._producer or Producer(self._settings, logger=client_logger("clock"))
        reports: list[tuple[KafkaError | None, Message]] = []
        try:
            producer.produce(
                self._topic, None, PROBE, 0, on_delivery=lambda error, message: reports.append((error, message))
            )
            producer.flush(TIMEOUT_S)
        except (KafkaException, BufferError) as exception:
            raise KafkaUnavailable(f"no probe can be written into {self._topic}[0]: {exception}") from exception
        if not reports:
            producer.purge()
            raise KafkaUnavailable(f"no probe was written into {self._topic}[0] within {TIMEOUT_S:.0f} s")
        error, message = reports[0]
        if error is not None:
            raise KafkaUnavailable(f"no probe can be written into {self._topic}[0]: {error.str()}")
        kind, time_ms = message.timestamp()
        if kind != TIMESTAMP_LOG_APPEND_TIME:
            raise ConfigurationError(
                f"the topic {self._topic} does not say when records were appended; set "
                "message.timestamp.type=LogAppendTime there"
            )
        return time_ms

    def close(self) -> None:
        """Leave what was not written."""
        if self._producer is not None:
            self._producer.purge()
