"""The documents of the gateway's own REST. Times are epoch milliseconds. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Base64Bytes, Field, field_validator

from delaytopic_api.documents.model import Model
from delaytopic_api.records import (
    CONTROL_HEADERS,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_EXPIRES_AT,
    DELIVER_ID,
    DELIVER_TO,
    LAST_INSTANT_MS,
    objection_to_instant,
)
from delaytopic_api.records import Headers as RecordHeaders
from delaytopic_api.recurrence import Missed
from delaytopic_api.relay import DEFAULT_LIMIT, MOST_LISTED, Outcome, PendingRecord
from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.client.pending import LAST_OFFSET, LAST_PARTITION, PendingReport, Place
from delaytopic_gateway.client.recurring import RecurrenceOptions, explained
from delaytopic_gateway.client.time_text import duration, instant_ms, meant_ms, span_ms
from delaytopic_gateway.kafka.endings import Endings
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_gateway.service.state import UNKNOWN, AuditDocument, ReadyDocument, State
from delaytopic_process.errors import InputError

Time = Annotated[int | str, Field(examples=[1_795_269_686_270, "2026-11-21T09:30:00+01:00"])]
"""Epoch milliseconds, or RFC 3339 with an offset."""


def _meant(number: int | None) -> int | None:
    objection = objection_to_instant(number) if number is not None else None
    if objection is not None:
        raise ValueError(objection)
    return number


EpochMs = Annotated[int | None, Field(ge=0), AfterValidator(_meant)]
Text = Annotated[str | None, Field(max_length=1_024)]
Span = Annotated[str, Field(examples=["90s", "1h30m"])]


class ClockDocument(Model):
    """The clock of `delaytopic local --clock manual`."""

    now_ms: int
    """The time that it shows."""
    shift_ms: int
    """The time by which it is ahead of the machine's."""


class Advance(Model):
    """A move of the clock."""

    advance: Annotated[str, Field(examples=["7d", "1h30m"], max_length=40)]
    """The time by which it goes on: a duration, days (d) and weeks (w) included."""

    @property
    def duration_ms(self) -> int:
        """The milliseconds. Raises `InputError`."""
        return span_ms(self.advance)


class ErrorDocument(Model):
    """The reason why a request was not carried out."""

    message: str
    """A sentence that names what is wrong, and what to do."""


class DueCount(Model):
    """Records that are due up to so many milliseconds ahead, and after the one before."""

    ahead_ms: int
    """The end of the span, from now."""
    records: int
    """The number of records that wait in it."""


class DelayTopicDocument(Model):
    """A DelayTopic, and what waits in it."""

    namespace: str
    """Its namespace."""
    name: str
    """Its name."""
    source: str
    """The topic that producers write to."""
    target: str
    """The topic that records are delivered to."""
    dead_letter: str
    """The topic of records that cannot be delivered."""
    outcomes: str | None = None
    """The topic that tells how schedules ended; null where relays write none."""
    dialect: str
    """The way in which records say when they are due."""
    can_schedule: bool
    """True if records can be written here."""
    can_cancel: bool
    """True if records with an id can be cancelled here."""
    can_move: bool
    """True if records with an id can get another time here."""
    pending: int | None
    """Taken in and not yet delivered; null when no relay answers."""
    overdue: int | None = None
    """Due and not yet delivered."""
    next_due_ms: int | None = None
    """The nearest due time."""
    ingest_lag: int | None = None
    """Records of the source that are not read yet."""
    due_histogram: list[DueCount] = Field([])
    """The times at which records that wait are due."""
    lateness_p99_ms: int | None = Field(None, alias="latenessP99Ms")
    """99 of 100 records of the last half minute were at most this late; null where the gateway does not measure it."""
    ready: ReadyDocument | None = None
    """The condition Ready; null without an operator."""
    audit: AuditDocument | None = None
    """The audit's last verdict; null when there is none."""
    notes: list[str] = Field([])
    """Remarks on what is not known, with the reason."""


class RecordPage(Model):
    """The number of records that wait in a DelayTopic, and its first records in the order of delivery."""

    delay_topic: str
    """Its namespace and name."""
    source: str
    """The topic that producers write to."""
    pending: int
    """Taken in and not yet delivered; with `partition`, of this partition."""
    overdue: int
    """Due and not yet delivered."""
    next_due_ms: int | None
    """The nearest due time."""
    ingest_lag: int
    """Records of the source that are not read yet."""
    due_histogram: list[DueCount]
    """The times at which records that wait are due."""
    records: list[PendingRecord]
    """The first that were asked for."""
    next: str | None
    """Give it as `after` for the next page; null when there is none."""
    complete: bool
    """True if everything that was asked for is in this page."""
    notes: list[str]
    """The reason why it is not complete."""


class RecordSelection(Model):
    """The pending records that are listed: those that fit all that is given."""

    due_from: EpochMs = None
    """Due at this time or later, in epoch milliseconds."""
    due_before: EpochMs = None
    """Due before this time."""
    partition: Annotated[int | None, Field(ge=0, lt=1 << 31)] = None
    """The source partition of those that are listed."""
    id: Text = None
    """The id of those that are listed."""
    id_prefix: Text = None
    """The beginning of the ids of those that are listed."""
    key: Text = None
    """The key of those that are listed."""
    key_prefix: Text = None
    """The beginning of the keys of those that are listed."""
    after: Annotated[str | None, Field(pattern=r"^[0-9]{1,15}:[0-9]{1,10}:[0-9]{1,19}$")] = None
    """The `next` of the page before."""
    limit: Annotated[int, Field(ge=0, le=MOST_LISTED)] = DEFAULT_LIMIT
    """The first so many; with 0 the counts alone."""
    contents: bool = False
    """True: keys, values and headers are listed, too."""

    @field_validator("after")
    @classmethod
    def _is_a_place(cls, after: str | None) -> str | None:
        if after is not None and any(
            int(number) > most
            for number, most in zip(after.split(":"), (LAST_INSTANT_MS, LAST_PARTITION, LAST_OFFSET), strict=True)
        ):
            raise ValueError("it is the `next` of a page")
        return after

    def to_parameters(self) -> dict[str, int | str]:
        """Return the parameters of a relay's `GET /pending`, without the limit."""
        given = self.model_dump(by_alias=True, exclude={"limit", "contents"}, exclude_none=True)
        return {**given, "contents": "true"} if self.contents else given


class HeaderDocument(Model):
    """A header of a new record."""

    name: str = Field(min_length=1, max_length=256)
    """Its name; none that says when or where to deliver."""
    value: str | None = None
    """Its value as text."""
    value_base64: Base64Bytes | None = None
    """Its value, where it is no text."""


class NewRecord(Model):
    """A record to schedule: when, what, and to where."""

    deliver_at: Time | None = None
    """The time at which it is due."""
    deliver_after: Span | None = None
    """The time from now until it is due."""
    id: str | None = Field(None, min_length=1, max_length=256)
    """The id by which it can be cancelled and replaced. Without a key it is the key, too."""
    key: str | None = None
    """Its key as text."""
    key_base64: Base64Bytes | None = None
    """Its key, where it is no text."""
    value: str | None = None
    """Its value as text."""
    value_base64: Base64Bytes | None = None
    """Its value, where it is no text."""
    headers: list[HeaderDocument] = Field([], max_length=200)
    """Its own headers."""
    target: str | None = Field(None, min_length=1, max_length=249)
    """Another topic to deliver it to."""
    expires_at: Time | None = None
    """The last time at which its delivery is of use."""
    cron: Text = None
    """Again and again: a cron expression of five fields, or of six with seconds first. Each rule needs an id."""
    every: Text = None
    """Again and again: an interval."""
    ladder: Text = None
    """Durations before `deliverAt`, between commas: it is delivered at each of them."""
    time_zone: Text = None
    """The IANA name of the zone of `cron`, of the days of `ladder`, or of a `deliverAt` without an offset."""
    begin: Time | None = None
    """No occurrence before it."""
    until: Time | None = None
    """No occurrence after it."""
    times: Annotated[int | None, Field(ge=1, lt=1_000_000_000)] = None
    """The number of occurrences."""
    jitter: Text = None
    """Occurrences are put off by less than this duration."""
    missed: Missed | None = None
    """The policy for times that are past when their turn comes; by default `Latest`."""
    catch_up: Text = None
    """The time that `missed: All` goes back, a duration."""

    def to_record(self) -> OutgoingRecord:
        """Return the record to produce. Raises `InputError` that names the field."""
        key = _one("key", self.key, self.key_base64)
        headers: RecordHeaders = [
            (header.name, _one(f"headers.{header.name}", header.value, header.value_base64)) for header in self.headers
        ]
        for name, _ in headers:
            if name in CONTROL_HEADERS:
                raise InputError(f"headers: {name} is written by the gateway; use its field")
        if self.deliver_at is not None and self.deliver_after is not None:
            raise InputError("deliverAt and deliverAfter are given: one of them is enough")
        if self.deliver_at is not None:
            local = isinstance(self.deliver_at, str) and self.time_zone is not None
            at = str(self.deliver_at).encode() if local else b"%d" % time_ms("deliverAt", self.deliver_at)
            headers.append((DELIVER_AT, at))
        if self.deliver_after is not None:
            headers.append((DELIVER_AFTER, duration(self.deliver_after).encode()))
        if self.expires_at is not None:
            headers.append((DELIVER_EXPIRES_AT, b"%d" % time_ms("expiresAt", self.expires_at)))
        if self.target is not None:
            headers.append((DELIVER_TO, self.target.encode()))
        if self.id is not None:
            headers.append((DELIVER_ID, self.id.encode()))
            key = self.id.encode() if key is None else key
        rule = self._rule()
        if rule:
            headers += rule
            # Whether it is over already is for the relay to say, which knows the record's timestamp.
            explained(dict(headers), 0, most=1)
        return OutgoingRecord(key, _one("value", self.value, self.value_base64), headers)

    def _rule(self) -> RecordHeaders:
        """Return the headers of recurrence."""
        begin, until = (
            None if time is None else str(time_ms(name, time))
            for name, time in (("begin", self.begin), ("until", self.until))
        )
        return RecurrenceOptions(
            cron=self.cron,
            every=self.every,
            ladder=self.ladder,
            tz=self.time_zone,
            begin=begin,
            until=until,
            times=self.times,
            jitter=self.jitter,
            missed=self.missed,
            catch_up=self.catch_up,
        ).headers()


class NewTime(Model):
    """Another time for a pending record; neither field: now."""

    deliver_at: Time | None = None
    """The time at which it is due."""
    deliver_after: Span | None = None
    """The time from now until it is due."""

    def due_ms(self, now_ms: int) -> int:
        """Return the due time. Raises `InputError`."""
        if self.deliver_at is not None and self.deliver_after is not None:
            raise InputError("deliverAt and deliverAfter are given: one of them is enough")
        if self.deliver_at is not None:
            return time_ms("deliverAt", self.deliver_at)
        return now_ms + (duration(self.deliver_after).ms if self.deliver_after is not None else 0)


class Accepted(Model):
    """A record that Kafka has: a relay carries it out when it has read it."""

    partition: int
    """Its source partition."""
    offset: int
    """Its source offset."""
    due_ms: int | None = None
    """The time at which it is due; null for a cancel, or when the DelayTopic decides."""
    outcomes_from: int | None = None
    """The offset of the topic of outcomes, in the partition of this number, from which on its answer lies."""
    outcome: str | None = None
    """The address, below that of the gateway, that tells the end of the schedule: of this one, or of the one that this
    cancels or moves. Null where relays write no outcomes, or where they end could not be read."""


class OutcomeAwaited(Model):
    """A schedule whose end is not known yet."""

    outcome: None = None
    """Null, where an outcome has the way in which it ended."""
    next: str
    """The address to ask next, below that of the gateway: what was read is not read again."""
    expired: int = 0
    """The number of outcomes that retention has deleted unread: if it ended in one of them, nobody can tell."""


class OutcomePage(Model):
    """The ends of schedules with one id, the last one first."""

    outcomes: list[Outcome]
    """The outcomes of the id among the newest of the topic."""
    looked_at: int
    """The number of its offsets that were looked at."""
    complete: bool
    """True if the topic holds no older ones."""


def time_ms(field: str, time: int | str) -> int:
    """Return epoch milliseconds. Raises `InputError` that names the field."""
    try:
        found = meant_ms(time) if isinstance(time, int) else instant_ms(time)
    except InputError as error:
        raise InputError(f"{field}: {error}") from error
    if not 0 <= found <= LAST_INSTANT_MS:
        raise InputError(f"{field}: {found} is no time between 1970 and 9999")
    return found


def place_text(place: Place | None) -> str | None:
    """Return a place as `after` takes it."""
    return None if place is None else ":".join(map(str, place))


def delay_topic_document(
    served: ServedTopic, report: PendingReport | None, note: str | None = None, state: State = UNKNOWN
) -> DelayTopicDocument:
    """Return a DelayTopic with what its relays say; `note` tells why there is no report."""
    return DelayTopicDocument(
        namespace=served.namespace,
        name=served.name,
        source=served.source,
        target=served.target,
        dead_letter=served.dead_letter,
        outcomes=served.outcomes,
        dialect=str(served.dialect),
        can_schedule=served.may_schedule,
        can_cancel=served.may_cancel,
        can_move=served.may_move,
        pending=report.pending if report is not None else None,
        overdue=report.overdue if report is not None else None,
        next_due_ms=report.next_due_ms if report is not None else None,
        ingest_lag=report.ingest_lag if report is not None else None,
        due_histogram=_due_counts(report.histogram if report is not None else ()),
        lateness_p99_ms=round(state.late_p99_ms) if state.late_p99_ms not in (None, math.inf) else None,
        ready=state.ready,
        audit=state.audit,
        notes=[note] if note is not None else [*(report.notes if report is not None else ())],
    )


def record_page(report: PendingReport) -> RecordPage:
    """Return a page of records."""
    return RecordPage(
        delay_topic=report.delay_topic,
        source=report.source,
        pending=report.pending,
        overdue=report.overdue,
        next_due_ms=report.next_due_ms,
        ingest_lag=report.ingest_lag,
        due_histogram=_due_counts(report.histogram),
        records=[*report.records],
        next=place_text(report.next_after),
        complete=report.complete,
        notes=[*report.notes],
    )


def outcome_page(found: Endings) -> OutcomePage:
    """Return the ends of an id as a page."""
    return OutcomePage(outcomes=[*found.outcomes], looked_at=found.looked_at, complete=found.is_whole)


def _due_counts(histogram: Sequence[tuple[int, int]]) -> list[DueCount]:
    return [DueCount(ahead_ms=ahead_ms, records=records) for ahead_ms, records in histogram]


def _one(field: str, text: str | None, encoded: bytes | None) -> bytes | None:
    if text is not None and encoded is not None:
        raise InputError(f"{field} and {field}Base64 are given: one of them is enough")
    return encoded if text is None else text.encode()
