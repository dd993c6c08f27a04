"""Edge: reads dead-letter topics, and produces dead letters again in transactions."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # public names, re-exported

from delaytopic.settling import is_moving, settled
from delaytopic_gateway.client.dead_letters import (
    Choice,
    Outcome,
    Place,
    Progress,
    SecondSending,
    StoredRecord,
    missing_part,
    second_sending,
)
from delaytopic_gateway.client.kafka_clients import (
    FENCED,
    FRUGAL,
    Refused,
    Settings,
    committed_reader,
    flush,
    headers_of,
    noting,
    partitions_of,
    producer,
    raised_by_the_client,
    transactional,
)
from delaytopic_gateway.client.topics import QUIET
from delaytopic_gateway.errors import (
    ConflictError,
    KafkaUnreachableError,
    RightMissingError,
    SupersededError,
    TopicError,
)
from delaytopic_process.errors import InputError, ProgramError

PREFIX = "delaytopic-resend."
"""Begins the names of the consumer group and of the transactional ids; the topic's name follows."""
BATCH_RECORDS = 500
BATCH_BYTES = 8 << 20
MOST_METADATA = 4_000
"""Characters that a broker keeps beside an offset, but for a few (`offset.metadata.max.bytes`)."""
MOST_OF_PLACES = 3_000
"""The most of these places: what is sent by reasons and sources has to find room beside single places."""
TIMEOUT_SECONDS = 30.0
_GATHER_SECONDS = 0.05
_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "READ on topic {topic}",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "READ on group {group}",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "WRITE on transactional id {group}/all",
}


def committed_ends(
    settings: Settings, topic: str, partitions: int | None = None, admin: AdminClient | None = None
) -> dict[int, int]:
    """Return the end of each partition as a reader of committed records sees it now; `admin` asks, if it is there."""
    count = partitions if partitions is not None else partitions_of(settings, topic)
    return _offsets(settings, topic, range(count), OffsetSpec.latest(), admin)  # type: ignore[no-untyped-call]


def beginnings(
    settings: Settings, topic: str, partitions: Iterable[int], admin: AdminClient | None = None
) -> dict[int, int]:
    """Return the first offset of each partition that is still there; `admin` asks, if it is there."""
    return _offsets(settings, topic, partitions, OffsetSpec.earliest(), admin)  # type: ignore[no-untyped-call]


def _offsets(
    settings: Settings, topic: str, partitions: Iterable[int], of: OffsetSpec, admin: AdminClient | None = None
) -> dict[int, int]:
    places = {TopicPartition(topic, partition): of for partition in partitions}
    # A client that has nothing to do counts as false.
    asked = admin if admin is not None else AdminClient(dict(settings), logger=QUIET)

    def ask() -> dict[int, int]:
        found = asked.list_offsets(
            places, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT_SECONDS
        )
        return {place.partition: future.result().offset for place, future in found.items()}

    try:
        return settled(ask, TIMEOUT_SECONDS)
    except KafkaException as error:
        raise _translated(error.args[0], topic) from error


def group_of(topic: str) -> str:
    """Return the consumer group that remembers what was sent again of a dead-letter topic."""
    return f"{PREFIX}{topic}"


def committed_progress(consumer: Consumer, topic: str, ends: Mapping[int, int]) -> dict[int, Progress]:
    """Return what was sent again of each partition; of none where nothing is remembered.

    Raises TopicError where it is of another topic of this name, and InputError where it cannot be read.
    """
    found = _committed(consumer, topic, ends)
    if all(each.offset < 0 for each in found):
        return {}
    progress = {each.partition: Progress.parse(each.metadata) for each in found}
    for partition, each in progress.items():
        if each.end > ends[partition]:
            raise TopicError(
                f"more of partition {partition} of {topic} was sent again than it has: it was made anew; "
                f"delete the consumer group {group_of(topic)}, and all of the topic is sent"
            )
    return progress


def _committed(consumer: Consumer, topic: str, partitions: Iterable[int]) -> list[TopicPartition]:
    """Return what the group has committed, when it has a coordinator. Raises `ProgramError`s."""
    places = [TopicPartition(topic, each) for each in partitions]

    def ask() -> list[TopicPartition]:
        found = consumer.committed(places, TIMEOUT_SECONDS)
        if (error := next((each.error for each in found if each.error is not None), None)) is not None:
            raise KafkaException(error)
        return found

    try:
        return settled(ask, TIMEOUT_SECONDS)
    except KafkaException as error:
        raise _translated(error.args[0], topic) from error


def read_records(
    consumer: Consumer, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[StoredRecord]:
    """Yield the committed records of each partition from its start to its end; a partition without a start is left out.

    The consumer hands out events at the ends of partitions. Raises KafkaUnreachableError when nothing comes in time.
    """
    pending = {partition for partition, start in starts.items() if start < ends[partition]}
    consumer.assign([TopicPartition(topic, partition, starts[partition]) for partition in pending])
    silent_s = 0.0
    while pending:
        messages = consumer.consume(BATCH_RECORDS, _GATHER_SECONDS)
        silent_s = 0.0 if messages else silent_s + _GATHER_SECONDS
        if silent_s > TIMEOUT_SECONDS:
            raise KafkaUnreachableError(f"partitions {sorted(pending)} of {topic} do not answer")
        for message in messages:
            partition, offset, error = message.partition() or 0, message.offset() or 0, message.error()
            if error is not None and error.code() in _RIGHTS:
                raise _translated(error, topic)
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaUnreachableError(f"reading stopped: {error.str()}")
            if error is None and partition in pending and offset < ends[partition]:
                yield _stored(message, Place(partition, offset))
            if error is not None or offset >= ends[partition] - 1:
                pending.discard(partition)


def _stored(message: Message, place: Place) -> StoredRecord:
    try:
        headers = headers_of(message)
    except (SystemError, UnicodeDecodeError):
        headers = None
    return StoredRecord(place, message.timestamp()[1], message.key(), message.value(), headers)


@dataclass(slots=True)
class _Batch:
    """Records of one transaction. `positions` are the offsets behind what was read of each partition.

    `chosen` are all that were read and chosen, those among them that were sent before, too.
    """

    records: list[tuple[Place, SecondSending]] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)
    chosen: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    size: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.records) >= BATCH_RECORDS or self.size >= BATCH_BYTES


class Resending:
    """Sends dead letters of one topic again. `outcome` is exact whenever and however the sending ends.

    All that send from one topic, here and elsewhere, have one transactional id: the youngest fences the others, and
    begins with what they have committed. So none sends what another has sent.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        choice: Choice,
        *,
        dry_run: bool = False,
        most: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """A dry run counts what would be sent, and writes nothing.

        All end with `most` records, or after so many seconds of reading.
        """
        self.outcome = Outcome()
        self.group = group_of(topic)
        self._settings, self._topic, self._choice = settings, topic, choice
        self._dry_run = dry_run
        self._most, self._seconds = most, seconds
        self._producer: Producer | None = None
        self._partitions = 0
        self._progress: dict[int, Progress] = {}
        self._membership: Any = None

    @property
    def has_begun(self) -> bool:
        """Tell whether something may have been sent."""
        return self._producer is not None

    def send_all(self) -> None:
        """Send what was not sent by an earlier call. The records and the progress past them are one transaction."""
        ends = committed_ends(self._settings, self._topic)
        self._start_producer()
        self._learn_progress(ends)
        with closing(self._reader()) as consumer:
            starts = {partition: each.start(self._choice) for partition, each in self._progress.items()}
            give_up_s = time.monotonic() + self._seconds if self._seconds is not None else math.inf
            batch = _Batch()
            for record in read_records(consumer, self._topic, starts, ends):
                partition, offset = record.place
                if not self._progress[partition].covers(offset, record.letter):
                    self._add(batch, record)
                batch.positions[partition] = offset + 1
                if self._choice.takes(record.letter):
                    batch.chosen[partition].add(offset)
                if self._is_enough(batch) or time.monotonic() > give_up_s:
                    self.outcome.complete = False
                    break
                if batch.is_full:
                    full, batch = batch, _Batch()
                    self._commit(full)
            self._commit(batch)

    def send_places(self, places: Sequence[Place]) -> None:
        """Send the records of these places in one transaction, but for those that were sent before.

        Raises InputError where one of them has none.
        """
        ends = committed_ends(self._settings, self._topic)
        beyond = [place for place in places if place.offset >= ends.get(place.partition, 0)]
        if beyond:
            raise self._missing(beyond)
        with closing(self._reader()) as consumer:
            found = self._records_at(consumer, set(places))
            if missing := sorted(set(places) - found.keys()):
                raise self._missing(missing)
            batch = _Batch()
            for _, record in sorted(found.items()):
                self._add(batch, record)
            if self.outcome.incomplete:
                told = [f"{place} cannot be sent again: {why}" for place, why in self.outcome.incomplete.items()]
                raise InputError("\n".join(told))
        self._start_producer()
        self._learn_progress(ends)
        self.outcome.sent_before = [
            place for place in found if self._progress[place.partition].covers(place.offset, found[place].letter)
        ]
        batch.records = [each for each in batch.records if each[0] not in self.outcome.sent_before]
        self._commit(batch)

    def _records_at(self, consumer: Consumer, places: Set[Place]) -> dict[Place, StoredRecord]:
        """Return those of them that there are. Raises InputError where they are too large or far apart for one call."""
        last = {partition: max(at for each, at in places if each == partition) + 1 for partition, _ in places}
        first = {partition: min(at for each, at in places if each == partition) for partition, _ in places}
        give_up_s = time.monotonic() + self._seconds if self._seconds is not None else math.inf
        found, size = dict[Place, StoredRecord](), 0
        for record in read_records(consumer, self._topic, first, last):
            if record.place in places and self._choice.is_of_source(record.letter):
                found[record.place] = record
                size += len(record.key or b"") + len(record.value or b"")
            if len(found) > 1 and size > BATCH_BYTES:
                raise InputError(f"these have more than {BATCH_BYTES >> 20} MiB: send fewer at a time")
            if time.monotonic() > give_up_s:
                raise InputError(f"what lies between these is not read in {self._seconds:.0f} s: send fewer at a time")
        return found

    def _missing(self, places: Sequence[Place]) -> InputError:
        return InputError(f"{self._topic} has no record at {', '.join(map(str, places))}")

    def _reader(self) -> Consumer:
        return committed_reader({**self._settings, **FRUGAL, "group.id": self.group}, at_end_events=True)

    def _start_producer(self) -> None:
        """Fence all others, whose progress is final from then on."""
        if self._dry_run:
            return
        own = transactional(f"{self.group}/all", int(TIMEOUT_SECONDS * 1000))
        self._producer = producer({**self._settings, **own}, self._topic)
        with self._translating():
            self._producer.init_transactions(TIMEOUT_SECONDS)

    def _learn_progress(self, ends: Mapping[int, int]) -> None:
        # Not with the consumer that reads: one that was asked for committed offsets begins to fetch a second later.
        with closing(self._reader()) as consumer:
            known = committed_progress(consumer, self._topic, ends)
            self._membership = consumer.consumer_group_metadata()
        self.outcome.from_first = not known
        self._progress = known or dict.fromkeys(ends, Progress())

    def _is_enough(self, batch: _Batch) -> bool:
        return self._most is not None and len(self.outcome.sent) + len(batch.records) >= self._most

    def _add(self, batch: _Batch, record: StoredRecord) -> None:
        """Put a record into the batch if it is chosen and complete."""
        if not self._choice.takes(record.letter):
            return
        missing = missing_part(record)
        if missing is not None:
            self.outcome.incomplete[record.place] = missing
            return
        self._partitions = self._partitions or partitions_of(self._settings, self._choice.source)
        sending = second_sending(record, self._choice, self._partitions)
        batch.records.append((record.place, sending))
        batch.size += len(sending.value or b"")

    def _commit(self, batch: _Batch) -> None:
        """Produce a batch and commit it, with the progress behind it. Without positions: of single places."""
        behind = self._behind(batch)
        producer = self._producer
        if producer is not None and (batch.records or behind):
            with self._translating(), self._transaction(producer, len(batch.records)):
                self._produce(producer, batch)
                if behind:
                    offsets = [
                        TopicPartition(self._topic, partition, each.end, each.metadata)
                        for partition, each in behind.items()
                    ]
                    producer.send_offsets_to_transaction(offsets, self._membership, TIMEOUT_SECONDS)
        self.outcome.sent += [place for place, _ in batch.records]
        self.outcome.in_doubt = 0
        self._progress.update(behind)

    def _behind(self, batch: _Batch) -> dict[int, Progress]:
        single = defaultdict[int, set[int]](set)
        for place, _ in batch.records if not batch.positions else ():
            single[place.partition].add(place.offset)
        behind = {
            partition: self._progress[partition].advanced(offset, self._choice, batch.chosen[partition])
            for partition, offset in batch.positions.items()
        } | {partition: self._progress[partition].with_places(offsets) for partition, offsets in single.items()}
        for partition, progress in behind.items():
            if len(progress.metadata) > (MOST_OF_PLACES if single else MOST_METADATA):
                raise ConflictError(
                    f"so many single ones of partition {partition} of {self._topic} were sent again that Kafka cannot "
                    "remember further ones beside an offset: send all, or all of a reason, which takes no room for each"
                )
        return behind

    @contextmanager
    def _transaction(self, producer: Producer, records: int) -> Iterator[None]:
        producer.begin_transaction()
        try:
            yield
            self.outcome.in_doubt = records
            producer.commit_transaction(TIMEOUT_SECONDS)
        except BaseException:
            with suppress(KafkaException, SystemError):
                producer.abort_transaction(TIMEOUT_SECONDS)
                self.outcome.in_doubt = 0
            raise

    def _produce(self, producer: Producer, batch: _Batch) -> None:
        refused: Refused[Place] = []
        topic = self._choice.source
        for place, (partition, key, value, headers) in batch.records:
            number = -1 if partition is None else partition
            try:
                producer.produce(topic, value, key, number, on_delivery=noting(refused, place), headers=[*headers])
            except KafkaException as exception:
                refused.append((place, exception.args[0]))
                break
        remaining = flush(producer, refused, TIMEOUT_SECONDS)
        if refused:
            place, error = _at_fault(refused, batch)
            if error.code() in FENCED:
                raise KafkaException(error)
            needs = "; this login needs WRITE on the topic" if error.code() in _RIGHTS else ""
            raise TopicError(f"Kafka refused {place}: {error.str()}{needs}")
        if remaining:
            raise KafkaUnreachableError(f"Kafka did not acknowledge {remaining} records in {TIMEOUT_SECONDS:.0f} s")

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            with raised_by_the_client():
                yield
        except KafkaException as error:
            raise _translated(error.args[0], self._topic) from error


def _at_fault(refused: Refused[Place], batch: _Batch) -> tuple[Place, KafkaError]:
    """Return the record to blame: of several too large ones, which may have shared a request, the largest."""
    if refused[0][1].code() != KafkaError.MSG_SIZE_TOO_LARGE:
        return refused[0]
    sizes = {place: len(sending.value or b"") for place, sending in batch.records}
    return max(refused, key=lambda each: sizes[each[0]])


def _translated(error: KafkaError, topic: str) -> ProgramError:
    if error.code() in FENCED:
        return SupersededError(f"another dead-letters resend of {topic} has started after this one, which ends for it")
    if error.retriable() or is_moving(error) or error.code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}:
        return KafkaUnreachableError(f"Kafka does not answer: {error.str()}")
    needed = _RIGHTS.get(error.code())
    if needed is None:
        return TopicError(f"Kafka refused: {error.str()}")
    needs = needed.format(topic=topic, group=group_of(topic))
    return RightMissingError(f"Kafka refused: {error.str()}; this login needs {needs}")
