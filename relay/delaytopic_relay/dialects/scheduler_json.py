"""The SchedulerJson dialect: the JSON records of sky-uk's kafka-message-scheduler.

The value is `{"time", "topic", "key", "value", "headers"}`, with key, value and headers in base64. The record key names
the schedule: the latest wins, a null value cancels. What was delivered gets a tombstone with `schedule:expired`.

The original reads by circe and `java.util.Base64`, which take more than JSON's and base64's own grammars have: values
that msgspec does not read are read as they do.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from decimal import Decimal, InvalidOperation
from typing import Annotated, Final, NoReturn, TypeGuard

import msgspec

from delaytopic_api.records import RECEIPT, DeadLetterReason, Headers
from delaytopic_relay.core.commands import MAX_HEADERS, Cancel, Command, Ignore, Schedule
from delaytopic_relay.dialects.reading import (
    NO_JSON,
    NamedTarget,
    Policy,
    ReadingDialect,
    RecordError,
    SourceRecord,
    due_at,
    identity_by_key,
    not_readable,
)
from delaytopic_relay.dialects.writing import Draft, ReadBy, Sending, tombstone, untouched

EXPIRED: Final = "schedule:expired"
_EXPIRED: Final = (EXPIRED, b"true")
_OF_A_RELAY: Final = 2
"""The headers of a relay's own tombstone, of which each delivery has one: this, and a receipt."""
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?")
_BASE64_UNIT: Final = 4
_MOST_LONG_DIGITS: Final = 19
_NUMBER: Final = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+))(?:[eE][+-]?[0-9]+)?")
_LEAST_LONG, _LARGEST_LONG = -(1 << 63), (1 << 63) - 1


class _Schedule(msgspec.Struct):
    time: Annotated[int, msgspec.Meta(ge=_LEAST_LONG, le=_LARGEST_LONG)]
    topic: str
    key: bytes
    value: bytes | None = None
    headers: dict[str, bytes] | None = None


_decoder = msgspec.json.Decoder(_Schedule)


class SchedulerJsonDialect(ReadingDialect):
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.SCHEDULER_JSON
    letter = staticmethod(untouched)

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, "field topic")

    def _command(self, record: SourceRecord) -> Command:
        if record.value is None:
            if _is_tombstone(record.headers):
                return Ignore(record.offset)
            return Cancel(record.offset, identity_by_key(record))
        identity, wished = identity_by_key(record), _decoded(record.value)
        if wished.headers is not None and len(wished.headers) > MAX_HEADERS:
            detail = f"field headers has more than {MAX_HEADERS} headers, which no relay carries"
            raise RecordError(DeadLetterReason.TOO_MANY_HEADERS, detail)
        due_ms = due_at(self._policy, record, max(0, wished.time))
        target = self._target.other(wished.topic.encode("utf-8", "replace"), DeadLetterReason.MALFORMED_VALUE)
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
        """The record that the value describes, and the tombstone of its schedule."""
        wished = _decoded(schedule.value or b"")
        stone = tombstone(schedule, sending, [_EXPIRED])
        headers: Headers = [*wished.headers.items()] if wished.headers is not None else []
        return Draft(wished.key, wished.value, headers, along=(stone,))


def _is_tombstone(headers: Headers | None) -> bool:
    """Return whether a scheduler has written a null value. Its own library takes header names in any case."""
    if headers is not None and len(headers) == _OF_A_RELAY and headers[0] == _EXPIRED and headers[1][0] == RECEIPT:
        return True
    values = {name.casefold(): value for name, value in headers or () if value is not None}
    return values.get(EXPIRED, b"").lower() == b"true"


def _decoded(value: bytes) -> _Schedule:
    """Return what a value asks for. Raises `RecordError`."""
    try:
        return _decoder.decode(value)
    except NO_JSON as error:
        wished = _as_circe_reads(value)
        if wished is None:
            raise not_readable(error) from error
        return wished


class _Number(str):
    """A number of JSON as it is written."""

    __slots__ = ()


def _as_circe_reads(value: bytes) -> _Schedule | None:
    """Return what circe and Java's decoder of base64 read in a value; None for what they refuse.

    Bytes that are no UTF-8 are replaced, a number may be a string and have an exponent, and base64 no padding.
    """
    text = value.decode("utf-8", "replace")
    try:
        document = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    time, topic, key, headers = _long(document.get("time")), *map(document.get, ("topic", "key", "headers"))
    content = document.get("value")
    if time is None or not _is_text(topic) or not isinstance(headers, dict | None):
        return None
    named = {_name(name): _bytes(one) for name, one in (headers or {}).items()}
    key_bytes, content_bytes = _bytes(key), _bytes(content)
    if key_bytes is None or (content_bytes is None) != (content is None) or None in named.values():
        return None
    kept = {name: one for name, one in named.items() if one is not None}
    return _Schedule(time, topic, key_bytes, content_bytes, kept)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


def _is_text(found: object) -> TypeGuard[str]:
    return isinstance(found, str) and not isinstance(found, _Number)


def _name(text: str) -> str:
    """Return a name as Java writes it in UTF-8: half of a pair of surrogates is a question mark."""
    return text.encode("utf-8", "replace").decode()


def _long(found: object) -> int | None:
    match = _NUMBER.fullmatch(found) if isinstance(found, str) else None
    if match is None:
        return None
    if not match[1].strip("-0."):
        return 0
    try:
        number = Decimal(match[0])
    except InvalidOperation:  # an exponent of twenty digits
        return None
    if number.adjusted() >= _MOST_LONG_DIGITS or number % 1 != 0:
        return None
    return int(number) if _LEAST_LONG <= number <= _LARGEST_LONG else None


def _bytes(found: object) -> bytes | None:
    if not _is_text(found) or not _BASE64.fullmatch(found):
        return None
    return b64decode(found.rstrip("=") + "=" * (-len(found.rstrip("=")) % _BASE64_UNIT))
