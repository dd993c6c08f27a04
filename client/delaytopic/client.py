"""Schedule, replace and cancel records of a DelayTopic, through a producer of confluent-kafka.

    delayed = DelayedTopic(Producer({"bootstrap.servers": "kafka:9092"}), "shop.reminders.delayed")
    delayed.schedule(b"pay your order", id="order-17", after=timedelta(hours=1))
    delayed.cancel("order-17")

Again and again, and by the clocks of a zone:

    delayed.schedule(b"report", id="report-4", cron="0 9 * * mon-fri", tz="Europe/Berlin")
    delayed.schedule(b"ping", id="ping", every=timedelta(minutes=5), count=12)
    delayed.schedule(b"your stay", id="stay-8", at=datetime(2027, 3, 28, 15), tz="Europe/Berlin", ladder=["7d", "1d"])

With the topic of outcomes, a cancel says whether it won, to threads and to coroutines:

    outcomes = Outcomes({"bootstrap.servers": "kafka:9092"}, "shop.reminders.outcomes")
    delayed = DelayedTopic(producer, "shop.reminders.delayed", outcomes=outcomes)
    match delayed.cancel("order-17").result():  # or: await delayed.cancel("order-17")
        case Cancelled():
            print("nothing is delivered")

What is written is the record contract: `docs/reference/record-contract.md`. The import brings no library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, overload

from delaytopic.outcomes import Answer, Cancelled, CancelRefusedError, NotPending, Outcome, Place, TooLate
from delaytopic.reading import AnswerFuture, AnswerTimeoutError, Outcomes, OutcomesUnreadableError, best_of
from delaytopic_api.records import (
    ACTION_CANCEL,
    CONTROL_HEADERS,
    DELIVER_ACTION,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_CATCH_UP,
    DELIVER_COUNT,
    DELIVER_CRON,
    DELIVER_EVERY,
    DELIVER_EXPIRES_AT,
    DELIVER_FROM,
    DELIVER_ID,
    DELIVER_JITTER,
    DELIVER_LADDER,
    DELIVER_MISSED,
    DELIVER_REQUESTED_BY,
    DELIVER_TO,
    DELIVER_TZ,
    DELIVER_UNTIL,
    LAST_INSTANT_MS,
    Headers,
    objection_to_instant,
)

__all__ = [
    "Answer",
    "AnswerFuture",
    "AnswerTimeoutError",
    "CancelRefusedError",
    "Cancelled",
    "DelayedTopic",
    "NotPending",
    "Outcome",
    "Outcomes",
    "OutcomesUnreadableError",
    "Place",
    "ProducerLike",
    "Scheduled",
    "TooLate",
    "partition_of",
]

LONGEST_ID_BYTES: Final = 256
METADATA_TIMEOUT_S: Final = 10.0
ANSWER_TIMEOUT_S: Final = 10.0
METADATA_FRESH_S: Final = 300.0
"""The time after which the topic is asked again for its partitions; clients of Kafka do so by default, too."""
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

Text = str | bytes
Delivered = Callable[[Any, Any], None]
"""Called with an error or None, and the message, as confluent-kafka does."""


class ProducerLike(Protocol):
    """The part of `confluent_kafka.Producer` that is used."""

    def produce(self, topic: str, *args: Any, **kwargs: Any) -> Any:
        """Queue one record."""
        ...

    def poll(self, *args: Any, **kwargs: Any) -> Any:
        """Call the callbacks of records that Kafka has acknowledged."""
        ...

    def list_topics(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the cluster knows of topics."""
        ...


class Scheduled:
    """A record that was sent: its id, its key, and its place once Kafka has acknowledged it."""

    __slots__ = ("_on_delivery", "_topic", "id", "key", "place")

    def __init__(self, topic: DelayedTopic, id: Text | None, key: Text | None, on_delivery: Delivered | None) -> None:
        self._topic = topic
        self._on_delivery = on_delivery
        self.id = id
        self.key = key
        self.place: Place | None = None
        """Its place in the source; None until `poll` or `flush` of the producer has told it."""

    def cancel(self, *, timeout: float = ANSWER_TIMEOUT_S) -> AnswerFuture:
        """Withdraw this record; the answer is about this one, not about one that has replaced it meanwhile.

        The cancel goes by the id, so that it ends a replacement, too: `TooLate.cancelled` is its end then. Raises
        ValueError for a record without an id.
        """
        if self.id is None:
            raise ValueError("this record was sent without an id; only records with an id can be cancelled")
        return self._topic._cancel(self.id, self.key, None, timeout, self)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.place = Place(message.topic(), message.partition(), message.offset())
        if self._on_delivery is not None:
            self._on_delivery(error, message)


class DelayedTopic:
    """The source topic of a DelayTopic, to send to.

    Relays keep ids per partition, so all that is sent with one id has to reach one partition. Each record that has a
    key goes to the partition that Java's producers choose for it, whatever `partitioner` this producer is set to:
    producers of all languages can replace and cancel what others scheduled.

    Methods queue a record as `produce` does, and raise what it raises: BufferError when the queue is full. Call the
    producer's `poll` and `flush` as usual. Safe in several threads where the producer is.
    """

    def __init__(
        self,
        producer: ProducerLike,
        topic: str,
        *,
        outcomes: Outcomes | None = None,
        requested_by: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask nothing yet: the number of partitions is asked for with the first record that has a key.

        `outcomes` reads the topic that `spec.outcomes` of the DelayTopic names, for the answers to cancels.
        `requested_by` goes with each record, and is told by the outcome of what the record ends: a text of 1 to 256
        bytes that names who asks. Raises ValueError for another one.
        """
        self._producer = producer
        self._topic = topic
        self._outcomes = outcomes
        self._requested_by: Headers = _requested_by(requested_by)
        self._clock = clock
        self._partitions = 0
        self._fresh_until_s = 0.0

    def schedule(  # noqa: PLR0913  # all but the value by name
        self,
        value: Text | None,
        *,
        key: Text | None = None,
        id: Text | None = None,
        at: datetime | int | None = None,
        after: timedelta | None = None,
        to: str | None = None,
        expires_at: datetime | int | None = None,
        cron: str | None = None,
        every: timedelta | None = None,
        ladder: Sequence[timedelta | str] = (),
        tz: str | None = None,
        begin: datetime | int | None = None,
        until: datetime | int | None = None,
        count: int | None = None,
        jitter: timedelta | None = None,
        missed: str | None = None,
        catch_up: timedelta | None = None,
        headers: Sequence[tuple[str, Text | None]] = (),
        on_delivery: Delivered | None = None,
    ) -> Scheduled:
        """Send a record that is delivered at a time, or after a delay; with neither, as the DelayTopic says.

        Times are datetimes with a zone, or epoch milliseconds. `id` names the schedule, so that a later record can
        replace or cancel it; the key is the id unless one is given, and has to be the same then. Raises ValueError for
        what the relay would refuse, and for a number that looks like seconds.

        `cron`, `every` or `ladder` deliver it again and again, the latter at these lengths before `at` (`timedelta(0)`
        is `at` itself; in text such as "7d" days are those of the calendar of `tz`). `tz` is the IANA name of the zone
        of `cron`, or of an `at` that has none itself: relays reckon by that zone's clocks. `begin`, `until` and `count`
        bound what recurs, `jitter` spreads it. `missed` ("Latest", "All" within `catch_up`, or "None") is for times
        that are past when a relay gets to them. All of these need an `id`.
        """
        if at is not None and after is not None:
            raise ValueError("set at or after, not both")
        taken = sorted({name for name, _ in headers} & CONTROL_HEADERS)
        if taken:
            raise ValueError(f"the headers {', '.join(taken)} are set by the arguments of this method")
        control: Headers = []
        if at is not None:
            control.append((DELIVER_AT, _local(at) if tz is not None and _is_local(at) else _instant("at", at)))
        if after is not None:
            control.append((DELIVER_AFTER, _delay(after)))
        if id is not None:
            control.append((DELIVER_ID, _identity(id)))
        if to is not None:
            control.append((DELIVER_TO, to.encode("ascii")))
        if expires_at is not None:
            control.append((DELIVER_EXPIRES_AT, _instant("expires_at", expires_at)))
        recurring = _recurring(
            {
                DELIVER_CRON: None if cron is None else cron.encode(),
                DELIVER_EVERY: None if every is None else _length("every", every),
                DELIVER_LADDER: b",".join(map(_rung, ladder)) or None,
                DELIVER_TZ: None if tz is None else tz.encode(),
                DELIVER_FROM: None if begin is None else _instant("begin", begin),
                DELIVER_UNTIL: None if until is None else _instant("until", until),
                DELIVER_COUNT: None if count is None else b"%d" % count,
                DELIVER_JITTER: None if jitter is None else _length("jitter", jitter),
                DELIVER_MISSED: None if missed is None else missed.encode(),
                DELIVER_CATCH_UP: None if catch_up is None else _length("catch_up", catch_up),
            }
        )
        if recurring:
            _check_recurring([*control, *recurring], id)
        control += recurring
        own: Headers = [(name, _bytes(content)) for name, content in headers]
        sent = Scheduled(self, id, key if key is not None else id, on_delivery)
        self._produce(value, _bytes(sent.key), [*own, *control], sent._delivered)
        return sent

    def replace(self, value: Text | None, *, id: Text, **options: Any) -> Scheduled:
        """Send a record that takes the place of the pending one with this id; `options` are those of `schedule`.

        The old record is dropped when this one is read, whatever both are due. If it has been delivered already, this
        one is delivered in addition.
        """
        return self.schedule(value, id=id, **options)

    def cancel(
        self,
        id: Text,
        *,
        key: Text | None = None,
        everywhere: bool = False,
        on_delivery: Delivered | None = None,
        timeout: float = ANSWER_TIMEOUT_S,
    ) -> AnswerFuture:
        """Withdraw the pending record with this id; `key` is the one that it was sent with, if that is not the id.

        With `everywhere` the cancel goes to each partition, and `on_delivery` is called for each: so it meets a record
        that recurs, and stays where it was sent, after the topic has got more partitions, and one that another client
        sent without a key. The answer is then the best of all: that it won, or else that it came too late.

        A cancel of what has been delivered does nothing. The future has the answer: `Cancelled`, `TooLate` or
        `NotPending`, within `timeout` seconds; it needs `outcomes`. To learn where they end, Kafka is asked before the
        cancel is sent, which takes one round trip; raises OutcomesUnreadableError where it cannot be, and nothing was
        sent. While answers are awaited, the thread that reads them calls `poll` of the producer, too.
        """
        if everywhere:
            partitions = range(self._partition_count())
            return best_of([self._cancel(id, key, on_delivery, timeout, None, each) for each in partitions])
        return self._cancel(id, key, on_delivery, timeout, None)

    def _cancel(
        self,
        id: Text,
        key: Text | None,
        on_delivery: Delivered | None,
        timeout: float,
        sent: Scheduled | None,
        partition: int | None = None,
    ) -> AnswerFuture:
        name = _identity(id)
        known = _bytes(key if key is not None else id)
        control: Headers = [(DELIVER_ID, name), (DELIVER_ACTION, ACTION_CANCEL)]
        outcomes = self._outcomes
        if outcomes is None:
            self._produce(None, known, control, on_delivery, partition)
            return _unanswered()
        asked_of = self._partition_of(known) if partition is None else partition
        asked = outcomes.ask(name, asked_of, timeout, self._producer.poll)

        def delivered(error: Any, message: Any) -> None:
            # What was sent before it into the same partition is acknowledged before it.
            outcomes.sent(asked, error, message, sent.place if sent is not None else None)
            if on_delivery is not None:
                on_delivery(error, message)

        try:
            self._produce(None, known, control, delivered, partition)
        except BaseException:
            outcomes.forget(asked)
            raise
        return asked.future

    def _produce(
        self,
        value: Text | None,
        key: bytes | None,
        headers: Headers,
        on_delivery: Delivered | None,
        partition: int | None = None,
    ) -> None:
        arguments: dict[str, Any] = {"on_delivery": on_delivery} if on_delivery is not None else {}
        if partition is not None:
            arguments["partition"] = partition
        elif key is not None:
            arguments["partition"] = self._partition_of(key)
        self._producer.produce(
            self._topic, value=_bytes(value), key=key, headers=[*headers, *self._requested_by], **arguments
        )

    def _partition_of(self, key: bytes) -> int:
        return partition_of(key, self._partition_count())

    def _partition_count(self) -> int:
        if self._clock() >= self._fresh_until_s:
            found = self._producer.list_topics(self._topic, timeout=METADATA_TIMEOUT_S).topics[self._topic]
            if found.error is not None or not found.partitions:
                raise ValueError(f"the topic {self._topic} cannot be sent to: {found.error or 'it has no partition'}")
            self._partitions = len(found.partitions)
            self._fresh_until_s = self._clock() + METADATA_FRESH_S
        return self._partitions


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition that producers in Java choose for a key: Kafka's murmur2."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> int:
    """Return the hash that `org.apache.kafka.common.utils.Utils.murmur2` computes, without its sign."""
    length = len(data)
    mixed = 0x9747B28C ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        mixed = mixed * 0x5BD1E995 & 0xFFFFFFFF ^ word
    if whole < length:
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return mixed ^ mixed >> 15


def _unanswered() -> AnswerFuture:
    """Return the answer to a cancel whose outcome nobody reads."""
    future = AnswerFuture()
    future.set_exception(
        OutcomesUnreadableError(
            "the cancel was sent, and nobody reads what became of it: spec.outcomes of the DelayTopic names a topic, "
            "and DelayedTopic(..., outcomes=Outcomes(settings, topic)) reads it"
        )
    )
    return future


@overload
def _bytes(text: Text) -> bytes: ...
@overload
def _bytes(text: Text | None) -> bytes | None: ...
def _bytes(text: Text | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _requested_by(name: str | None) -> Headers:
    if name is None:
        return []
    if not 1 <= len(name.encode()) <= LONGEST_ID_BYTES:
        raise ValueError(f"requested_by has 1 to {LONGEST_ID_BYTES} bytes")
    return [(DELIVER_REQUESTED_BY, name.encode())]


def _identity(id: Text) -> bytes:
    identity = _bytes(id)
    if not identity or len(identity) > LONGEST_ID_BYTES:
        raise ValueError(f"an id has 1 to {LONGEST_ID_BYTES} bytes")
    return identity


def _instant(name: str, moment: datetime | int) -> bytes:
    if isinstance(moment, int):
        objection = objection_to_instant(moment)
        if objection is not None:
            raise ValueError(f"{name}: {objection}")
        milliseconds = moment
    elif moment.utcoffset() is None:
        raise ValueError(f"{name} has no time zone: write datetime.now(UTC) + ..., or epoch milliseconds")
    else:
        # Rounded up: nothing is due before the moment that was meant.
        milliseconds = -((_EPOCH - moment) // _MILLISECOND)
    if not 0 <= milliseconds <= LAST_INSTANT_MS:
        raise ValueError(f"{name} is not between 1970 and the year 9999")
    return b"%d" % milliseconds


def _delay(after: timedelta) -> bytes:
    return _length("after", after)


def _length(name: str, length: timedelta) -> bytes:
    if length < timedelta(0):
        raise ValueError(f"{name} is negative")
    return b"%d" % -(-length // _MILLISECOND)


def _rung(length: timedelta | str) -> bytes:
    if isinstance(length, str):
        return length.encode()
    # Not as days, which are those of a calendar: a length of Python knows none.
    parts, rest = [], int(_length("a rung of ladder", length))
    for unit_ms, unit in ((3_600_000, b"h"), (60_000, b"m"), (1_000, b"s"), (1, b"ms")):
        number, rest = divmod(rest, unit_ms)
        if number:
            parts.append(b"%d%b" % (number, unit))
    return b"".join(parts) or b"0s"


def _is_local(at: datetime | int) -> bool:
    return not isinstance(at, int) and at.utcoffset() is None


def _local(at: datetime | int) -> bytes:
    """Write a time that a zone's clocks show."""
    assert isinstance(at, datetime)
    return at.isoformat().encode()


def _recurring(headers: dict[str, bytes | None]) -> Headers:
    return [(name, content) for name, content in headers.items() if content is not None]


def _check_recurring(control: Headers, id: Text | None) -> None:
    """Raise ValueError for what relays refuse of a record that recurs, or that is due by a zone's clocks."""
    # It brings a library, which nobody else needs.
    from delaytopic_api.recurrence import RecurrenceError, read_recurrence  # noqa: PLC0415

    if id is None:
        raise ValueError("a record that recurs, or that is due by the clocks of a zone, needs an id")
    try:
        read_recurrence(dict(control), time.time_ns() // 1_000_000)
    except RecurrenceError as error:
        raise ValueError(error.detail) from error
