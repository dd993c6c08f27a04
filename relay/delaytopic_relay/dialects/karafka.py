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
    SourceMessage,
)
from delaytopic_relay.dialects.reading import (
    NamedTarget,
    Policy,
    Record,
    RecordError,
    due_within,
    identity_by_key,
    is_by_relay,
    last_values,
    malformed,
    read_by,
    seconds_ms,
    shown,
    timestamp_of,
)
from delaytopic_relay.dialects.writing import Departure, ReadBy, Written, tombstone, untouched

VERSION: Final = "schedule_schema_version"
KIND: Final = "schedule_source_type"
EPOCH: Final = "schedule_target_epoch"
TOPIC: Final = "schedule_target_topic"
PARTITION: Final = "schedule_target_partition"
KEY: Final = "schedule_target_key"
PARTITION_KEY: Final = "schedule_target_partition_key"
_SUPPORTED: Final = re.compile(rb"[01](\.[0-9]{1,9}){0,2}")
_OUR_VERSION: Final = b"1.0.0"
_PARTITION: Final = re.compile(rb"[0-9]{1,9}")


class KarafkaDialect:
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.KARAFKA
    letter = staticmethod(untouched)

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, f"header {TOPIC}")

    def read(self, message: SourceMessage) -> Command:
        """The record's command; never raises."""
        return read_by(self._command, message)

    def _command(self, record: Record) -> Command:
        values = last_values(record.headers)
        kind, version = values.get(KIND), values.get(VERSION)
        if kind == b"tombstone" and is_by_relay(record):
            return Ignore(record.offset)
        if version is None or not _SUPPORTED.fullmatch(version):
            detail = f"header {VERSION} must be a version up to 1, but is {shown(version)}"
            raise RecordError(DeadLetterReason.UNSUPPORTED, detail)
        if kind in {b"cancel", b"tombstone"}:
            return Cancel(record.offset, identity_by_key(record))
        if kind != b"schedule":
            detail = f"header {KIND} must be schedule, cancel or tombstone, but is {shown(kind)}"
            raise RecordError(DeadLetterReason.UNKNOWN_ACTION, detail)
        return self._schedule(record, values)

    def _schedule(self, record: Record, values: Mapping[str, bytes | None]) -> Schedule:
        identity = identity_by_key(record)
        due_ms = seconds_ms(EPOCH, values.get(EPOCH))
        due_ms = due_within(self._policy, timestamp_of(record, f"header {EPOCH}"), due_ms)
        target = self._target(values.get(TOPIC))
        _partition(values)
        return Schedule(due_ms, record.offset, record.key, record.value, record.headers, self.read_by, identity, target)

    def write(self, schedule: Schedule, departure: Departure) -> Written:
        """The record with its source's place, under the key that it asks for, and the tombstone of its schedule."""
        values = last_values(schedule.headers)
        place: Headers = [
            ("schedule_source_topic", departure.source.encode()),
            ("schedule_source_partition", b"%d" % departure.partition),
            ("schedule_source_offset", b"%d" % schedule.offset),
            ("schedule_source_key", schedule.key),
        ]
        stone = tombstone(schedule, departure, _of_tombstone(schedule))
        headers = [*(schedule.headers or ()), *place]
        partition_key = values.get(PARTITION_KEY)
        return Written(values.get(KEY), schedule.value, headers, _partition(values), partition_key, [stone])


def _partition(values: Mapping[str, bytes | None]) -> int:
    if PARTITION not in values:
        return ANY_PARTITION
    text = values[PARTITION]
    if text is None or not _PARTITION.fullmatch(text):
        raise malformed(PARTITION, "the number of a partition", text)
    return int(text)


def _of_tombstone(schedule: Schedule) -> Headers:
    """Return the record's headers, with version and kind in their places those of a tombstone."""
    instead = {VERSION: _OUR_VERSION, KIND: b"tombstone"}
    headers = [(name, instead.get(name, value)) for name, value in schedule.headers or ()]
    return [*headers, ("schedule_source_offset", b"%d" % schedule.offset)]
