"""The records of every dialect, with the same key, value and user headers wherever it has a place for them. Pure."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from bench.clock import now_ms
from bench.records import headers_of, key_of, value_of
from delaytopic_api.records import Headers
from delaytopic_api.values import Dialect
from delaytopic_relay.dialects.markers import encode_varint

Written = tuple[bytes, bytes, Headers]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXTS: Final = [b64encode(value_of(sequence))[:200].decode("ascii") for sequence in range(64)]
"""Values of 200 bytes for a dialect whose values are texts."""


class Speech(NamedTuple):
    """A way to write records: `write` takes sequence number, due time (None: at once) and target."""

    dialect: Dialect
    write: Callable[[int, int | None, str], Written]
    granularity_ms: int = 1
    """Due times are multiples of it."""

    def due_ms(self, due_ms: int) -> int:
        """The first due time from this one on that a record can have."""
        return -(-due_ms // self.granularity_ms) * self.granularity_ms


def _native(sequence: int, due_ms: int | None, target: str) -> Written:
    return key_of(sequence), value_of(sequence), headers_of(due_ms)


def _black_box(sequence: int, due_ms: int | None, target: str) -> Written:
    # Counted from the record's timestamp, which is at this time or after it: never due before `due_ms`.
    countdown_s = max(0, (due_ms or 0) - int(now_ms())) / 1_000
    value = {"topic": target, "message": _TEXTS[sequence & 63], "countdown": countdown_s}
    return key_of(sequence), json.dumps(value).encode(), headers_of(None)


def _cesium(sequence: int, due_ms: int | None, target: str) -> Written:
    return key_of(sequence), value_of(sequence), _with(("cesium-deliver-at", b"%d" % (due_ms or 0)))


def _timebridge(sequence: int, due_ms: int | None, target: str) -> Written:
    when = ("X-Timebridge-When", _instant(due_ms))
    return key_of(sequence), value_of(sequence), _with(when, ("X-Timebridge-Where", target.encode()))


def _kaspr(sequence: int, due_ms: int | None, target: str) -> Written:
    at = ("x-scheduler-deliver-at", _instant(due_ms))
    return key_of(sequence), value_of(sequence), _with(at, ("x-scheduler-deliver-to", target.encode()))


def _karafka(sequence: int, due_ms: int | None, target: str) -> Written:
    headers = _with(
        ("schedule_schema_version", b"1.0.0"),
        ("schedule_target_epoch", b"%d" % ((due_ms or 0) // 1_000)),
        ("schedule_source_type", b"schedule"),
        ("schedule_target_topic", target.encode()),
        ("schedule_target_key", key_of(sequence)),
    )
    return key_of(sequence), value_of(sequence), headers


def _scheduler(sequence: int, due_ms: int | None, target: str) -> Written:
    headers = _with(
        ("scheduler-epoch", b"%d" % ((due_ms or 0) // 1_000)),
        ("scheduler-target-topic", target.encode()),
        ("scheduler-target-key", key_of(sequence)),
    )
    return key_of(sequence), value_of(sequence), headers


def _scheduler_json(sequence: int, due_ms: int | None, target: str) -> Written:
    headers = {name: b64encode(value or b"").decode("ascii") for name, value in headers_of(None)}
    schedule = {
        "time": due_ms or 0,
        "topic": target,
        "key": b64encode(key_of(sequence)).decode("ascii"),
        "value": b64encode(value_of(sequence)).decode("ascii"),
        "headers": headers,
    }
    return key_of(sequence), json.dumps(schedule).encode(), []


def _redelivery(sequence: int, due_ms: int | None, target: str) -> Written:
    # As a countdown: of the record's timestamp. Fields 3, 4, 5 and 6 of a START marker, in protobuf's order.
    after_ms = max(0, (due_ms or 0) - int(now_ms()))
    place = _text(b"\x1a", b"\x10" + encode_varint(sequence + 1))
    key, value = _text(b"\x2a", key_of(sequence)), _text(b"\x32", value_of(sequence))
    return key_of(sequence), place + b"\x20" + encode_varint(after_ms) + key + value, headers_of(None)


def _text(tag: bytes, text: bytes) -> bytes:
    return tag + encode_varint(len(text)) + text


def _with(*controls: tuple[str, bytes]) -> Headers:
    return [*headers_of(None), *controls]


def _instant(due_ms: int | None) -> bytes:
    return (_EPOCH + timedelta(milliseconds=due_ms or 0)).isoformat().replace("+00:00", "Z").encode()


NATIVE: Final = Speech(Dialect.NATIVE, _native)
OTHERS: Final[Mapping[Dialect, Speech]] = {
    speech.dialect: speech
    for speech in (
        Speech(Dialect.BLACK_BOX, _black_box),
        Speech(Dialect.CESIUM, _cesium),
        Speech(Dialect.TIMEBRIDGE, _timebridge),
        Speech(Dialect.KASPR, _kaspr),
        Speech(Dialect.KARAFKA, _karafka, 1_000),
        Speech(Dialect.SCHEDULER, _scheduler, 1_000),
        Speech(Dialect.SCHEDULER_JSON, _scheduler_json),
        Speech(Dialect.REDELIVERY, _redelivery),
    )
}
SPEECHES: Final[Mapping[Dialect, Speech]] = {NATIVE.dialect: NATIVE, **OTHERS}
