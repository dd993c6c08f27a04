"""Edge: cancels written into chosen partitions of a source topic, and the ends of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from delaytopic_gateway.client.kafka_clients import (
    Settings,
    assignment,
    bounds,
    committed_reader,
    partitions_of,
    producer,
    unreachable,
)
from delaytopic_gateway.client.new_records import cancel_record
from delaytopic_gateway.client.sending import FLUSH_TIMEOUT_SECONDS
from delaytopic_gateway.errors import TopicError
from delaytopic_gateway.reach.cancelling import Ends


class KafkaCancels:
    """Writes for `Commands` of somebody who may write to the source topic."""

    everywhere = True

    def __init__(self, settings: Settings, topic: str) -> None:
        """Raises InputError, KafkaUnreachableError, and TopicError when there is no such topic."""
        self.topic = topic
        self._settings = settings
        self._partitions = partitions_of(settings, topic)
        self._producer: Producer | None = None
        self._refusal: KafkaError | None = None
        self._written: dict[str, dict[int, int]] = {}

    def ends(self) -> Ends:
        """See `Commands.ends`. Raises KafkaUnreachableError."""
        reader = committed_reader(self._settings)
        try:
            places = assignment(self.topic, self._partitions, 0)
            return {place.partition: bounds(reader, place)[1] for place in places}
        except KafkaException as error:
            raise unreachable(self._settings, error) from error
        finally:
            reader.close()

    def cancel(self, places: Mapping[str, Sequence[int] | None]) -> Mapping[str, Mapping[int, int]]:
        """See `Commands.cancel`. Raises TopicError when one is refused or not acknowledged in time."""
        kafka = self._producer = self._producer or producer(self._settings, self.topic)
        for name, partitions in places.items():
            for number in range(self._partitions) if partitions is None else partitions:
                self._produce(kafka, name, number)
        remaining = kafka.flush(FLUSH_TIMEOUT_SECONDS)
        if self._refusal is not None:
            raise self._error(self._refusal.str())
        if remaining:
            raise self._error(f"{remaining} are not acknowledged within {FLUSH_TIMEOUT_SECONDS:.0f} s")
        return {name: self._written[name] for name in places}

    def _produce(self, kafka: Producer, name: str, number: int) -> None:
        record = cancel_record(name, None)
        note = partial(self._acknowledged, name)
        while self._refusal is None:
            try:
                kafka.produce(self.topic, record.value, record.key, number, on_delivery=note, headers=[*record.headers])
            except BufferError:
                kafka.poll(0.1)
            except KafkaException as error:
                raise self._error(error.args[0].str()) from error
            else:
                kafka.poll(0)
                return

    def _acknowledged(self, name: str, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refusal = self._refusal or error
            return
        self._written.setdefault(name, {})[message.partition() or 0] = message.offset() or 0

    def _error(self, why: str) -> TopicError:
        before = sum(map(len, self._written.values()))
        return TopicError(f"Kafka refused a cancel to {self.topic}: {why}; {before} were written before")
