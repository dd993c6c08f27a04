"""Edge: dead-letter topics in Kafka: their newest records, one of them, and sending them again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from threading import Lock
from typing import Final

from confluent_kafka import Consumer

from delaytopic_gateway.access.bounds.shares import ThreadTurns, team_of
from delaytopic_gateway.access.rights import ANYBODY, CALLER
from delaytopic_gateway.client.dead_letters import Choice, Outcome, Place, Progress, StoredRecord
from delaytopic_gateway.client.kafka_clients import FRUGAL, Settings, committed_reader, partitions_of
from delaytopic_gateway.client.resending import (
    Resending,
    beginnings,
    committed_ends,
    committed_progress,
    group_of,
    read_records,
)
from delaytopic_gateway.errors import ConflictError, RightMissingError, TopicError, TopicMissingError
from delaytopic_gateway.kafka.window import Before, Keep, Letter, Window
from delaytopic_process.errors import ProgramError

ROUNDS: Final = (250, 2_000, 7_750)
"""Offsets that are looked at, of all partitions together: few first, since records may be large."""
READ_SECONDS: Final = 5.0
"""After that no further round begins, and one that is going on is given up."""
SEND_SECONDS: Final = 20.0
MOST_SENT: Final = 10_000
"""The most dead letters that one request sends again."""
MOST_KEPT_BYTES: Final = 8 << 20
"""The bound of the letters of a list."""
AT_ONCE: Final = 2
"""Lists that are read, and letters that are sent; each of another team. Each takes some ten MiB."""


class KafkaDeadLetterTopics:
    """The `DeadLetterTopics` of a real Kafka; may be used by several threads."""

    def __init__(self, settings: Settings) -> None:
        """`settings` are those of the Kafka client."""
        self._settings = settings
        self._turns = ThreadTurns(AT_ONCE, "dead letters")
        self._lock = Lock()
        self._sending: set[str] = set()

    def window(self, topic: str, before: Before | None, keep: Keep) -> Window:
        """See `DeadLetterTopics.window`."""
        with self._one_of_few(), self._reader(topic) as consumer:
            ends = committed_ends(self._settings, topic, self._partitions(topic))
            progress = self._progress(topic, ends)
            begins = beginnings(self._settings, topic, [*ends])
            tops = {each: end if before is None else min(end, before.get(each, 0)) for each, end in ends.items()}
            reached, letters, kept = dict(tops), list[Letter](), 0
            give_up_s = time.monotonic() + READ_SECONDS
            for number, offsets in enumerate(ROUNDS):
                share = max(1, offsets // len(reached))
                starts = {each: max(begins[each], top - share) for each, top in reached.items() if top > begins[each]}
                found = []
                for record in read_records(consumer, topic, starts, reached):
                    if number and (time.monotonic() > give_up_s or kept > MOST_KEPT_BYTES):
                        starts = {}
                        break
                    letter = keep(record, progress.get(record.place.partition))
                    if letter is not None:
                        found.append(letter)
                        kept += letter.bytes
                if not starts:
                    break
                letters += found
                reached |= starts
        looked_at = sum(tops[each] - top for each, top in reached.items())
        return Window(letters, looked_at, reached, begins)

    def at(self, topic: str, place: Place) -> tuple[StoredRecord, Progress | None] | None:
        """See `DeadLetterTopics.at`."""
        ends = committed_ends(self._settings, topic, self._partitions(topic))
        partition, offset = place
        if offset >= ends.get(partition, 0):
            return None
        progress = self._progress(topic, ends).get(partition)
        with self._reader(topic) as consumer:
            for record in read_records(consumer, topic, {partition: offset}, {partition: offset + 1}):
                if record.place == place:
                    return record, progress
        return None

    def send(self, topic: str, choice: Choice, places: Sequence[Place] | None, *, dry_run: bool) -> Outcome:
        """See `DeadLetterTopics.send`."""
        for each in (topic, choice.source):
            self._partitions(each)
        resending = Resending(self._settings, topic, choice, dry_run=dry_run, most=MOST_SENT, seconds=SEND_SECONDS)
        try:
            with nullcontext() if dry_run else self._alone(topic), self._one_of_few():
                if places is None:
                    resending.send_all()
                else:
                    resending.send_places(places)
        except ProgramError as error:
            if not resending.has_begun:
                raise
            text = f"{error}; {resending.outcome.certain}; the same request goes on behind what was sent"
            raise type(error)(text) from error
        return resending.outcome

    def _partitions(self, topic: str) -> int:
        """Return how many there are. The error names no other topic, as the caller may be a stranger to them."""
        try:
            return partitions_of(self._settings, topic)
        except TopicError as error:
            raise TopicMissingError(
                f"there is no topic {topic} in Kafka, or the login to it may not see it: it needs READ on "
                "dead-letter topics and WRITE on source topics"
            ) from error

    @contextmanager
    def _reader(self, topic: str) -> Iterator[Consumer]:
        with closing(
            committed_reader({**self._settings, **FRUGAL, "group.id": group_of(topic)}, at_end_events=True)
        ) as consumer:
            yield consumer

    def _progress(self, topic: str, ends: Mapping[int, int]) -> dict[int, Progress]:
        """Return what was sent again; empty where the login may not know, as lists need not."""
        try:
            # Not with the consumer that reads: one that was asked for committed offsets begins to fetch a second later.
            with self._reader(topic) as consumer:
                return committed_progress(consumer, topic, ends) or dict.fromkeys(ends, Progress())
        except RightMissingError:
            return {}

    def _one_of_few(self) -> AbstractContextManager[None]:
        return self._turns.turn(team_of(CALLER.get(ANYBODY).name))

    @contextmanager
    def _alone(self, topic: str) -> Iterator[None]:
        """Let one request at a time send from a topic: another would fence it."""
        with self._lock:
            if topic in self._sending:
                raise ConflictError(f"dead letters of {topic} are being sent again by another request; ask again later")
            self._sending.add(topic)
        try:
            yield
        finally:
            with self._lock:
                self._sending.discard(topic)
