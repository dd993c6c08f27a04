"""Edge: the Kafka of a gateway's DelayTopics: a producer that waits for each record, and a reader of topics' ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Event

from confluent_kafka import KafkaError, KafkaException, Message

from delaytopic_gateway.client.kafka_clients import FRUGAL, producer
from delaytopic_gateway.client.new_records import OutgoingRecord, Written
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.client.topic_reader import records_of
from delaytopic_gateway.errors import TopicError
from delaytopic_gateway.kafka.dead_letters import KafkaDeadLetterTopics
from delaytopic_gateway.kafka.outcomes import KafkaOutcomeTopics

TIMEOUT_S = 10
_ANY_PARTITION = -1


class KafkaCluster:
    """A `Cluster`; may be used by several threads."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """`settings` are those of the Kafka client, with `bootstrap.servers`."""
        self._settings = settings
        self.letters = KafkaDeadLetterTopics(settings)
        self.outcomes = KafkaOutcomeTopics(settings)
        # Given up before the caller is: a record is there or refused when `write` returns, but for a broker that hangs.
        self._producer = producer({**settings, "linger.ms": "0", "message.timeout.ms": str(TIMEOUT_S * 1_000)})

    @property
    def bootstrap_servers(self) -> str:
        """See `Cluster.bootstrap_servers`."""
        return self._settings["bootstrap.servers"]

    def read(self, topic: str, last: int) -> Iterator[RawRecord]:
        """See `Cluster.read`."""
        return records_of({**self._settings, **FRUGAL}, topic, timeout_seconds=TIMEOUT_S, last=last)

    def write(self, topic: str, record: OutgoingRecord, partition: int | None) -> Written:
        """See `Cluster.write`."""
        answered = Event()
        answers: list[tuple[KafkaError | None, Message]] = []

        def note(error: KafkaError | None, message: Message) -> None:
            answers.append((error, message))
            answered.set()

        try:
            self._producer.produce(
                topic,
                record.value,
                record.key,
                _ANY_PARTITION if partition is None else partition,
                on_delivery=note,
                headers=[*record.headers],
            )
        except (KafkaException, BufferError) as error:
            raise TopicError(f"a record to {topic} cannot be sent: {error}") from error
        self._producer.flush(TIMEOUT_S + 5)
        if not answered.wait(1):
            raise TopicError(f"Kafka has not acknowledged a record to {topic} in {TIMEOUT_S} s; it may arrive still")
        refusal, message = answers[0]
        if refusal is not None:
            raise TopicError(f"Kafka refused a record to {topic}: {refusal.str()}")
        return Written(message.partition() or 0, message.offset() or 0, message.timestamp()[1])
