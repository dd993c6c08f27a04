"""Edge: the producer of target and dead-letter topics, with transactions or without."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from delaytopic_api.records import RECEIPT
from delaytopic_process.kafka_log import client_logger
from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.entries import make_sender, plugin
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.batches import Batch, sender_of, source_of
from delaytopic_relay.delivery.outcomes import Places, Sent
from delaytopic_relay.delivery.refusals import OneByOne, Refusal
from delaytopic_relay.errors import (
    CommitUnknown,
    Fenced,
    ProducerOutdated,
    StateInDoubt,
    TransactionAborted,
    Unanswered,
)
from delaytopic_relay.kafka.settings import BEST_CODEC, NO_CODEC, Settings
from delaytopic_relay.kafka.source import offsets_of
from delaytopic_relay.kafka.timeouts import BoundedCalls
from delaytopic_relay.kafka.transactions import init_transactions, naming, raised_by_the_client
from delaytopic_relay.ports import GroupMetadata, InVain, never

if TYPE_CHECKING:
    from delaytopic_relay._speedups import Sender

COMMIT_TIMEOUT_S = 10.0
ABORT_TIMEOUT_S = 5.0
CAREFUL_S = 1.0
REPORT_TIMEOUT_S = 0.5
LOOKING_S = 3.0
"""The time to wait for an answer whether a topic is bad, when a transaction has failed."""
ASK_EACH_S = 0.1
"""The time between two looks at how many records are still not acknowledged."""
PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
ABOUT_THE_RECORD = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP, KafkaError._INVALID_ARG}
)
ABOUT_THE_TOPIC = frozenset(
    {
        KafkaError._MSG_TIMED_OUT,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
    }
)
"""No fault of the record: any other would fare alike, until somebody mends the topic."""
FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)

MOST_NAMED = 3
"""Topics in an error."""
MOST_ENDED = 64
"""Ids of before that are remembered: each shard's progress may name one, until the shard is recovered."""
ID_DIGITS = 8
"""The random end of a `transactional.id`."""

MakeSettings = Callable[[str | None], Settings]
"""Producer settings for a `transactional.id`, or for none."""

log = structlog.get_logger()

T = TypeVar("T")


class KafkaTarget:
    """Implements `Target`. With a `transactional_id`, whatever is sent is visible only once committed."""

    def __init__(
        self,
        make_settings: MakeSettings,
        source_topic: str,
        transactional_id: str | None,
        *,
        notes_places: bool = False,
    ) -> None:
        """Connect; with `notes_places` it is known where each record is, at the cost of a report for each.

        Raises `KafkaUnavailable` if the transaction coordinator does not answer.
        """
        self._places: dict[Sent, tuple[int, int]] | None = {} if notes_places else None
        self._make_settings = make_settings
        self._source_topic = source_topic
        self._id = transactional_id
        self._failures: list[Refusal] = []
        self._sent = 0
        """Records since the last flush."""
        self._silent: dict[tuple[str, int], set[int]] = defaultdict(set)
        """The source partitions whose records were given up, by the topic's partition that they were sent to."""
        self._purged: dict[tuple[str, int], set[int]] = defaultdict(set)
        """The same places of what the client gave up, as the transaction failed, or on request."""
        self._error: KafkaException | None = None
        """The reason why the transaction takes no further records."""
        self._aborts = False
        self._has_refused = False
        """A record of the open transaction was refused: what its partition was sent next has no place any more."""
        self._ended: deque[str] = deque(maxlen=MOST_ENDED)
        """Own ids of before whose last transaction is aborted, and which nobody uses any more."""
        self._needs_another_id = False
        self._bounded = BoundedCalls()
        self._abandoned: list[Producer] = []
        self._one_by_one = OneByOne()
        self._sender: Sender | None = None
        self._compresses = False
        """True if the producer compresses; then each that replaces it does, too."""
        self._largest_shared_bytes = 0
        """A record with a larger value has a batch of its own."""
        self._producer = self._new_producer()

    @property
    def owner(self) -> str:
        """The `transactional.id`; "" without transactions."""
        return self._id or ""

    def _new_producer(self) -> Producer:
        settings: dict[str, Any] = {**self._make_settings(self._id)}
        if self._compresses and settings["compression.type"] == NO_CODEC:
            settings["compression.type"] = BEST_CODEC
        self._compresses = settings["compression.type"] != NO_CODEC
        self._largest_shared_bytes = settings["batch.size"]
        settings["delivery.report.only.error"] = self._places is None
        if make_sender is not None:
            settings["plugin.library.paths"] = plugin
        producer = Producer(settings, logger=client_logger("target"))
        self._sender = make_sender() if make_sender is not None else None
        if self._id is not None:
            with naming(self._id):
                init_transactions(producer)
        return producer

    def begin(self) -> None:
        """Open a transaction."""
        if self._id is not None:
            self._guard(self._producer.begin_transaction)

    @property
    def packs(self) -> bool:
        """Return whether `send` takes batches of plain schedules, too."""
        return self._sender is not None and self._places is None

    def take_places(self) -> Places:
        """Return what was noted since; nothing unless places are noted."""
        taken = self._places or {}
        if self._places is not None:
            self._places = {}
        return taken

    def _produce_noting(self, *arguments: Any) -> None:
        """Produce a record with these arguments of the client's `produce`, and note where it is once acknowledged."""
        topic, value, key, partition, report, timestamp, *_, headers = arguments

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                report(error, message)
                return
            source, offset, dead = source_of(headers)
            at, place = message.partition(), message.offset()
            if self._places is None or source is None or offset is None or at is None or place is None:
                return
            self._places[Sent(topic, source, offset, dead)] = (at, place)

        self._producer.produce(topic, value, key, partition, on_delivery, timestamp, 0, headers)

    def compress(self) -> None:
        """Compress from now on. Raises `ProducerOutdated` where only `replace` can do so, as a transaction is open.

        The client's producers compress all that they send or nothing, and cannot be changed.
        """
        if self._compresses:
            return
        self._compresses = True
        log.info("compresses from now on", codec=BEST_CODEC)
        if self._id is not None or self._wait(never):
            raise ProducerOutdated("a record is due that fits its topic only if it is compressed")
        self._take_failures()
        self._producer = self._new_producer()

    def send(self, records: Sequence[Record | Batch]) -> None:
        """Produce; a full queue is waited for.

        In a transaction nothing more is sent once a record was refused: the tick is given up when it settles.
        """
        if not records:
            return
        careful = self._one_by_one.holds(time.monotonic_ns() // 1_000_000, may_begin=not self._failures)
        self._send(records, sender_of(records[0]), careful=careful)
        self._guard(partial(self._producer.poll, 0))

    def _send(self, records: Sequence[Record | Batch], sender: int, *, careful: bool) -> None:
        """All arguments go by position, which takes a third off the cost of the call."""
        produce: Any = self._producer.produce if self._places is None else self._produce_noting
        report = partial(self._on_failure, sender)
        shared_bytes = self._largest_shared_bytes
        for record in records:
            if (self._failures or self._error is not None) and self._id is not None:
                return
            if type(record) is Batch:
                self._send_batch(record, sender, careful=careful)
                continue
            self._sent += 1
            topic, value, key, headers, partition = record
            # What is alone in its batch is known when that is refused.
            known = careful or (value is not None and len(value) > shared_bytes)
            try:
                produce(topic, value, key, partition, self._tracker(record) if known else report, None, 0, headers)
            except BufferError:
                self._send_after_waiting(record, self._tracker(record) if known else report)
            except KafkaException as error:
                self._refused_at_once(record, error)
            if careful:
                # The broker refuses a whole batch for one record in it: each goes alone, while it answers.
                careful = not self._guard(partial(self._producer.flush, CAREFUL_S))

    def _send_batch(self, batch: Batch, sender: int, *, careful: bool) -> None:
        """Produce a batch; the record that the client does not take goes as others do, which waits, or says why."""
        schedules, place = batch.schedules, 0
        if careful or self._sender is None:
            self._send([*map(batch.record, schedules)], sender, careful=careful)
            return
        self._sent += len(schedules)
        while True:
            place = self._sender.produce(batch.topic, batch.partition, schedules, place, RECEIPT, *batch.receipt)
            if place == len(schedules):
                return
            self._send([batch.record(schedules[place])], sender, careful=False)
            self._sent -= 1
            if self._failures and self._id is not None:
                return
            place += 1

    def _take_failures(self) -> None:
        """Take note of records of batches that Kafka has refused; it is not known which they were."""
        for code, topic, partition, sender in self._sender.failures() if self._sender is not None else ():
            self._note_failure(KafkaError(code), topic, partition, sender)

    def _send_after_waiting(self, record: Record, report: Callable[[KafkaError | None, Message], None]) -> None:
        topic, value, key, headers, partition = record
        give_up_s = time.monotonic() + COMMIT_TIMEOUT_S
        produce: Any = self._producer.produce if self._places is None else self._produce_noting
        while True:
            self._guard(partial(self._producer.poll, 0.01))
            try:
                produce(topic, value, key, partition, report, None, 0, headers)
                return
            except BufferError as error:
                if time.monotonic() > give_up_s:
                    raise TransactionAborted("Kafka takes nothing: the send queue stays full") from error
            except KafkaException as error:
                self._refused_at_once(record, error)
                return

    def _refused_at_once(self, record: Record, exception: KafkaException) -> None:
        error: KafkaError = exception.args[0]
        if error.code() in ABOUT_THE_RECORD:
            self._failures.append(self._refusal(error, record))
            return
        if error.code() in ABOUT_THE_TOPIC:
            self._silent[record.topic, record.partition].add(sender_of(record))
            return
        # A refused record puts the transaction in error; its report may still be on the way.
        self._guard(partial(self._producer.poll, REPORT_TIMEOUT_S if error.code() == KafkaError._STATE else 0))
        if self._failures:
            return
        translated = self._translated(exception)
        if self._id is None or isinstance(translated, Fenced):
            raise translated from exception
        # The tick is given up when it settles, which tells why.
        self._error = exception

    def _on_failure(self, sender: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            partition = message.partition()
            self._note_failure(error, message.topic() or "", -1 if partition is None else partition, sender)

    def _note_failure(self, error: KafkaError, topic: str, partition: int, sender: int) -> None:
        if error.code() in PURGED:
            if not self._aborts:
                self._purged[topic, partition].add(sender)
        elif error.code() in ABOUT_THE_TOPIC:
            self._silent[topic, partition].add(sender)
        else:
            self._one_by_one.refused(known=False)
            self._failures.append(Refusal(f"{topic}: {error.str()}", error.code() == KafkaError.MSG_SIZE_TOO_LARGE))

    def _tracker(self, record: Record) -> Callable[[KafkaError | None, Message], None]:
        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is None:
                return
            if error.code() in PURGED or error.code() in ABOUT_THE_TOPIC:
                self._on_failure(sender_of(record), error, message)
            else:
                self._failures.append(self._refusal(error, record))

        return on_delivery

    def _refusal(self, error: KafkaError, record: Record) -> Refusal:
        text = f"{record.topic}: {error.str()}"
        if error.code() not in ABOUT_THE_RECORD:
            return Refusal(text, too_large=False)
        self._one_by_one.refused(known=True)
        partition, offset, dead_letter = source_of(record.headers)
        return Refusal(text, error.code() == KafkaError.MSG_SIZE_TOO_LARGE, partition, offset, dead_letter)

    def store(self, records: Sequence[Record]) -> None:
        """Store as `send` does: all is part of the transaction."""
        self.send(records)

    def flush(self, in_vain: InVain = never) -> list[Refusal]:
        """Flush, before the offsets are sent: the coordinator would say that the transaction is still being built."""
        left = self._wait(in_vain)
        self._take_failures()
        sent, self._sent = self._sent, 0
        gives_up = left > 0 and not self._failures
        if gives_up:
            self._give_up()
        failed = not self._failures and (self._error is not None or (bool(self._purged) and not gives_up))
        if self._silent or gives_up or (failed and _is_in_vain(in_vain)):
            self._needs_another_id = True
            if self._id is not None:
                self._ended.append(self._id)
            senders = {
                place: frozenset(self._silent[place] | self._purged[place]) for place in {*self._silent, *self._purged}
            }
            raise Unanswered(_told(senders, left), senders, acknowledged=left < sent and not failed)
        if self._error is not None and not self._failures:
            raise self._translated(self._error) from self._error
        failures, self._failures = self._failures, []
        self._has_refused = bool(failures)
        return failures

    def _wait(self, in_vain: InVain) -> int:
        """Wait for acknowledgements; return how many are missing after all."""
        begun_s = moved_s = time.monotonic()
        least = self._guard(partial(self._producer.flush, ASK_EACH_S))
        while least and not self._is_in_vain_by_a_refusal():
            left, now_s = self._guard(partial(self._producer.flush, ASK_EACH_S)), time.monotonic()
            silent_s = now_s - moved_s
            if left < least:
                least, moved_s, silent_s = left, now_s, 0.0
            if left and (now_s - begun_s > COMMIT_TIMEOUT_S or in_vain(int(silent_s * 1_000))):
                return left
        return least

    def _is_in_vain_by_a_refusal(self) -> bool:
        """Return whether a record was refused, after which the client sends nothing more in a transaction."""
        self._take_failures()
        return self._id is not None and bool(self._failures)

    def _give_up(self) -> None:
        """Give up what is not acknowledged, which tells what that is."""
        self._producer.purge()
        self._guard(partial(self._producer.flush, REPORT_TIMEOUT_S))
        self._take_failures()

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        """Offsets with their metadata, then the commit."""
        if progress:
            offsets = offsets_of(self._source_topic, progress)
            self._guard(lambda: self._send_offsets(offsets, group))
        try:
            self._guard(lambda: self._producer.commit_transaction(COMMIT_TIMEOUT_S))
        except (Fenced, TransactionAborted):
            raise
        except StateInDoubt as error:
            raise CommitUnknown(f"the outcome of the commit is not known: {error}") from error

    def _send_offsets(self, offsets: list[TopicPartition], group: GroupMetadata) -> None:
        send = partial(self._producer.send_offsets_to_transaction, offsets, group, COMMIT_TIMEOUT_S)
        try:
            self._bounded.run(send, COMMIT_TIMEOUT_S)
        except TimeoutError as error:
            self._abandoned.append(self._producer)
            raise CommitUnknown(f"the offsets were not taken into the transaction: {error}") from error

    def abort(self) -> None:
        """Abort what is open; what cannot be aborted now ends when the producer is replaced or fenced."""
        self._take_failures()
        self._forget_failures()
        if self._id is None or self._producer in self._abandoned:
            return
        if self._has_refused:
            # The client waits half a second and more until it has new numbers to send by, and fails for good at times
            # as it finds some skipped. Another producer begins at once.
            self._producer.purge()
            return
        self._aborts = True
        try:
            with raised_by_the_client():
                self._producer.abort_transaction(ABORT_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:
                log.warning("transaction not aborted", reason=error.args[0].str())
        finally:
            self._take_failures()
            self._aborts = False

    def _forget_failures(self) -> None:
        self._failures.clear()
        self._silent.clear()
        self._purged.clear()
        self.take_places()
        self._error, self._sent = None, 0

    def fence(self, owner: str) -> None:
        """`init_transactions` under the former owner's id bumps its epoch and aborts what it left open."""
        if owner in self._ended:
            return
        with naming(owner):
            try:
                init_transactions(Producer(self._make_settings(owner), logger=client_logger("target")))
            except KafkaException as error:
                if error.args[0].code() != KafkaError.CONCURRENT_TRANSACTIONS:
                    raise
                # Decided, and not ended in each partition: who reads what is committed waits where that is in doubt.
                log.info("the former owner's transaction cannot end yet", owner=owner)

    def replace(self) -> None:
        """A new producer under the same id, which fences the old one.

        It has another id where the old one's transaction cannot end: brokers end it in each partition that took part,
        and let the id begin no other before. One of them may not answer for long.
        """
        self._forget_failures()
        if self._id is not None and self._needs_another_id:
            self._id = f"{self._id[:-ID_DIGITS]}{uuid4().hex[:ID_DIGITS]}"
        self._needs_another_id = True
        self._producer = self._new_producer()
        self._needs_another_id = self._has_refused = False

    def close(self) -> None:
        """Do nothing: after `flush` no record is left to send."""
        self._producer.purge()

    def _guard(self, call: Callable[[], T]) -> T:
        try:
            with raised_by_the_client():
                return call()
        except KafkaException as error:
            raise self._translated(error) from error

    def _translated(self, exception: KafkaException) -> StateInDoubt:
        error: KafkaError = exception.args[0]
        if error.code() in FENCED:
            return Fenced(error.str())
        if error.fatal():
            return Fenced(f"the producer failed for good: {error.str()}")
        if error.txn_requires_abort() or self._id is None:
            return TransactionAborted(error.str())
        return CommitUnknown(error.str())


def _is_in_vain(in_vain: InVain) -> bool:
    """Have it looked up, and wait for the answer."""
    give_up_s = time.monotonic() + LOOKING_S
    while (found := in_vain(int(COMMIT_TIMEOUT_S * 1_000))) is None and time.monotonic() < give_up_s:
        time.sleep(ASK_EACH_S / 10)
    return bool(found)


def _told(places: Mapping[tuple[str, int], frozenset[int]], records: int) -> str:
    named = [topic if partition < 0 else f"{topic}[{partition}]" for topic, partition in sorted(places)]
    shown = ", ".join([*named[:MOST_NAMED], *(["others"] if len(named) > MOST_NAMED else [])])
    return (
        f"{records} records were not acknowledged by {shown}" if named else f"{records} records were not acknowledged"
    )
