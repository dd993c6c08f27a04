"""Edge: records from options and lines, produced until Kafka has them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from delaytopic_api.records import (
    ACTION_CANCEL,
    DELIVER_ACTION,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_ID,
    DELIVER_TO,
    Headers,
)
from delaytopic_api.values import Duration
from delaytopic_cli.client.time_text import duration, instant_ms
from delaytopic_cli.errors import InputError, TopicError

FLUSH_TIMEOUT_SECONDS = 60.0
_REPORT_SECONDS = 1.0
NUMBER = "{n}"


@dataclass(slots=True)
class Sent:
    """The number of records that Kafka acknowledged, with the first and last due time; None: the DelayTopic decides."""

    records: int = 0
    first_due_ms: int | None = None
    last_due_ms: int | None = None

    def to_json(self) -> dict[str, int | None]:
        """Return the document that `-o json` prints."""
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
            raise self._error(self._refusal)
        if time.monotonic() >= self._next_report_s:
            self._next_report_s += _REPORT_SECONDS
            self._report(self.sent.records)

    def _error(self, error: KafkaError) -> TopicError:
        return TopicError(
            f"Kafka refused a record to {self._topic}: {error.str()}; {self.sent.records} records were sent before"
        )


class OutgoingRecord(NamedTuple):
    """A record to produce."""

    key: bytes | None
    value: bytes | None
    headers: Headers


class KeyedValue(NamedTuple):
    """A value, and the key that came with it, if any."""

    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of delivery: a moment, a delay, or the DelayTopic's default when both are None.

    With `spread_ms` the times are spread evenly over that span, from `at_ms` on.
    """

    at_ms: int | None = None
    after: Duration | None = None
    spread_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Addressing:
    """The common part of the records of one `send`. `key` and `schedule_id` may hold `{n}`, the record's number.

    Without a key the schedule's id is the key too: a later cancel must reach the same partition.
    """

    key: str | None = None
    schedule_id: str | None = None
    to: str | None = None
    headers: Sequence[tuple[str, str]] = ()


def values_of_lines(lines: Iterable[bytes], key_separator: str | None) -> Iterator[KeyedValue]:
    """Yield one value a line; with a separator, key and value. Raises InputError naming the line without separator."""
    separator = key_separator.encode() if key_separator else None
    for number, line in enumerate(lines, start=1):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        if separator is None:
            yield KeyedValue(None, content)
            continue
        key, found, value = content.partition(separator)
        if not found:
            raise InputError(f"line {number} of the input has no key separator {key_separator!r}")
        yield KeyedValue(key, value)


def generated_values(count: int, text: str | None) -> Iterator[KeyedValue]:
    """Yield `count` values: the text, with `{n}` replaced by 1, 2, ...; without a text `record 1`, `record 2`, ..."""
    for number in range(1, count + 1):
        yield KeyedValue(None, (text if text is not None else f"record {NUMBER}").replace(NUMBER, str(number)).encode())


def records_to_send(
    values: Iterable[KeyedValue], addressing: Addressing, timing: Timing, *, total: int | None = None
) -> Iterator[OutgoingRecord]:
    """Yield the records, numbered from 1. `total` is needed to spread them."""
    for number, (own_key, value) in enumerate(values, start=1):
        schedule_id = _numbered(addressing.schedule_id, number)
        key = own_key if own_key is not None else _numbered(addressing.key, number)
        yield OutgoingRecord(
            key if key is not None else schedule_id,
            value,
            [
                *((name, text.encode()) for name, text in addressing.headers),
                *time_headers(timing, number, total),
                *([(DELIVER_ID, schedule_id)] if schedule_id is not None else []),
                *([(DELIVER_TO, addressing.to.encode())] if addressing.to else []),
            ],
        )


def cancel_record(schedule_id: str, key: str | None) -> OutgoingRecord:
    """Return the command that ends the pending schedules of an id; by default the id is the key, as in `send`."""
    identity = schedule_id.encode()
    headers: Headers = [(DELIVER_ID, identity), (DELIVER_ACTION, ACTION_CANCEL)]
    return OutgoingRecord(key.encode() if key is not None else identity, None, headers)


def due_ms(headers: Headers, timestamp_ms: int) -> int | None:
    """Return a record's due time, given its timestamp; None when the DelayTopic decides, or refuses the record."""
    times = {name: value.decode("utf-8", "replace") for name, value in headers if value is not None}
    try:
        if DELIVER_AT in times:
            return instant_ms(times[DELIVER_AT])
        if DELIVER_AFTER in times:
            after = times[DELIVER_AFTER]
            return timestamp_ms + (int(after) if after.isdecimal() else duration(after).ms)
    except InputError:
        return None
    return None


def time_headers(timing: Timing, number: int = 1, total: int | None = None) -> Headers:
    """Return the headers that ask for a time of delivery; `number` and `total` place the record in a spread."""
    if timing.after is not None:
        return [(DELIVER_AFTER, timing.after.encode())]
    if timing.at_ms is None:
        return []
    share_ms = (timing.spread_ms or 0) * (number - 1) // max(1, (total or 1) - 1)
    return [(DELIVER_AT, b"%d" % (timing.at_ms + share_ms))]


def _numbered(text: str | None, number: int) -> bytes | None:
    return None if text is None else text.replace(NUMBER, str(number)).encode()
