"""The Redelivery dialect: the markers of Splunk's kafka-mq-go.

A START marker has a message of some queue redelivered, unless an END marker withdraws it before its deadline; a
KEEPALIVE marker puts the deadline off. The message's place in the queue topic names it, together with the record key,
which is the queue's id. What was redelivered gets an END marker in the source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from delaytopic_api.records import ENDED, RESTATED, DeadLetterReason, Headers
from delaytopic_relay.core.commands import (
    MAX_HEADERS,
    Cancel,
    Command,
    Ignore,
    Postpone,
    Record,
    Reject,
    Rewritten,
    Schedule,
    new_record,
)
from delaytopic_relay.dialects.markers import END, KEEPALIVE, START, Marker, decode_marker, encode_end, is_usual_end
from delaytopic_relay.dialects.reading import (
    MAX_ID_BYTES,
    Policy,
    ReadingDialect,
    RecordError,
    SourceRecord,
    due_within,
    malformed,
    shown,
    timestamp_of,
)
from delaytopic_relay.dialects.restated import read_restated, restated_header
from delaytopic_relay.dialects.writing import Draft, Following, ReadBy, Sending, without

COUNT: Final = "redelivery-count"
"""The header of a redelivered message with the number of its redeliveries; clients copy it into the markers of the
message."""
"""The header of the END marker that a relay writes. A receipt would not tell: a client may copy that of a redelivered
message."""
_MAX_QUEUE_BYTES: Final = MAX_ID_BYTES - 15
"""The length of a record key that has room beside a partition and an offset."""
_REDELIVERED: Final = (ENDED, b"redelivered")
_FIRST: Final = (COUNT, b"1")
_OWN: Final = frozenset({RESTATED})
_CONTROLS: Final = frozenset({RESTATED, COUNT})
_OURS: Final = frozenset({RESTATED, COUNT, ENDED})
NOT_RESTATED: Final = (None, None)
_COUNT_FORM: Final = re.compile(rb"[0-9]{1,9}")


class RedeliveryDialect(ReadingDialect):
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.REDELIVERY

    def __init__(self, policy: Policy, max_redeliveries: int | None = None) -> None:
        """`max_redeliveries` is None for no bound."""
        self._policy = policy
        self._max_delay_ms = policy.max_delay_ms
        self._max_redeliveries = max_redeliveries

    def _command(self, record: SourceRecord) -> Command:
        if record.value is None:
            raise RecordError(DeadLetterReason.MALFORMED_VALUE, "the value must be a marker, but is null")
        if _is_own_end(record.key, record.value, record.headers):
            return Ignore(record.offset)
        marker = decode_marker(record.value)
        if marker.version != 0:
            detail = f"the marker has version {marker.version}: this relay reads version 0 (V1)"
            raise RecordError(DeadLetterReason.UNSUPPORTED, detail)
        identity = _identity(record, marker)
        ours: dict[str, bytes | None] = {}
        for name, value in record.headers or ():
            if name in _OURS:
                ours[name] = value
        if marker.type == START:
            return self._start(record, marker, identity, ours)
        if marker.type == END:
            if ENDED in ours:
                return Ignore(record.offset)
            restated = read_restated(ours.get(RESTATED), record.offset)
            return Cancel(record.offset, identity, restated.rank if restated is not None else None)
        if marker.type == KEEPALIVE:
            due_ms = self._due_ms(record, marker)
            return Postpone(
                record.offset, identity, due_ms, record.key, record.value, record.headers, record.timestamp_ms
            )
        detail = f"the marker has type {marker.type}: this relay reads START (0), END (1) and KEEPALIVE (2)"
        raise RecordError(DeadLetterReason.UNKNOWN_ACTION, detail)

    def _start(
        self, record: SourceRecord, marker: Marker, identity: bytes, ours: Mapping[str, bytes | None]
    ) -> Schedule:
        due_ms, rank = (read_restated(ours.get(RESTATED), record.offset) or NOT_RESTATED) if ours else NOT_RESTATED
        if due_ms is None:
            rank = None
            _refuse_more_headers(record.headers)
        if ours:
            _count(ours)
        # What was put off has a time that `maxDelay` allowed for its KEEPALIVE marker.
        due_ms = self._due_ms(record, marker) if due_ms is None else due_ms
        return Schedule(
            due_ms,
            record.offset,
            record.key,
            record.value,
            record.headers,
            self.read_by,
            identity,
            timestamp_ms=record.timestamp_ms,
            rank=rank,
        )

    def _due_ms(self, record: SourceRecord, marker: Marker) -> int:
        timestamp_ms, after_ms = record.timestamp_ms, marker.redeliver_after_ms
        # Nearly all are within the bounds, which is seen sooner than asked for.
        if timestamp_ms is None or after_ms > self._max_delay_ms:
            timestamp_ms = timestamp_of(record, "field redeliver_after_ms")
            return due_within(self._policy, timestamp_ms, timestamp_ms + after_ms)
        return timestamp_ms + after_ms

    def write(self, schedule: Schedule, sending: Sending) -> Draft:
        """The message, under its queue's id, with the number of its redeliveries; the END marker of its START."""
        marker = decode_marker(schedule.value or b"")
        produced, most = schedule.headers or [], self._max_redeliveries
        headers = without(produced, _CONTROLS)
        count = _count(dict(produced)) if len(headers) < len(produced) else 0
        if most is not None and count >= most:
            detail = (
                f"it was redelivered {count} times, and nobody has ended it;"
                f" this DelayTopic allows {most} (schedule.redelivery.maxRedeliveries)"
            )
            raise RecordError(DeadLetterReason.TOO_MANY_REDELIVERIES, detail)
        headers.append((COUNT, b"%d" % (count + 1)) if count else _FIRST)
        end = _end(schedule, marker, sending, [_REDELIVERED])
        return Draft(marker.key, marker.value, headers, along=(end,))

    def rewrite(self, rewritten: Rewritten, sending: Sending) -> Following:
        """The START marker again, with the time that it is put off to, or the END marker of one that is withdrawn."""
        schedule, rank, due_ms, _ = rewritten
        own: Headers = [restated_header(due_ms, rank, schedule.offset, sending)]
        if due_ms is None:
            return Following(_end(schedule, decode_marker(schedule.value or b""), sending, own))
        headers = [*without(schedule.headers, _OWN), *own]
        return Following(Record(sending.source, schedule.value, schedule.key, headers, sending.partition))

    def letter(self, reject: Reject, sending: Sending) -> Draft:
        """The marker as it was produced."""
        return Draft(reject.key, reject.value, without(reject.headers, _OWN))


def _identity(record: SourceRecord, marker: Marker) -> bytes:
    queue = record.key
    if not queue or len(queue) > _MAX_QUEUE_BYTES:
        detail = f"the record key is the queue's id: it must be 1 to {_MAX_QUEUE_BYTES} bytes, but is {shown(queue)}"
        raise RecordError(DeadLetterReason.MALFORMED_KEY, detail)
    return marker.partition + marker.offset + queue


def _is_own_end(key: bytes | None, value: bytes, headers: Headers | None) -> bool:
    """Return whether a relay has written an END marker, as it writes them; each delivery has one."""
    if not headers or headers[0][0] != ENDED or not key or len(key) > _MAX_QUEUE_BYTES:
        return False
    return is_usual_end(value)


def _refuse_more_headers(headers: Headers | None) -> None:
    if headers is not None and len(headers) >= MAX_HEADERS:
        detail = f"it has {MAX_HEADERS} headers: one more, which a relay adds to what is put off, is too many"
        raise RecordError(DeadLetterReason.TOO_MANY_HEADERS, detail)


def _count(headers: Mapping[str, bytes | None]) -> int:
    if COUNT not in headers:
        return 0
    text = headers[COUNT]
    if text is None or not _COUNT_FORM.fullmatch(text):
        raise malformed(COUNT, "a number of up to 9 digits", text)
    return int(text)


def _end(schedule: Schedule, marker: Marker, sending: Sending, headers: Headers) -> Record:
    value = encode_end(marker.partition, marker.offset)
    return new_record(Record, (sending.source, value, schedule.key, headers, sending.partition))
