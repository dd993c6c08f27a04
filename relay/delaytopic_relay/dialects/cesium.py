"""The Cesium dialect: the control headers of cesium-kafka (protocol version 1), and those of its proof of concept.

`cesium-deliver-at` and `cesium-delay-ms` are ASCII decimals, or with `numbers: Binary` big-endian longs of 8 bytes. The
older names `cesium-delay-until`, `cesium-delay-by`, `delay-until` and `delay-by` count where a record has neither of
the new ones; where it does, they are the producer's own. Of two that say different things the instant wins over the
delay, and of a repeated header the last.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from delaytopic_api.records import DeadLetterReason, Headers
from delaytopic_api.values import CesiumNumbers, OnBeyondMaxDelay, OnMalformed
from delaytopic_relay.core.commands import Command, Reject, Schedule, SourceMessage
from delaytopic_relay.dialects.reading import (
    Policy,
    Record,
    RecordError,
    due_within,
    halting,
    malformed,
    read_by,
    timestamp_of,
)
from delaytopic_relay.dialects.writing import Departure, Letter, ReadBy, Written, without

NAMES: Final = (
    ("cesium-deliver-at", "cesium-delay-ms"),
    ("cesium-delay-until", "cesium-delay-by"),
    ("delay-until", "delay-by"),
)
"""Pairs of an instant and a delay, the first that a record has of either counts."""
_ALL_NAMES: Final = frozenset(name for pair in NAMES for name in pair)
_NAMES_OF: Final = {name: frozenset(pair) for pair in NAMES for name in pair}
_DECIMAL: Final = re.compile(rb"[0-9]{1,19}")
_LARGEST_LONG: Final = (1 << 63) - 1
_LONG_BYTES: Final = 8
_REASONS: Final = {
    DeadLetterReason.MALFORMED_HEADER: b"malformed-header",
    DeadLetterReason.BEYOND_MAX_DELAY: b"over-max-delay",
}
_OTHER_REASON: Final = b"unrelayable"


class CesiumRules(NamedTuple):
    """The fate of bad records, the form of numbers, and whether deliveries tell where they come from."""

    on_malformed: OnMalformed = OnMalformed.DEAD_LETTER
    on_beyond_max_delay: OnBeyondMaxDelay = OnBeyondMaxDelay.DEAD_LETTER
    numbers: CesiumNumbers = CesiumNumbers.DECIMAL
    provenance: bool = True


class _Asked(msgspec.Struct, gc=False):
    """The control header that counts in a record, and the names of all that are stripped."""

    name: str
    value: bytes | None
    is_delay: bool
    names: frozenset[str]


class CesiumDialect:
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.CESIUM

    def __init__(self, policy: Policy, rules: CesiumRules) -> None:
        self._policy = policy
        self._rules = rules
        self._head: tuple[Departure | None, Headers] = (None, [])
        """The beginning of the provenance of all that leaves a partition in one instant."""

    def read(self, message: SourceMessage) -> Command:
        """The record's command; never raises."""
        return read_by(self._command, message)

    def _command(self, record: Record) -> Command:
        headers = record.headers
        due_ms = self._due_ms(record, _asked(headers))
        return Schedule(
            due_ms, record.offset, record.key, record.value, headers, self.read_by, timestamp_ms=record.timestamp_ms
        )

    def _due_ms(self, record: Record, asked: _Asked | None) -> int:
        if asked is None:
            return record.timestamp_ms or 0
        try:
            wished_ms = self._wished_ms(asked, timestamp_of(record, f"header {asked.name}"))
        except RecordError as error:
            if self._rules.on_malformed is OnMalformed.STOP:
                raise halting(error, record.offset, "schedule.cesium.onMalformed") from error
            if self._rules.on_malformed is OnMalformed.DEAD_LETTER:
                raise
            return record.timestamp_ms or 0
        timestamp_ms = record.timestamp_ms or 0
        if self._rules.on_beyond_max_delay is OnBeyondMaxDelay.CLAMP:
            return min(wished_ms, timestamp_ms + self._policy.max_delay_ms)
        try:
            return due_within(self._policy, timestamp_ms, wished_ms)
        except RecordError as error:
            if self._rules.on_beyond_max_delay is OnBeyondMaxDelay.STOP:
                raise halting(error, record.offset, "schedule.cesium.onBeyondMaxDelay") from error
            raise

    def _wished_ms(self, asked: _Asked, timestamp_ms: int) -> int:
        number = _number(asked, self._rules.numbers)
        # Before 1970 is as past as 1970.
        return max(0, timestamp_ms + number if asked.is_delay else number)

    def write(self, schedule: Schedule, departure: Departure) -> Written:
        """The record without its control headers, with those that cesium-kafka stamps."""
        asked, timestamp_ms = _asked(schedule.headers), schedule.timestamp_ms
        headers = without(schedule.headers, asked.names) if asked is not None else [*(schedule.headers or ())]
        clamps = self._rules.on_beyond_max_delay is OnBeyondMaxDelay.CLAMP
        if clamps and asked is not None and self._was_clamped(asked, schedule):
            headers.append(("cesium-clamped", b"true"))
        if self._rules.provenance:
            if self._head[0] is not departure:
                self._head = (departure, _provenance_head(departure))
            headers += self._head[1]
            headers += _provenance_tail(schedule.offset, timestamp_ms)
            if schedule.due_ms > (timestamp_ms or 0):
                headers.append(("cesium-scheduled-for", b"%d" % schedule.due_ms))
        return Written(schedule.key, schedule.value, headers)

    def _was_clamped(self, asked: _Asked, schedule: Schedule) -> bool:
        try:
            wished_ms = self._wished_ms(asked, schedule.timestamp_ms or 0)
        except RecordError:
            return False
        return wished_ms > schedule.due_ms

    def letter(self, reject: Reject, departure: Departure) -> Letter:
        """The record untouched, with reason, detail and provenance."""
        reason = _REASONS.get(reject.reason, _OTHER_REASON)
        headers = [
            *(reject.headers or ()),
            ("cesium-error-reason", reason),
            ("cesium-error-detail", reject.detail.encode()),
            *_provenance_head(departure),
            *_provenance_tail(reject.offset, reject.timestamp_ms),
        ]
        return Letter(reject.key, reject.value, headers)


def _asked(headers: Headers | None) -> _Asked | None:
    # Most records have one control header or none: those need no table of all.
    found = [header for header in headers or () if header[0] in _ALL_NAMES]
    if not found:
        return None
    values = dict(found)
    for at, after in NAMES:
        if at in values or after in values:
            name = at if at in values else after
            return _Asked(name, values[name], name == after, _NAMES_OF[name])
    return None


def _number(asked: _Asked, numbers: CesiumNumbers) -> int:
    name, value, is_delay = asked.name, asked.value, asked.is_delay
    if numbers is CesiumNumbers.BINARY:
        if value is None or len(value) != _LONG_BYTES:
            raise malformed(name, "a big-endian long of 8 bytes", value)
        number = int.from_bytes(value, "big", signed=True)
        if is_delay and number < 0:
            raise malformed(name, "a delay from 0 ms on", value)
        return number
    if value is None or not _DECIMAL.fullmatch(value) or int(value) > _LARGEST_LONG:
        raise malformed(name, "1 to 19 ASCII digits, at most 9223372036854775807", value)
    return int(value)


def _provenance_head(departure: Departure) -> Headers:
    return [
        ("cesium-relayed-at", b"%d" % departure.sent_ms),
        ("cesium-source-topic", departure.source.encode()),
        ("cesium-source-partition", b"%d" % departure.partition),
    ]


def _provenance_tail(offset: int, timestamp_ms: int | None) -> Headers:
    place: Headers = [("cesium-source-offset", b"%d" % offset)]
    if timestamp_ms is not None:
        place.append(("cesium-source-timestamp", b"%d" % timestamp_ms))
    return place
