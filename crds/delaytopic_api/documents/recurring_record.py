"""RecurringRecord, a record that recurs as a document: it is written to the source of a DelayTopic, and kept there."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from delaytopic_api.documents.metadata import ApiVersion, NamespacedMetadata
from delaytopic_api.documents.model import Model, exactly_one, require
from delaytopic_api.documents.status import Condition, StatusPart
from delaytopic_api.errors import BrokenRules, InvalidText, Problem
from delaytopic_api.records import (
    DELIVER_CATCH_UP,
    DELIVER_CRON,
    DELIVER_EVERY,
    DELIVER_FROM,
    DELIVER_ID,
    DELIVER_JITTER,
    DELIVER_MISSED,
    DELIVER_TZ,
    DELIVER_UNTIL,
)
from delaytopic_api.recurrence import Missed, RecurrenceError, read_recurrence
from delaytopic_api.values.choices import OnRemoval
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.duration import Duration, between
from delaytopic_api.values.lists import as_map
from delaytopic_api.values.names import ObjectName
from delaytopic_api.values.time_zone import TimeZone
from delaytopic_api.values.whole_minute import WholeMinute

FIVE_FIELDS: Final = r"^\S+( \S+){4}$"
"""The form of a rule in five fields. Nothing recurs more often than once a minute: between two slots there is time to
replace what waits."""
OWN_PREFIXES: Final = ("deliver-", "delay-")


def _five_fields(text: str) -> str:
    if re.fullmatch(FIVE_FIELDS.strip("^$"), text, re.ASCII) is None:
        raise InvalidText(
            f'"{text}" is not a cron expression of five fields with one space between two (0 9 * * mon-fri)'
        )
    return text


def _none_of_ours(headers: dict[str, str]) -> dict[str, str]:
    named = next((name for name in headers if name.startswith(OWN_PREFIXES)), None)
    if named is not None:
        raise InvalidText(f'"{named}" begins as headers do that relays read or write: deliver- or delay-')
    return headers


CronExpression = Annotated[str, Checked(_five_fields, maxLength=256, pattern=FIVE_FIELDS)]
Headers = Annotated[
    dict[str, Annotated[str, Field(max_length=4_096)]],
    Field(max_length=50),
    Checked(
        _none_of_ours,
        Rule(
            "self.all(name, !name.startsWith('deliver-') && !name.startsWith('delay-'))",
            "must not begin as headers do that relays read or write: deliver- or delay-",
        ),
    ),
]


class RecurringRecordSpec(Model):
    """The record, and the rule by which it is delivered again and again."""

    delay_topic: ObjectName
    """The name of the DelayTopic, of the same namespace, through whose source the record goes, such as `reminders`. It
    needs the native dialect with schedule.ids: ByHeader. It cannot be changed."""
    cron: CronExpression | None = None
    """The times as a cron expression of five fields, such as `0 9 * * mon-fri`. Absent: every is set."""
    every: Annotated[Duration, between("1m", "8760h")] | None = None
    """The interval, such as 1h; it counts from `from`, or else from the creation of this object. Absent: cron is
    set."""
    time_zone: TimeZone | None = None
    """The zone whose clocks cron means, such as Europe/Berlin. Default: UTC."""
    start: Annotated[WholeMinute | None, Field(alias="from")] = None
    """The time before which nothing is delivered, RFC 3339 with an offset, in whole minutes. Default: at once."""
    until: WholeMinute | None = None
    """The time after which nothing is delivered. Default: without an end."""
    jitter: Annotated[Duration, between("0s", "24h")] | None = None
    """The length below which each delivery is put off, such as 5m. Default: not at all."""
    missed: Missed = Missed.LATEST
    """The fate of times that were missed while relays did not run. Latest: the newest is made up for. All: each that
    is not older than catchUp. None: none."""
    catch_up: Annotated[Duration, between("1s", "8760h")] | None = None
    """The time that missed: All goes back, such as 24h; it is given only with that."""
    key: Annotated[str, Field(max_length=1_024)] | None = None
    """The key of the delivered records. Default: none."""
    headers: Headers = {}
    """The headers of the delivered records, beside those that relays add."""
    value: Annotated[str, Field(max_length=65_536)] | None = None
    """The value of the delivered records, as text. Default: none, which is a tombstone."""
    suspend: Annotated[bool, Field(strict=True)] = False
    """Cancel what waits, and write nothing until this is false again. Times that pass meanwhile are not made up for."""
    suspend_note: Annotated[str, Field(max_length=256)] | None = None
    """The reason for suspend, such as `until the campaign is over`, which the condition shows. Default: none."""
    deletion_policy: OnRemoval = OnRemoval.KEEP
    """The fate of what waits when this object is deleted. Keep: it recurs on, under the uid of this object as its id.
    Cancel: it is cancelled first, for which the operator sets a finalizer."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require(
            (exactly_one(cron=self.cron, every=self.every), "", "set exactly one of cron and every"),
            (self.time_zone is None or self.cron is not None, "timeZone", "goes with cron alone"),
            (
                (self.catch_up is not None) == (self.missed is Missed.ALL),
                "catchUp",
                "goes with missed: All, which needs it",
            ),
            (
                self.start is None or self.until is None or self.start.ms < self.until.ms,
                "until",
                "must be after from",
            ),
            (
                self.jitter is None or self.every is None or self.jitter.ms <= self.every.ms,
                "jitter",
                "must not be longer than every",
            ),
        )
        try:
            read_recurrence(self.controls(0), 0)
        except RecurrenceError as error:
            raise BrokenRules([Problem(_FIELDS[error.header], error.detail)]) from error
        return self

    def controls(self, created_ms: int) -> dict[str, bytes]:
        """Return the control headers that say the same; an object that was created then counts an interval from it."""
        start_ms = self.start.ms if self.start is not None else created_ms if self.every is not None else None
        said: dict[str, object] = {
            DELIVER_CRON: self.cron,
            DELIVER_EVERY: self.every.ms if self.every is not None else None,
            DELIVER_TZ: self.time_zone,
            DELIVER_FROM: start_ms,
            DELIVER_UNTIL: self.until.ms if self.until is not None else None,
            DELIVER_JITTER: self.jitter.ms if self.jitter is not None else None,
            DELIVER_MISSED: self.missed.value,
            DELIVER_CATCH_UP: self.catch_up.ms if self.catch_up is not None else None,
        }
        return {name: str(value).encode() for name, value in said.items() if value is not None}

    def headers_of(self, identity: bytes, created_ms: int) -> list[tuple[str, bytes]]:
        """Return all headers of the record that is written for an object created then, under an id."""
        own = ((name, text.encode()) for name, text in self.headers.items())
        return [(DELIVER_ID, identity), *self.controls(created_ms).items(), *own]


_FIELDS: Final = {
    DELIVER_CRON: "cron",
    DELIVER_EVERY: "every",
    DELIVER_TZ: "timeZone",
    DELIVER_FROM: "from",
    DELIVER_UNTIL: "until",
    DELIVER_JITTER: "jitter",
    DELIVER_MISSED: "missed",
    DELIVER_CATCH_UP: "catchUp",
}


class WrittenRecord(StatusPart):
    """The record that the operator wrote last, or its cancel."""

    topic: Annotated[str, Field(max_length=249)]
    """The source topic."""
    topic_id: Annotated[str, Field(max_length=64)]
    """Kafka's id of it; where it is another one, the record is written again."""
    delay_topic_uid: Annotated[str, Field(max_length=64)]
    """The uid of the DelayTopic; where it is another one, the record is written again."""
    partition: Annotated[int, Field(ge=0)]
    """The partition, in which all that is written for this object stays."""
    digest: Annotated[str, Field(max_length=64)] | None = None
    """The digest of what was written. Absent: it is not known whether anything was."""
    at: AwareDatetime | None = None
    """The time at which it was."""


class RecurringRecordStatus(StatusPart):
    """The observed state."""

    observed_generation: int | None = None
    """The generation of spec that this status is about."""
    conditions: Annotated[list[Condition], Field(max_length=8), as_map("type")] = []
    """The conditions, one of each type."""
    next: AwareDatetime | None = None
    """The next time by the rule, without jitter; absent behind the last one, and while nothing recurs."""
    last: AwareDatetime | None = None
    """The time of the rule that was delivered last, without jitter, as relays told within a minute; absent before the
    first."""
    delivered: Annotated[int, Field(ge=0)] | None = None
    """The number of deliveries since it was written last; the last one has it in its header delay-occurrence."""
    missed: Annotated[int, Field(ge=0)] | None = None
    """The number of times of the rule since then, up to last, that no delivery was made for."""
    written: WrittenRecord | None = None
    """The record that the operator wrote last, or its cancel."""


class RecurringRecord(Model):
    """A record that is delivered again and again by a DelayTopic of its namespace."""

    api_version: ApiVersion
    """delaytopic.dev/v1beta1"""
    kind: Literal["RecurringRecord"]
    """RecurringRecord"""
    metadata: NamespacedMetadata
    """Name and namespace."""
    spec: RecurringRecordSpec
    """The desired state."""
    status: RecurringRecordStatus | None = None
    """The observed state, written by the operator."""

    @property
    def full_name(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
