"""A DelayTopic under test: send to it, move the clock on, and see what has arrived, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol
from uuid import uuid4
from zlib import crc32

from confluent_kafka import Producer, TopicPartition

from delaytopic.client import DelayedTopic
from delaytopic_api import RecurringRecord, Settings
from delaytopic_api.policy import recurring_refusals
from delaytopic_api.records import RESTATED, Receipt, parse_dead_letter
from delaytopic_gateway.client.kafka_clients import bounds, committed_reader, partitions_of
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.client.time_text import span_ms
from delaytopic_gateway.client.topic_reader import read_topic
from delaytopic_gateway.client.watching import receipt_of
from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_process.errors import InputError, ProgramError

_TIMEOUT_SECONDS: Final = 30.0
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Clock(Protocol):
    """The part of a session's clock that a DelayTopic needs."""

    def now_ms(self) -> int:
        """Return what it shows."""
        ...


class Session(Protocol):
    """The part of a session that a DelayTopic needs."""

    settings: dict[str, str]

    @property
    def clock(self) -> Clock:
        """The clock of the session."""
        ...

    def advance(self, duration_ms: int) -> None:
        """Move it on."""
        ...

    def counts_from_ms(self, timestamp_ms: int) -> int:
        """Return what it showed at a time of the machine's."""
        ...

    def settle(self, topic: KnownTopic, ends: dict[int, int]) -> None:
        """Wait until what is due has left, of what lies below these offsets."""
        ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record that was delivered. Times are those of the clock that the test moves."""

    text: str
    """The value, as UTF-8."""
    value: bytes | None
    key: bytes | None
    headers: Mapping[str, bytes | None]
    due: datetime
    """The time at which it was to be delivered."""
    waited: timedelta
    """The delay that it was sent with: the time from when it was produced until it was due."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be delivered, and why."""

    text: str
    reason: str
    detail: str


class TopicUnderTest:
    """One DelayTopic, as one test sees it: what was produced before the test began is none of its."""

    def __init__(
        self, session: Session, known: KnownTopic, settings: Settings, recurring: Mapping[str, RecurringRecord]
    ) -> None:
        """The test begins now; `recurring` are the RecurringRecords of its file, by name."""
        self._session = session
        self._known = known
        self._settings = settings
        self._recurring = recurring
        self._recur: set[str] = set()
        self._partitions = partitions_of(session.settings, known.source)
        self._producer = Producer({**session.settings, "linger.ms": 0})
        self._topic = DelayedTopic(self._producer, known.source)
        self._began = self._ends()
        self.bootstrap_servers = session.settings["bootstrap.servers"]
        self.source = known.source
        self.target = known.target

    @property
    def now(self) -> datetime:
        """The time that the clock shows."""
        return _EPOCH + timedelta(milliseconds=self._session.clock.now_ms())

    def send(self, value: str | bytes | None, *, after: str | timedelta | None = None, **options: Any) -> None:
        """Send a record, as an application does; `options` are those of `delaytopic.client`: id, key, at, headers.

        A delay is a timedelta, or text such as "7d" or "1h30m".
        """
        wait = timedelta(milliseconds=_ms(after)) if after is not None else None
        self._topic.schedule(value, after=wait, on_delivery=_raise, **options)
        self._flush()

    def recur(self, name: str) -> str:
        """Write the record of a RecurringRecord of the file, as an operator does; return its id, for `cancel`.

        Raises InputError where the file has none of this name, and where it would not recur.
        """
        record = self._recurring.get(name)
        if record is None:
            known = ", ".join(self._recurring) or "none"
            raise InputError(f"the file has no RecurringRecord {name} for {self._known.name}; it has: {known}")
        now_ms = self._session.clock.now_ms()
        refused = next(recurring_refusals(record, self._settings, now_ms), None)
        if refused is not None:
            raise InputError(f"{refused.subject}: {refused.path}: {refused.message}")
        spec, identity = record.spec, str(uuid4())
        self._producer.produce(
            self.source,
            spec.value,
            spec.key,
            crc32(identity.encode()) % self._partitions,
            headers=[*spec.headers_of(identity.encode(), now_ms)],
            on_delivery=_raise,
        )
        self._flush()
        self._recur.add(identity)
        return identity

    def cancel(self, id: str | bytes, *, key: str | bytes | None = None) -> None:
        """Cancel the pending record with this id, or what recurs under it."""
        self._topic.cancel(id, key=key, everywhere=id in self._recur, on_delivery=_raise)
        self._flush()

    def advance(self, duration: str | timedelta) -> None:
        """Move the clock on, by a timedelta or text such as "7d" or "6d 23h"; then what is due by it has arrived."""
        self._settle()
        self._session.advance(_ms(duration))

    def arrived(self) -> list[Arrival]:
        """Return what was delivered to the target, of what was produced in this test, in the order of its due times.

        What was due in one advance arrives at its end, each record with its own due time.
        """
        self._settle()
        origins = self._origins()
        found = [(receipt, record) for record, receipt in self._received() if self._is_ours(receipt, origins)]
        found.sort(key=lambda each: (each[0].due_ms, each[0].partition, each[0].offset))
        return [self._arrival(receipt, record) for receipt, record in found]

    def dead_letters(self) -> list[DeadLetter]:
        """Return what could not be delivered, of what was produced in this test."""
        self._settle()
        letters, origins = [], self._origins()
        for record in read_topic(self._session.settings, self._known.dead_letter):
            letter = parse_dead_letter([*record.headers])
            if letter is not None and self._began_here(letter.partition, letter.offset, origins):
                letters.append(DeadLetter(_text(record.value), letter.reason, letter.detail))
        return letters

    def _received(self) -> list[tuple[RawRecord, Receipt]]:
        records = read_topic(self._session.settings, self._known.target)
        return [(each, receipt) for each in records if (receipt := receipt_of([*each.headers])) is not None]

    def _is_ours(self, receipt: Receipt, origins: Mapping[tuple[int, int], int]) -> bool:
        return receipt.topic == self._known.source and self._began_here(receipt.partition, receipt.offset, origins)

    def _began_here(self, partition: int, offset: int, origins: Mapping[tuple[int, int], int]) -> bool:
        """Return whether a record was produced in this test, or follows one that was."""
        while (origin := origins.get((partition, offset))) is not None:
            offset = origin
        return offset >= self._began.get(partition, 0)

    def _origins(self) -> dict[tuple[int, int], int]:
        """Return the offset that each record follows which a relay has written into the source: what recurs goes on
        through the tests behind the one that sent it.
        """
        origins: dict[tuple[int, int], int] = {}
        for each in read_topic(self._session.settings, self._known.source):
            origin = (dict(each.headers).get(RESTATED) or b"").split(b":", 3)[2:3]
            # Somebody else may have written such a header: what a record follows lies before it.
            if origin and origin[0].isdigit() and int(origin[0]) < each.at.offset:
                origins[each.at.partition, each.at.offset] = int(origin[0])
        return origins

    def _arrival(self, receipt: Receipt, record: RawRecord) -> Arrival:
        timestamp_ms = receipt.timestamp_ms
        counts_from_ms = self._session.counts_from_ms(timestamp_ms) if timestamp_ms is not None else receipt.due_ms
        return Arrival(
            text=_text(record.value),
            value=record.value,
            key=record.key,
            headers=dict(record.headers),
            due=_EPOCH + timedelta(milliseconds=receipt.due_ms),
            waited=timedelta(milliseconds=receipt.due_ms - counts_from_ms),
        )

    def _settle(self) -> None:
        ends = self._ends()
        self._session.settle(self._known, ends)
        # What recurs is written into the source again, as often as it is resolved or delivered.
        while (later := self._ends()) != ends:
            ends = later
            self._session.settle(self._known, ends)

    def _ends(self) -> dict[int, int]:
        reader = committed_reader(self._session.settings)
        try:
            return {
                each: bounds(reader, TopicPartition(self._known.source, each))[1] for each in range(self._partitions)
            }
        finally:
            reader.close()

    def _flush(self) -> None:
        if self._producer.flush(_TIMEOUT_SECONDS):
            raise SendError(f"Kafka has not acknowledged a record of {self._known.source} for {_TIMEOUT_SECONDS:g} s")


class SendError(ProgramError):
    """Kafka refused a record, or did not answer."""


def _raise(error: Any, _: Any) -> None:
    if error is not None:
        raise SendError(f"Kafka refused a record: {error}")


def _ms(duration: str | timedelta) -> int:
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    return span_ms(duration.replace(" ", ""))


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
