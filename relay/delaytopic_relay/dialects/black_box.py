"""The BlackBox dialect: a JSON value `{"topic", "message", "countdown"}`, as services over a Redis sorted set read it.

`countdown` is a number of seconds from the record's timestamp, fractions allowed. `message` is what is delivered: of a
JSON string its text, of everything else its JSON as written. Key and headers go along.
"""

from __future__ import annotations

import math

import msgspec

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import Command, Schedule
from delaytopic_relay.dialects.reading import (
    NamedTarget,
    Policy,
    ReadingDialect,
    Record,
    RecordError,
    decoded,
    due_within,
    timestamp_of,
)
from delaytopic_relay.dialects.writing import Departure, ReadBy, Written, untouched

_MICROSECOND_DIGITS = 3


class _Envelope(msgspec.Struct):
    topic: str
    message: msgspec.Raw
    countdown: float


_decoder = msgspec.json.Decoder(_Envelope)
_text_decoder = msgspec.json.Decoder(str)


class BlackBoxDialect(ReadingDialect):
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.BLACK_BOX
    letter = staticmethod(untouched)

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, "field topic")

    def _command(self, record: Record) -> Command:
        envelope = decoded(_decoder, record.value)
        _message_of(envelope)
        timestamp_ms = timestamp_of(record, "field countdown")
        if envelope.countdown < 0:
            detail = f"field countdown must be a number of seconds from 0 on, but is {envelope.countdown:g}"
            raise RecordError(DeadLetterReason.MALFORMED_VALUE, detail)
        due_ms = due_within(self._policy, timestamp_ms, timestamp_ms + _milliseconds(envelope.countdown))
        target = self._target.other(envelope.topic.encode(), DeadLetterReason.MALFORMED_VALUE)
        return Schedule(due_ms, record.offset, record.key, record.value, record.headers, self.read_by, target=target)

    def write(self, schedule: Schedule, departure: Departure) -> Written:
        """The message, to the topic that the envelope names."""
        message = _message_of(decoded(_decoder, schedule.value))
        return Written(schedule.key, message, [*(schedule.headers or ())])


def _milliseconds(countdown_s: float) -> int:
    # Rounded first: in binary, 4.1 s are a little more than 4,100 ms.
    milliseconds = round(countdown_s * 1000, _MICROSECOND_DIGITS)
    # The last thousandth of all numbers is more milliseconds than a number can be; JSON itself has no infinity.
    return int(countdown_s) * 1000 if math.isinf(milliseconds) else math.ceil(milliseconds)


def _message_of(envelope: _Envelope) -> bytes | None:
    written = bytes(envelope.message)
    if written == b"null":
        return None
    return decoded(_text_decoder, written).encode() if written.startswith(b'"') else written
