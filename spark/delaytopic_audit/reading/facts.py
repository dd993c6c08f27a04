"""Edge: facts about topics, asked of Kafka: ids, settings, first offsets and last stable offsets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from delaytopic.settling import is_moving, settled
from delaytopic_audit.errors import ReadingError
from delaytopic_audit.reading.generations import CommittedOffset
from delaytopic_audit.reading.planning import Offsets, TopicState
from delaytopic_audit.reading.settings import QUIET

TIMEOUT_SECONDS = 20.0
SLICE_SECONDS = 1.0
PAUSE_SECONDS = 0.1
SETTLING_SECONDS = 5.0
"""The time that a partition has to get a leader; one that has none for longer holds up its own topic alone."""
_PASSES = (
    *(KafkaError._TIMED_OUT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE),
    *(KafkaError.NOT_COORDINATOR, KafkaError.UNSTABLE_OFFSET_COMMIT),
)
"""The errors of a group whose coordinator starts or moves, or whose transaction is open: they pass by themselves."""


class KafkaFacts:
    """Asks one cluster."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """`settings` reach Kafka."""
        self._settings = settings
        self._admin = AdminClient({**settings, "allow.auto.create.topics": False}, logger=QUIET)

    def topics(self) -> set[str]:
        """Return the names of all topics; raises ReadingError when no broker answers."""
        try:
            return set(self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics)
        except KafkaException as error:
            raise _unanswered(self._settings, error) from error

    def states(
        self, topics: Iterable[str], since_ms: int | None = None
    ) -> tuple[dict[str, TopicState], dict[str, ReadingError]]:
        """Return the topics of these that exist, with their ends of now, and those that could not be asked for.

        With `since_ms` reading begins at the first record of that time or later.
        """
        asked = list(dict.fromkeys(topics))
        if not asked:
            return {}, {}
        failed = dict[str, ReadingError]()
        described = self._each(self._admin.describe_topics(TopicCollection(asked)), failed)
        found = {topic: [each.id for each in described[topic].partitions] for topic in asked if topic in described}
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in found]
        configured = self._each(self._admin.describe_configs(resources) if resources else {}, failed)
        settings = {
            resource.name: {name: entry.value for name, entry in entries.items() if entry.value is not None}
            for resource, entries in configured.items()
        }
        low = self._offsets(found, OffsetSpec.earliest(), failed)  # type: ignore[no-untyped-call]
        end = self._offsets(found, OffsetSpec.latest(), failed)  # type: ignore[no-untyped-call]
        whole = {topic: partitions for topic, partitions in found.items() if topic not in failed}
        begin = low if since_ms is None else self._since(whole, since_ms, low, end, failed)
        states = dict[str, TopicState]()
        for topic, partitions in whole.items():
            if topic not in failed and topic in settings:
                # A transaction that is open now is read by the next run, whatever its time is: so it is judged, too.
                ends = {p: max(end[topic, p], low[topic, p]) for p in partitions}
                offsets = {p: Offsets(low[topic, p], min(begin[topic, p], ends[p]), ends[p]) for p in partitions}
                states[topic] = TopicState(topic, str(described[topic].topic_id), offsets, settings[topic])
        return states, failed

    def _each(self, answers: Mapping[Any, Future[Any]], failed: dict[str, ReadingError]) -> dict[Any, Any]:
        """Return the answers that came; of the others, but for topics that do not exist, add why they did not."""
        found = {}
        for key, answer in answers.items():
            try:
                found[key] = answer.result(TIMEOUT_SECONDS)
            except (KafkaException, TimeoutError) as error:
                if not _is_unknown(error):
                    failed[_topic_of(key)] = _unanswered(self._settings, error)
        return found

    def _offsets(
        self, topics: Mapping[str, Iterable[int]], spec: OffsetSpec, failed: dict[str, ReadingError]
    ) -> dict[tuple[str, int], int]:
        asked = {TopicPartition(topic, each): spec for topic, partitions in topics.items() for each in partitions}
        if not asked:
            return {}
        answers: dict[TopicPartition, Future[Any]] = {}

        def ask() -> None:
            # Read committed, the latest offset is the last stable one: what is behind it may still be aborted.
            answers.update(self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED))
            for answer in answers.values():
                error = answer.exception(TIMEOUT_SECONDS)
                if isinstance(error, KafkaException) and is_moving(error.args[0]):
                    raise error

        # A leader that has not come in time is a partition's fault, and told with the others.
        with suppress(KafkaException, TimeoutError):
            settled(ask, SETTLING_SECONDS)
        found = self._each(answers, failed)
        for place in asked:
            if place not in found:
                failed.setdefault(place.topic, _unanswered(self._settings, TimeoutError()))
        return {(place.topic, place.partition): answer.offset for place, answer in found.items()}

    def _since(
        self,
        topics: Mapping[str, Iterable[int]],
        since_ms: int,
        low: Mapping[tuple[str, int], int],
        end: Mapping[tuple[str, int], int],
        failed: dict[str, ReadingError],
    ) -> dict[tuple[str, int], int]:
        asked = [TopicPartition(topic, each, since_ms) for topic, partitions in topics.items() for each in partitions]
        consumer = Consumer({**self._settings, "group.id": "delaytopic-audit"}, logger=QUIET)

        def ask() -> list[TopicPartition]:
            found = consumer.offsets_for_times(asked, TIMEOUT_SECONDS) if asked else []
            if (error := next((place.error for place in found if place.error is not None), None)) is not None:
                raise KafkaException(error)
            return found

        try:
            places = settled(ask, SETTLING_SECONDS)
        except KafkaException as error:
            failed |= {topic: _unanswered(self._settings, error) for topic in topics}
            return {}
        finally:
            consumer.close()
        found = {}
        for place in places:
            key = (place.topic, place.partition)
            found[key] = max(place.offset, low[key]) if place.offset >= 0 else end[key]
        return found

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


def _committed(consumer: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
    """Return these with their offsets. Raises KafkaException."""
    deadline_s = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            found = consumer.committed(places, timeout=SLICE_SECONDS)
            passing = next((place.error for place in found if place.error in _PASSES), None)
            if passing is None:
                return found
            raise KafkaException(passing)
        except KafkaException as error:
            if error.args[0] not in _PASSES or time.monotonic() > deadline_s:
                raise
            # The library looks for the coordinator again and again, and tells in a poll alone that it may not.
            told = consumer.poll(PAUSE_SECONDS)
            if told is not None and (refused := told.error()) is not None and refused not in _PASSES:
                raise KafkaException(refused) from error


def _topic_of(key: Any) -> str:
    """Return the topic that an answer is about: its name, a partition, or a resource."""
    return key if isinstance(key, str) else str(key.topic if isinstance(key, TopicPartition) else key.name)


def _is_unknown(error: Exception) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def _unanswered(settings: dict[str, Any], error: Exception) -> ReadingError:
    said = error.args[0].str() if isinstance(error, KafkaException) else "no answer in time"
    return ReadingError(f"Kafka at {settings.get('bootstrap.servers')} does not answer: {said}")
