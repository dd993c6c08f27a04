"""Edge: records produced until Kafka has them all."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from delaytopic_api.records import Headers
from delaytopic_gateway.client.new_records import OutgoingRecord, due_ms, records_text
from delaytopic_gateway.errors import TopicError
from delaytopic_process.errors import InputError

FLUSH_TIMEOUT_SECONDS = 60.0
_REPORT_SECONDS = 1.0
_SLICE_SECONDS = 0.2
"""The producer does not hear signals while it waits."""


@dataclass(slots=True)
class Sent:
    """The number of records that Kafka acknowledged, with the first and last due time; None: the DelayTopic decides."""

    records: int = 0
    first_due_ms: int | None = None
    last_due_ms: int | None = None
    interrupted: bool = False
    """True if the sender was told to stop before the last record: those sent are the first ones."""

    def to_json(self) -> dict[str, int | None]:
        """Return the document that `-o json` prints."""
        facts = asdict(self)
        return {
            "sent": facts["records"],
            "firstDueMs": facts["first_due_ms"],
            "lastDueMs": facts["last_due_ms"],
            "interrupted": facts["interrupted"],
        }


class Interruption:
    """Ctrl-C while records are sent: what was begun is completed and counted. A second one ends the wait for Kafka.

    As a context it takes the signal over. Only while the next record is read does the signal end a call; elsewhere it
    would cost the acknowledgement that is being counted.
    """

    def __init__(self) -> None:
        self.times = 0
        self._reading = False
        self._former: Any = None

    def __enter__(self) -> Self:
        """Take the signal over."""
        self._former = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        signal.signal(signal.SIGINT, self._former)

    def _note(self, *_: object) -> None:
        self.times += 1
        if self._reading:
            raise KeyboardInterrupt

    def read(self, records: Iterable[OutgoingRecord]) -> Iterator[OutgoingRecord]:
        """Yield the records until the signal comes."""
        iterator = iter(records)
        while not self.times:
            try:
                self._reading = True
                record = next(iterator, None)
            except KeyboardInterrupt:
                return
            finally:
                self._reading = False
            if record is None:
                return
            yield record


class Sending:
    """Produces to one topic; a record counts when it is acknowledged. The first refusal ends it."""

    def __init__(self, producer: Producer, topic: str, *, report: Callable[[int], None] = lambda _: None) -> None:
        """`report` gets the number acknowledged so far about once a second."""
        self.sent = Sent()
        self._producer = producer
        self._topic = topic
        self._report = report
        self._refusal: KafkaError | None = None
        self._next_report_s = time.monotonic() + _REPORT_SECONDS

    def send_all(self, records: Iterable[OutgoingRecord], interruption: Interruption | None = None) -> Sent:
        """Produce all and wait for Kafka.

        Raises TopicError when a record is refused or not acknowledged in time, and the InputError of a record that
        cannot be made; both with the number of those that were sent before.
        """
        interruption = interruption or Interruption()
        try:
            for record in interruption.read(records):
                self._produce(record)
                self._check()
        except InputError as error:
            self._flush(interruption)
            raise InputError(f"{error}; {self._before()}") from error
        except TopicError as error:
            self._flush(interruption)
            raise TopicError(f"{error}; {self._before()}") from error
        remaining = self._flush(interruption)
        self.sent.interrupted = interruption.times > 0
        if self._refusal is not None:
            raise TopicError(f"{self._refused(self._refusal)}; {self._before()}")
        if remaining:
            raise TopicError(
                f"Kafka has not acknowledged {remaining} of the records to {self._topic} in time; they may arrive "
                f"still; {self._before()}"
            )
        return self.sent

    def _flush(self, interruption: Interruption) -> int:
        """Wait for acknowledgements; returns how many are missing at the end."""
        give_up_s = time.monotonic() + FLUSH_TIMEOUT_SECONDS
        while (remaining := self._producer.flush(_SLICE_SECONDS)) and time.monotonic() < give_up_s:
            if interruption.times > 1:
                break
        return remaining

    def _produce(self, record: OutgoingRecord) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    on_delivery=partial(self._acknowledged, record.headers),
                    headers=[*record.headers],
                )
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise TopicError(self._refused(error.args[0])) from error
            else:
                self._producer.poll(0)
                return

    def _acknowledged(self, headers: Headers, error: KafkaError | None, message: Message) -> None:
        """Take a delivery report; it does not bring the headers along."""
        if error is not None:
            self._refusal = self._refusal or error
            return
        sent, due = self.sent, due_ms(headers, message.timestamp()[1])
        sent.records += 1
        if due is not None:
            sent.first_due_ms = due if sent.first_due_ms is None else min(due, sent.first_due_ms)
            sent.last_due_ms = due if sent.last_due_ms is None else max(due, sent.last_due_ms)

    def _check(self) -> None:
        if self._refusal is not None:
            raise TopicError(self._refused(self._refusal))
        if time.monotonic() >= self._next_report_s:
            self._next_report_s += _REPORT_SECONDS
            self._report(self.sent.records)

    def _refused(self, error: KafkaError) -> str:
        return f"Kafka refused a record to {self._topic}: {error.str()}"

    def _before(self) -> str:
        return "nothing was sent" if not self.sent.records else f"{records_text(self.sent.records)} sent before"
