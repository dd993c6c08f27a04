"""The Kaspr dialect: the headers of Kaspr's message scheduler, `x-scheduler-*`.

ADD, REPLACE and CANCEL by `x-scheduler-request-id`; its recurring schedules are refused. A refused record becomes what
Kaspr's rejections are: JSON with key, value, headers and errors.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

import msgspec

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import Cancel, Command, Reject, Schedule
from delaytopic_relay.dialects.reading import (
    MAX_ID_BYTES,
    NamedTarget,
    Policy,
    ReadingDialect,
    Record,
    RecordError,
    due_at,
    malformed,
    shown,
)
from delaytopic_relay.dialects.times import rfc_3339_ms
from delaytopic_relay.dialects.writing import Departure, Letter, ReadBy, Written, without

ACTION: Final = "x-scheduler-action"
DELIVER_AT: Final = "x-scheduler-deliver-at"
DELIVER_TO: Final = "x-scheduler-deliver-to"
REQUEST_ID: Final = "x-scheduler-request-id"
CRON: Final = "x-scheduler-cron-expr"
MISSED_FIRES: Final = "x-scheduler-cron-missed-fire-policy"
_CONTROLS: Final = frozenset({ACTION, DELIVER_AT, DELIVER_TO, REQUEST_ID, CRON, MISSED_FIRES})
_NEEDS_TIMESTAMP: Final = f"header {DELIVER_AT}"
_ADD, _CANCEL, _REPLACE = b"ADD", b"CANCEL", b"REPLACE"
_RECURRING: Final = frozenset({b"CRON_ADD", b"CRON_CANCEL", b"CRON_PAUSE", b"CRON_RESUME"})
_BETWEEN_ERRORS: Final = "; "


class KasprDialect(ReadingDialect):
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.KASPR

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, f"header {DELIVER_TO}")

    def _command(self, record: Record) -> Command:
        values: dict[str, bytes | None] = {}
        for name, value in record.headers or ():
            if name in _CONTROLS:
                values[name] = value
        action = values.get(ACTION, _ADD)
        if action == _ADD and not values.get(REQUEST_ID):
            return self._schedule(record, values, None)
        if action in _RECURRING:
            detail = f"header {ACTION} is {shown(action)}: recurring schedules are not supported yet"
            raise RecordError(DeadLetterReason.UNSUPPORTED, detail)
        if action not in {_ADD, _CANCEL, _REPLACE}:
            detail = f"header {ACTION} must be ADD, CANCEL or REPLACE, but is {shown(action)}"
            raise RecordError(DeadLetterReason.UNKNOWN_ACTION, detail)
        if action != _ADD:
            _require(values, REQUEST_ID, of=f" for {(action or b'').decode()} action")
        identity = values.get(REQUEST_ID) or None
        if identity is not None and len(identity) > MAX_ID_BYTES:
            raise malformed(REQUEST_ID, f"1 to {MAX_ID_BYTES} bytes", identity)
        if action == _CANCEL and identity is not None:
            return Cancel(record.offset, identity)
        return self._schedule(record, values, identity)

    def _schedule(self, record: Record, values: Mapping[str, bytes | None], identity: bytes | None) -> Schedule:
        deliver_at, deliver_to = values.get(DELIVER_AT), values.get(DELIVER_TO)
        if not deliver_at or not deliver_to:
            _require(values, DELIVER_AT, DELIVER_TO)
        due_ms = due_at(self._policy, record, _NEEDS_TIMESTAMP, _instant_ms(deliver_at))
        target = self._target.other(deliver_to)
        return Schedule(due_ms, record.offset, record.key, record.value, record.headers, self.read_by, identity, target)

    def write(self, schedule: Schedule, departure: Departure) -> Written:
        """The record without the scheduler's headers."""
        return Written(schedule.key, schedule.value, without(schedule.headers, _CONTROLS))

    def letter(self, reject: Reject, departure: Departure) -> Letter:
        """A rejection: the record as JSON, with its own headers and the errors."""
        document = {
            "key": _text(reject.key),
            "value": _text(reject.value),
            "headers": {name: _text(content) for name, content in without(reject.headers, _CONTROLS)},
            "errors": reject.detail.split(_BETWEEN_ERRORS),
        }
        return Letter(reject.key, msgspec.json.encode(document), [])


def _require(values: Mapping[str, bytes | None], *names: str, of: str = "") -> None:
    missing = [f"Missing required header `{name}`{of}" for name in names if not values.get(name)]
    if missing:
        raise RecordError(DeadLetterReason.MALFORMED_HEADER, _BETWEEN_ERRORS.join(missing))


def _text(content: bytes | None) -> str | None:
    """Return what JSON can carry: bytes that are no UTF-8 as base64."""
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return b64encode(content).decode("ascii")


def _instant_ms(text: bytes | None) -> int:
    # Without an offset it is UTC.
    instant_ms = rfc_3339_ms(text or b"")
    if instant_ms is None:
        instant_ms = rfc_3339_ms(b"%bZ" % (text or b""))
    if instant_ms is None:
        raise malformed(DELIVER_AT, "an ISO 8601 instant in UTC (2026-11-21T14:01:26Z)", text)
    return instant_ms if instant_ms > 0 else 0
