"""Edge: facts about topics, asked of Kafka: ids, settings, first offsets and last stable offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from delaytopic_audit.errors import ReadingError
from delaytopic_audit.reading.generations import CommittedOffset
from delaytopic_audit.reading.planning import Offsets, TopicState
from delaytopic_audit.reading.settings import QUIET

TIMEOUT_SECONDS = 20.0
SLICE_SECONDS = 1.0


class KafkaFacts:
    """Asks one cluster."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """`settings` reach Kafka."""
        self._settings = settings
        self._admin = AdminClient({**settings, "allow.auto.create.topics": False}, logger=QUIET)

    def topics_like(self, matches: Callable[[str], bool]) -> list[str]:
        """Return the topics whose names match; raises ReadingError when no broker answers."""
        try:
            known = self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics
        except KafkaException as error:
            raise _unanswered(self._settings, error) from error
        return sorted(name for name in known if matches(name))

    def states(self, topics: Sequence[str], since_ms: int | None = None) -> dict[str, TopicState]:
        """Return the topics of these that exist, their ends taken now, one topic after the other in the order given.

        With `since_ms` reading begins at the first record of that time or later. Raises ReadingError.
        """
        try:
            known = self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics
            return {topic: self._state(topic, since_ms) for topic in topics if topic in known}
        except (KafkaException, TimeoutError) as error:
            raise _unanswered(self._settings, error) from error

    def committed(self, group_id: str, topic: str, partitions: Iterable[int]) -> dict[int, CommittedOffset]:
        """Return what a group has committed of a topic's partitions; raises ReadingError with Kafka's words.

        Not by the admin client: librdkafka 2.16 ends the process when the group's coordinator is not there yet.
        """
        consumer = Consumer({**self._settings, "group.id": group_id, "enable.auto.commit": False}, logger=QUIET)
        try:
            found = _committed(consumer, [TopicPartition(topic, each) for each in partitions])
        except KafkaException as error:
            raise ReadingError(error.args[0].str()) from error
        finally:
            consumer.close()
        for place in found:
            if place.error is not None:
                raise ReadingError(place.error.str())
        return {p.partition: CommittedOffset(p.offset, p.metadata or "") for p in found if p.offset >= 0}

    def _state(self, topic: str, since_ms: int | None) -> TopicState:
        described = _result(self._admin.describe_topics(TopicCollection([topic])), topic)
        partitions = [partition.id for partition in described.partitions]
        low = self._offsets(topic, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        end = self._offsets(topic, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        begin = low if since_ms is None else self._since(topic, partitions, since_ms, low, end)
        ends = {p: max(end[p], low[p]) for p in partitions}
        # A transaction that is open now is read by the next run, whatever its time is: so it is judged, too.
        offsets = {p: Offsets(low[p], min(begin[p], ends[p]), ends[p]) for p in partitions}
        return TopicState(topic, str(described.topic_id), offsets, self._topic_settings(topic))

    def _topic_settings(self, topic: str) -> dict[str, str]:
        entries = _result(self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def _offsets(self, topic: str, partitions: Iterable[int], spec: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(topic, partition): spec for partition in partitions}
        # Read committed, the latest offset is the last stable one: what is behind it may still be aborted.
        answers = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
        return {place.partition: answer.result(TIMEOUT_SECONDS).offset for place, answer in answers.items()}

    def _since(
        self, topic: str, partitions: Iterable[int], since_ms: int, low: dict[int, int], end: dict[int, int]
    ) -> dict[int, int]:
        consumer = Consumer({**self._settings, "group.id": "delaytopic-audit"}, logger=QUIET)
        try:
            asked = [TopicPartition(topic, partition, since_ms) for partition in partitions]
            found = consumer.offsets_for_times(asked, TIMEOUT_SECONDS)
        finally:
            consumer.close()
        return {p.partition: max(p.offset, low[p.partition]) if p.offset >= 0 else end[p.partition] for p in found}


def _committed(consumer: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
    """Return these with their offsets. Raises KafkaException."""
    deadline_s = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            return consumer.committed(places, timeout=SLICE_SECONDS)
        except KafkaException as error:
            # The library looks for the coordinator again and again, and tells in a poll alone that it may not.
            told = consumer.poll(0)
            if told is not None and (refused := told.error()) is not None and not refused.retriable():
                raise KafkaException(refused) from error
            if error.args[0].code() != KafkaError._TIMED_OUT or time.monotonic() > deadline_s:
                raise


def _result(answers: dict[Any, Future[Any]], key: Any = None) -> Any:
    answer = answers[key] if key is not None else next(iter(answers.values()))
    return answer.result(TIMEOUT_SECONDS)


def _unanswered(settings: dict[str, Any], error: Exception) -> ReadingError:
    said = error.args[0].str() if isinstance(error, KafkaException) else "no answer in time"
    return ReadingError(f"Kafka at {settings.get('bootstrap.servers')} does not answer: {said}")
