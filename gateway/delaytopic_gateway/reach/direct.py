"""Edge: the service of a gateway in this process, for one DelayTopic whose relays and Kafka are named."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from delaytopic_api.records import DELIVER_ID, LAST_INSTANT_MS
from delaytopic_api.relay import Outcome, PendingRecord
from delaytopic_api.values import Dialect, Ids
from delaytopic_gateway.client.dead_letters import Place
from delaytopic_gateway.client.new_records import OutgoingRecord, Written
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.client.relay_listing import ask_relays, relay_status
from delaytopic_gateway.dead_letters.documents import (
    DeadLetterDocument,
    DeadLetterPage,
    DeadLetterSelection,
    Resend,
    ResendResult,
)
from delaytopic_gateway.dead_letters.service import Letters
from delaytopic_gateway.documents import (
    Accepted,
    NewTime,
    OutcomePage,
    RecordPage,
    RecordSelection,
    outcome_page,
    record_page,
)
from delaytopic_gateway.errors import ConflictError, RelayUnreachableError, TopicMissingError
from delaytopic_gateway.kafka.endings import OutcomeTopics
from delaytopic_gateway.kafka.window import DeadLetterTopics, parse_cursor
from delaytopic_gateway.reach.cancelling import Ends, Found
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import Ask, Cluster, ServedTopic
from delaytopic_gateway.service.state import UNKNOWN, State
from delaytopic_process.errors import InputError

if TYPE_CHECKING:
    from delaytopic_gateway.reach.kafka_cancels import KafkaCancels

Settings = Mapping[str, str]


class DirectTopic:
    """A `TopicService` that asks relays and Kafka itself, with the rights of whoever calls it.

    Nothing but names is known of the DelayTopic, so commands are written as the Native dialect has them.
    """

    def __init__(
        self,
        topic: str,
        urls: Sequence[str] = (),
        kafka: Settings | None = None,
        *,
        dead_letter: str | None = None,
        outcomes: str | None = None,
        ask: Ask = ask_relays,
    ) -> None:
        """`topic` is the source topic, or, where there are relays to ask, the DelayTopic's name.

        `kafka` are the settings of its client. The dead-letter topic is `<topic>.dlq` unless it is named; `outcomes` is
        the topic of outcomes, None where there is none.
        """
        self._urls, self._kafka = urls, kafka
        self._served = ServedTopic(
            namespace="",
            name=topic,
            source=topic,
            target="",
            dead_letter=dead_letter or f"{topic}.dlq",
            history=None,
            dialect=Dialect.NATIVE,
            ids=Ids.BY_HEADER,
            fixed_delay=False,
            max_delay_ms=LAST_INSTANT_MS,
            outcomes=outcomes,
        )
        self._outcome_ends: Ends = {}
        self._gateway = Gateway(_OneTopic(self._served, urls), _KafkaIfNamed(kafka), ask, _now_ms)
        self._letters = Letters(self._gateway)

    def pending(self, selection: RecordSelection) -> RecordPage:
        """See `TopicService.pending`."""
        return record_page(self._gateway.pending(self._served, selection.to_parameters(), selection.limit))

    def record(self, name: str, partition: int | None) -> PendingRecord:
        """See `TopicService.record`."""
        return self._gateway.record_with(self._served, name, partition)

    def endings(self, name: str, partition: int | None) -> OutcomePage:
        """See `TopicService.endings`."""
        return outcome_page(self._gateway.endings(self._written_to, name, partition))

    def move(self, name: str, partition: int | None, time: NewTime) -> Accepted:
        """See `TopicService.move`."""
        asked_ms = time.due_ms(_now_ms())
        record = self.record(name, partition)
        if record.content is None or all(header.name != DELIVER_ID for header in record.content.headers):
            raise ConflictError(f"the record {name} is written in a dialect that only its own clients write")
        moved = self._gateway.move(self._written_to, record, asked_ms)
        return Accepted(partition=moved.written.partition, offset=moved.written.offset, due_ms=moved.due_ms)

    def dead_letters(self, selection: DeadLetterSelection) -> DeadLetterPage:
        """See `TopicService.dead_letters`."""
        before = parse_cursor(selection.after) if selection.after is not None else None
        with self._naming_topics():
            return self._letters.page(self._served, {*selection.reason}, before, selection.limit)

    def dead_letter(self, place: Place) -> DeadLetterDocument:
        """See `TopicService.dead_letter`."""
        with self._naming_topics():
            return self._letters.at(self._served, place)

    def resend(self, resend: Resend) -> ResendResult:
        """See `TopicService.resend`."""
        with self._naming_topics():
            return self._letters.send(self._served, resend)

    @contextmanager
    def _naming_topics(self) -> Iterator[None]:
        """Tell how the dead-letter topic is named, where there is none of the name that was made up."""
        try:
            yield
        except TopicMissingError as error:
            if self._served.dead_letter != f"{self._served.name}.dlq":
                raise
            hint = "TOPIC is the source topic here, and --dead-letter names the dead-letter topic"
            raise TopicMissingError(f"{error}; {hint}") from error

    @property
    def asks_relays(self) -> bool:
        """See `TopicService.asks_relays`."""
        return bool(self._urls)

    def find(self, name: str) -> Found:
        """See `Relays.find`."""
        page = self.pending(RecordSelection(id=name))
        return Found(page.records, page.complete)

    def have_read(self, ends: Ends, seconds: float) -> bool:
        """See `Relays.have_read`."""
        positions: dict[int, int] = {}
        for shard in (shard for url in self._urls for shard in relay_status(url).shards):
            # Of two relays that both name a partition, one has it no more.
            positions[shard.partition] = min(shard.position, positions.get(shard.partition, shard.position))
        return all(positions.get(partition, -1) >= end for partition, end in ends.items())

    @property
    def everywhere(self) -> bool:
        """See `Commands.everywhere`."""
        return True

    def ends(self) -> Ends:
        """See `Commands.ends`."""
        # What is found pending after this has its outcome behind it.
        self._outcome_ends = self._gateway.outcome_ends(self._served)
        return self._cancels.ends()

    def cancel(self, places: Mapping[str, Sequence[int] | None]) -> Mapping[str, Mapping[int, int]]:
        """See `Commands.cancel`."""
        return self._cancels.cancel(places)

    def outcome(self, partition: int, offset: int, seconds: float) -> Outcome | None:
        """See `Commands.outcome`."""
        start, until_s = self._outcome_ends.get(partition), time.monotonic() + seconds
        while start is not None:
            left_s = max(0.0, until_s - time.monotonic())
            found = self._gateway.outcome(self._written_to, partition, offset, start, left_s)
            if found.outcome is not None or time.monotonic() >= until_s:
                return found.outcome
            start = found.next
        return None

    @cached_property
    def _written_to(self) -> ServedTopic:
        """The DelayTopic with its source topic, as far as relays tell it: its name need not be that of the topic."""
        if not self._urls:
            return self._served
        try:
            return replace(self._served, source=self._gateway.pending(self._served, {}, 0).source)
        except RelayUnreachableError:
            return self._served

    @cached_property
    def _cancels(self) -> KafkaCancels:
        # Whoever goes through a gateway needs no Kafka client.
        from delaytopic_gateway.reach.kafka_cancels import KafkaCancels  # noqa: PLC0415

        return KafkaCancels(_named(self._kafka), self._written_to.source)


@dataclass(frozen=True, slots=True)
class _OneTopic:
    """The `ServedTopics` of a command."""

    served: ServedTopic
    urls: Sequence[str]

    def all(self) -> Sequence[ServedTopic]:
        return [self.served]

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        if not self.urls:
            raise InputError("no relay: name its pages with --relay URL, or a gateway with --gateway")
        return self.urls

    def state(self, served: ServedTopic) -> State:
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class _KafkaIfNamed:
    """The `Cluster` of a command. Its client is imported when it is needed."""

    settings: Settings | None

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster().bootstrap_servers

    @property
    def letters(self) -> DeadLetterTopics:
        return self._cluster().letters

    @property
    def outcomes(self) -> OutcomeTopics:
        return self._cluster().outcomes

    def read(self, topic: str, last: int) -> Iterable[RawRecord]:
        return self._cluster().read(topic, last)

    def write(self, topic: str, record: OutgoingRecord, partition: int | None) -> Written:
        return self._cluster().write(topic, record, partition)

    def _cluster(self) -> Cluster:
        from delaytopic_gateway.kafka.cluster import KafkaCluster  # noqa: PLC0415

        return KafkaCluster(_named(self.settings))


def _named(kafka: Settings | None) -> Settings:
    if kafka is None:
        raise InputError("no Kafka: name one with --bootstrap-servers, or a gateway with --gateway")
    return kafka


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
