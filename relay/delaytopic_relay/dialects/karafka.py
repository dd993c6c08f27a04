"""The Karafka dialect: the headers of Karafka Pro's scheduled messages, `schedule_*`, schema version 1.

The record key names the schedule: a later one replaces it, `cancel` withdraws it. What was delivered gets a tombstone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from delaytopic_api.records import DeadLetterReason, Headers
from delaytopic_relay.core.commands import (
    ANY_PARTITION,
    Cancel,
    Command,
    Ignore,
    Schedule,
)
from delaytopic_relay.dialects.reading import (
    NamedTarget,
    Policy,
    ReadingDialect,
    RecordError,
    SourceRecord,
    due_at,
    identity_by_key,
    is_by_relay,
    malformed,
    seconds_ms,
    shown,
)
from delaytopic_relay.dialects.writing import DELIVERED, Draft, ReadBy, Sending, tombstone, untouched

VERSION: Final = "schedule_schema_version"
KIND: Final = "schedule_source_type"
EPOCH: Final = "schedule_target_epoch"
TOPIC: Final = "schedule_target_topic"
PARTITION: Final = "schedule_target_partition"
KEY: Final = "schedule_target_key"
PARTITION_KEY: Final = "schedule_target_partition_key"
_SUPPORTED: Final = re.compile(rb"[01](\.[0-9]{1,9}){0,2}")
_OUR_VERSION: Final = b"1.0.0"
_OF_TOMBSTONE: Final = {VERSION: (VERSION, _OUR_VERSION), KIND: (KIND, b"tombstone")}
_PARTITION: Final = re.compile(rb"[0-9]{1,9}")


class KarafkaDialect(ReadingDialect):
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.KARAFKA
    letter = staticmethod(untouched)

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, f"header {TOPIC}")
        self._from: tuple[Sending | None, Headers] = (None, [])
        """The beginning of the place of all that leaves a partition in one instant."""

    def _command(self, record: SourceRecord) -> Command:
        values = dict(record.headers or ())
        kind, version = values.get(KIND), values.get(VERSION)
        if kind == b"tombstone" and is_by_relay(record):
            return Ignore(record.offset)
        if version != _OUR_VERSION and (version is None or not _SUPPORTED.fullmatch(version)):
            detail = f"header {VERSION} must be a version up to 1, but is {shown(version)}"
            raise RecordError(DeadLetterReason.UNSUPPORTED, detail)
        if kind == b"schedule":
            return self._schedule(record, values)
        if kind in {b"cancel", b"tombstone"}:
            return Cancel(record.offset, identity_by_key(record))
        detail = f"header {KIND} must be schedule, cancel or tombstone, but is {shown(kind)}"
        raise RecordError(DeadLetterReason.UNKNOWN_ACTION, detail)

    def _schedule(self, record: SourceRecord, values: Mapping[str, bytes | None]) -> Schedule:
        identity = identity_by_key(record)
        epoch = values.get(EPOCH)
        # Blanks do not count in Ruby's numbers.
        due_ms = seconds_ms(EPOCH, epoch.strip() if epoch is not None else None)
        due_ms = due_at(self._policy, record, due_ms)
        target = self._target.other(values.get(TOPIC))
        if PARTITION in values:
            _partition(values)
        return Schedule(
            due_ms,
            record.offset,
            record.key,
            record.value,
            record.headers,
            self.read_by,
            identity,
            target,
            None,
            record.timestamp_ms,
        )

    def write(self, schedule: Schedule, sending: Sending) -> Draft:
        """The record with its source's place, under the key that it asks for, and the tombstone of its schedule."""
        produced = schedule.headers or ()
        values = dict(produced)
        if self._from[0] is not sending:
            self._from = (sending, _place(sending))
        offset = ("schedule_source_offset", b"%d" % schedule.offset)
        headers = [*produced, *self._from[1], offset, ("schedule_source_key", schedule.key)]
        # The record's headers, with version and kind in their places those of a tombstone.
        replaced = [_OF_TOMBSTONE.get(each[0], each) for each in produced]
        stone = tombstone(schedule, sending, [*replaced, offset, DELIVERED])
        partition = _partition(values) if PARTITION in values else ANY_PARTITION
        return Draft(values.get(KEY), schedule.value, headers, partition, values.get(PARTITION_KEY), (stone,))


def _partition(values: Mapping[str, bytes | None]) -> int:
    text = values[PARTITION]
    if text is None or not _PARTITION.fullmatch(text):
        raise malformed(PARTITION, "the number of a partition", text)
    return int(text)


def _place(sending: Sending) -> Headers:
    return [
        ("schedule_source_topic", sending.source.encode()),
        ("schedule_source_partition", b"%d" % sending.partition),
    ]
