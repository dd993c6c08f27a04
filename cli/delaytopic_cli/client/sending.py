"""Edge: producing records and waiting until Kafka has them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from delaytopic_api.records import Headers
from delaytopic_cli.client.records import OutgoingRecord, due_ms
from delaytopic_cli.errors import TopicError

FLUSH_TIMEOUT_SECONDS = 60.0
_REPORT_SECONDS = 1.0


@dataclass(slots=True)
class Sent:
    """How many records Kafka has acknowledged, and when the first and last are due; None: the DelayTopic decides."""

    records: int = 0
    first_due_ms: int | None = None
    last_due_ms: int | None = None

    def to_json(self) -> dict[str, int | None]:
        """As `-o json` prints it."""
        facts = asdict(self)
        return {"sent": facts["records"], "firstDueMs": facts["first_due_ms"], "lastDueMs": facts["last_due_ms"]}


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

    def send_all(self, records: Iterable[OutgoingRecord]) -> Sent:
        """Produce all and wait for Kafka. Raises TopicError when a record is refused or not acknowledged in time."""
        for record in records:
            self._produce(record)
            self._check()
        remaining = self._producer.flush(FLUSH_TIMEOUT_SECONDS)
        self._check()
        if remaining:
            raise TopicError(
                f"Kafka has not acknowledged {remaining} of the records to {self._topic} "
                f"within {FLUSH_TIMEOUT_SECONDS:.0f} s; they may arrive still"
            )
        return self.sent

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
                raise self._error(error.args[0]) from error
            else:
                self._producer.poll(0)
                return

    def _acknowledged(self, headers: Headers, error: KafkaError | None, message: Message) -> None:
        """A delivery report; it does not bring the headers along."""
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
            raise self._error(self._refusal)
        if time.monotonic() >= self._next_report_s:
            self._next_report_s += _REPORT_SECONDS
            self._report(self.sent.records)

    def _error(self, error: KafkaError) -> TopicError:
        return TopicError(
            f"Kafka refused a record to {self._topic}: {error.str()}; {self.sent.records} records were sent before"
        )
