"""Edge: topics of outcomes in Kafka: the end of one schedule, awaited for a little, and the last ends of an id."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from functools import cached_property
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from delaytopic_api.relay import Outcome, RecordPlace
from delaytopic_gateway.access.bounds.shares import ThreadTurns, team_of
from delaytopic_gateway.access.rights import ANYBODY, CALLER
from delaytopic_gateway.client.kafka_clients import (
    FRUGAL,
    METADATA_TIMEOUT_SECONDS,
    Settings,
    committed_reader,
    unreachable,
)
from delaytopic_gateway.client.resending import beginnings, committed_ends, read_records
from delaytopic_gateway.client.topics import QUIET
from delaytopic_gateway.errors import RecordMissingError, RightMissingError, TopicError, TopicMissingError
from delaytopic_gateway.kafka.endings import Endings, Search, outcome_of, parsed

ROUNDS: Final = (2_000, 20_000, 78_000)
"""Offsets that are looked at, of all partitions together: few first, since what is asked for has mostly just ended."""
MOST_READ: Final = 50_000
"""Offsets that one search for the end of a schedule reads."""
READ_SECONDS: Final = 5.0
"""After that no further round begins, and a search that does not wait is given up."""
MOST_OF_ONE_ID: Final = 1_000
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
        at, is_at_end = start, False
        began_s = time.monotonic()
        with closing(committed_reader({**self._settings, **FRUGAL}, at_end_events=True)) as consumer:
            consumer.assign([TopicPartition(topic, schedule.partition, start)])
            while at - start < MOST_READ:
                spent_s = time.monotonic() - began_s
                if spent_s > max(wait_s, READ_SECONDS) or (is_at_end and spent_s > wait_s):
                    break
                for message in consumer.consume(500, _GATHER_SECONDS):
                    error = message.error()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise self._refused(topic, error)
                    is_at_end = error is not None
                    at = max(at, (message.offset() or 0) + (0 if is_at_end else 1))
                    found = None if is_at_end else outcome_of(message.value(), schedule)
                    if found is not None:
                        return Search(found, message.offset() or 0)
        return Search(None, at)

    def newest(self, topic: str, name: bytes, partition: int | None) -> Endings:
        """See `OutcomeTopics.newest`."""
        with self._one_of_few():
            all_ends = self.ends(topic)
            ends = {each: end for each, end in all_ends.items() if partition in (None, each)}
            begins = beginnings(self._settings, topic, [*ends])
            reached, found = dict(ends), dict[tuple[int, int], Outcome]()
            give_up_s = time.monotonic() + READ_SECONDS
            settings = {**self._settings, **FRUGAL}
            with closing(committed_reader(settings, at_end_events=True)) as consumer:
                for offsets in ROUNDS:
                    share = max(1, offsets // max(1, len(reached)))
                    starts = {
                        each: max(begins[each], top - share) for each, top in reached.items() if top > begins[each]
                    }
                    for record in read_records(consumer, topic, starts, reached):
                        outcome = parsed(record.value) if record.key == name else None
                        if outcome is not None and len(found) < MOST_OF_ONE_ID:
                            found[record.place] = outcome
                    reached |= starts
                    if found or not starts or time.monotonic() > give_up_s:
                        break
        looked_at = sum(ends[each] - top for each, top in reached.items())
        is_whole = all(reached[each] <= begin for each, begin in begins.items())
        # Of one partition in the order of their offsets; an id waits in several by mistake alone.
        ordered = sorted(found.items(), key=lambda item: (item[1].ended_ms, item[0]), reverse=True)
        return Endings([outcome for _, outcome in ordered], looked_at, is_whole)

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
