"""Edge: topics of outcomes in Kafka: the end of one schedule, awaited for a little, and the last ends of an id."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import cached_property
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from delaytopic_api.relay import RecordPlace
from delaytopic_gateway.access.bounds.shares import ThreadTurns, team_of
from delaytopic_gateway.access.rights import ANYBODY, CALLER
from delaytopic_gateway.client.kafka_clients import (
    FRUGAL,
    METADATA_TIMEOUT_SECONDS,
    Settings,
    bounds,
    committed_reader,
    unreachable,
)
from delaytopic_gateway.client.resending import beginnings, committed_ends, read_records
from delaytopic_gateway.client.topics import QUIET
from delaytopic_gateway.errors import RecordMissingError, RightMissingError, TopicError, TopicMissingError
from delaytopic_gateway.kafka.endings import Endings, Newest, Search, outcome_of, parsed

ROUNDS: Final = (2_000, 20_000, 78_000)
"""Offsets that are looked at, of all partitions together: few first, since what is asked for has mostly just ended."""
MOST_READ: Final = 50_000
"""Offsets that one search for the end of a schedule reads."""
READ_SECONDS: Final = 5.0
"""After that no further round begins, and a search that does not wait is given up."""
AT_A_TIME: Final = 500
"""Records that are taken from the client together; it holds `FRUGAL` bytes of them."""
AT_ONCE: Final = 2
"""Looks at the newest; each of another team."""
_GATHER_SECONDS: Final = 0.05


class KafkaOutcomeTopics:
    """The `OutcomeTopics` of a real Kafka; may be used by several threads."""

    def __init__(self, settings: Settings) -> None:
        """`settings` are those of the Kafka client."""
        self._settings = settings
        self._turns = ThreadTurns(AT_ONCE, "outcomes")

    def ends(self, topic: str) -> Mapping[int, int]:
        """See `OutcomeTopics.ends`."""
        return committed_ends(self._settings, topic, self._partitions(topic), self._admin)

    def first(self, topic: str, schedule: RecordPlace, start: int, wait_s: float) -> Search:
        """See `OutcomeTopics.first`."""
        partitions = self._partitions(topic)
        if schedule.partition >= partitions:
            raise RecordMissingError(f"{topic} has {partitions} partitions; {schedule.partition} is none of them")
        # An offset that is gone is told, and not passed over.
        settings = {**self._settings, **FRUGAL, "auto.offset.reset": "error"}
        begin = at = start
        expired, is_at_end = 0, False
        began_s = time.monotonic()
        with closing(committed_reader(settings, at_end_events=True)) as consumer:
            consumer.assign([TopicPartition(topic, schedule.partition, at)])
            while at - begin < MOST_READ:
                spent_s = time.monotonic() - began_s
                if spent_s > max(wait_s, READ_SECONDS) or (is_at_end and spent_s > wait_s):
                    break
                for message in _gathered(consumer):
                    error = message.error()
                    if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                        begin = self._first_offset(consumer, topic, schedule.partition)
                        # A topic that was made anew may end in front of the offset.
                        expired += max(0, begin - at)
                        at, is_at_end = begin, False
                        consumer.assign([TopicPartition(topic, schedule.partition, at)])
                        break
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise self._refused(topic, error)
                    is_at_end = error is not None
                    at = max(at, (message.offset() or 0) + (0 if is_at_end else 1))
                    found = None if is_at_end else outcome_of(message.value(), schedule)
                    if found is not None:
                        return Search(found, message.offset() or 0, expired)
        return Search(None, at, expired)

    def newest(self, topic: str, source: str, name: bytes, partition: int | None) -> Endings:
        """See `OutcomeTopics.newest`."""
        with self._one_of_few():
            all_ends = self.ends(topic)
            ends = {each: end for each, end in all_ends.items() if partition in (None, each)}
            if not ends:
                raise RecordMissingError(f"{topic} has {len(all_ends)} partitions; {partition} is none of them")
            begins = beginnings(self._settings, topic, ends, self._admin)
            reached, found = dict(ends), Newest()
            give_up_s = time.monotonic() + READ_SECONDS
            settings = {**self._settings, **FRUGAL}
            with closing(committed_reader(settings, at_end_events=True)) as consumer:
                for offsets in ROUNDS:
                    share = max(1, offsets // len(reached))
                    starts = {
                        each: max(begins[each], top - share) for each, top in reached.items() if top > begins[each]
                    }
                    for record in read_records(consumer, topic, starts, reached):
                        outcome = parsed(record.value) if record.key == name else None
                        if outcome is not None and outcome.source.topic == source:
                            found.add(record.place, outcome, len(record.value or b""))
                    reached |= starts
                    if found or not starts or time.monotonic() > give_up_s:
                        break
        looked_at = sum(ends[each] - top for each, top in reached.items())
        is_whole = found.is_whole and all(reached[each] <= begin for each, begin in begins.items())
        return Endings(found.outcomes(), looked_at, is_whole)

    def _first_offset(self, consumer: Consumer, topic: str, partition: int) -> int:
        try:
            return bounds(consumer, TopicPartition(topic, partition))[0]
        except KafkaException as error:
            raise self._refused(topic, error.args[0]) from error

    @cached_property
    def _admin(self) -> AdminClient:
        # Brokers may make a topic for whoever asks for one, and then none is missing.
        return AdminClient({**self._settings, "allow.auto.create.topics": False}, logger=QUIET)

    def _partitions(self, topic: str) -> int:
        try:
            found = self._admin.list_topics(topic, timeout=METADATA_TIMEOUT_SECONDS).topics.get(topic)
        except KafkaException as error:
            raise unreachable(self._settings, error) from error
        if found is None or found.error is not None or not found.partitions:
            raise TopicMissingError(
                f"there is no topic {topic} in Kafka, or the login to it may not see it: it needs READ on topics of "
                "outcomes (spec.outcomes)"
            )
        return len(found.partitions)

    def _refused(self, topic: str, error: KafkaError) -> TopicError:
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return RightMissingError(f"the login to Kafka needs READ on topic {topic}, which has the outcomes")
        return TopicError(f"{topic} cannot be read: {error.str()}")

    def _one_of_few(self) -> AbstractContextManager[None]:
        return self._turns.turn(team_of(CALLER.get(ANYBODY).name))


def _gathered(consumer: Consumer) -> Sequence[Message]:
    """Return what the client holds, once there is anything: a longer gathering of large records would fill memory."""
    first = consumer.poll(_GATHER_SECONDS)
    return [] if first is None else [first, *consumer.consume(AT_A_TIME, 0)]
