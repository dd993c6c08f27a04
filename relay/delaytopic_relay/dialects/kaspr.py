"""The Kaspr dialect: the headers of Kaspr's message scheduler, `x-scheduler-*`.

ADD, REPLACE and CANCEL by `x-scheduler-request-id`; its recurring schedules are refused. A refused record becomes what
Kaspr's rejections are: JSON with key, value, headers and errors.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final

import msgspec

from delaytopic_api.records import DeadLetterReason, Headers
from delaytopic_relay.core.commands import Cancel, Command, Reject, Schedule
from delaytopic_relay.dialects.reading import (
    MAX_ID_BYTES,
    NamedTarget,
    Policy,
    ReadingDialect,
    RecordError,
    SourceRecord,
    due_at,
    malformed,
    shown,
)
from delaytopic_relay.dialects.times import iso_8601_ms
from delaytopic_relay.dialects.writing import Draft, ReadBy, Sending, without

ACTION: Final = "x-scheduler-action"
DELIVER_AT: Final = "x-scheduler-deliver-at"
DELIVER_TO: Final = "x-scheduler-deliver-to"
REQUEST_ID: Final = "x-scheduler-request-id"
CRON: Final = "x-scheduler-cron-expr"
MISSED_FIRES: Final = "x-scheduler-cron-missed-fire-policy"
_CONTROLS: Final = frozenset({ACTION, DELIVER_AT, DELIVER_TO, REQUEST_ID, CRON, MISSED_FIRES})
_ADD, _CANCEL, _REPLACE = b"ADD", b"CANCEL", b"REPLACE"
_RECURRING: Final = frozenset({b"CRON_ADD", b"CRON_CANCEL", b"CRON_PAUSE", b"CRON_RESUME"})
_BETWEEN_ERRORS: Final = "; "


class KasprDialect(ReadingDialect):
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.KASPR

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, f"header {DELIVER_TO}")
        self._max_delay_ms = policy.max_delay_ms

    def _command(self, record: SourceRecord) -> Command:
        action: bytes | None = _ADD
        identity: bytes | None = None
        deliver_at: bytes | None = None
        deliver_to: bytes | None = None
        # Without a table, which nearly all records would need for two values (0.2 us less).
        for name, value in record.headers or ():
            if name in _CONTROLS:
                if name == DELIVER_AT:
                    deliver_at = value
                elif name == DELIVER_TO:
                    deliver_to = value
                elif name == ACTION:
                    action = value
                elif name == REQUEST_ID:
                    identity = value
        if action == _ADD and not identity:
            return self._schedule(record, deliver_at, deliver_to, None)
        identity = _identity(action, identity)
        if action == _CANCEL:
            return Cancel(record.offset, identity)
        return self._schedule(record, deliver_at, deliver_to, identity)

    def _schedule(
        self, record: SourceRecord, deliver_at: bytes | None, deliver_to: bytes | None, identity: bytes | None
    ) -> Schedule:
        if not deliver_at or not deliver_to:
            raise _missing((DELIVER_AT, deliver_at), (DELIVER_TO, deliver_to))
        instant_ms = iso_8601_ms(deliver_at)
        if instant_ms is None:
            raise malformed(DELIVER_AT, "an ISO 8601 instant in UTC (2026-11-21T14:01:26Z)", deliver_at)
        due_ms, timestamp_ms = instant_ms if instant_ms > 0 else 0, record.timestamp_ms
        # Nearly all are within the bounds, which is seen sooner than asked for.
        if timestamp_ms is None or due_ms - timestamp_ms > self._max_delay_ms:
            due_ms = due_at(self._policy, record, due_ms)
        target = None if deliver_to == self._target.own else self._target.other(deliver_to)
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
            timestamp_ms,
        )

    def write(self, schedule: Schedule, sending: Sending) -> Headers:
        """The headers without the scheduler's own."""
        return without(schedule.headers, _CONTROLS)

    def letter(self, reject: Reject, sending: Sending) -> Draft:
        """A rejection: the record as JSON, with its own headers and the errors."""
        document = {
            "key": _text(reject.key),
            "value": _text(reject.value),
            "headers": {name: _text(content) for name, content in without(reject.headers, _CONTROLS)},
            "errors": reject.detail.split(_BETWEEN_ERRORS),
        }
        return Draft(reject.key, msgspec.json.encode(document), [])


def _identity(action: bytes | None, identity: bytes | None) -> bytes:
    """Return the id of a request that names one or has to. Raises `RecordError`, for its action first."""
    if action in _RECURRING:
        detail = f"header {ACTION} is {shown(action)}: recurring schedules are not supported yet"
        raise RecordError(DeadLetterReason.UNSUPPORTED, detail)
    if action not in {_ADD, _CANCEL, _REPLACE}:
        detail = f"header {ACTION} must be ADD, CANCEL or REPLACE, but is {shown(action)}"
        raise RecordError(DeadLetterReason.UNKNOWN_ACTION, detail)
    if not identity:
        raise _missing((REQUEST_ID, identity), of=f" for {(action or b'').decode()} action")
    if len(identity) > MAX_ID_BYTES:
        raise malformed(REQUEST_ID, f"1 to {MAX_ID_BYTES} bytes", identity)
    return identity


def _missing(*headers: tuple[str, bytes | None], of: str = "") -> RecordError:
    missing = [f"Missing required header `{name}`{of}" for name, value in headers if not value]
    return RecordError(DeadLetterReason.MALFORMED_HEADER, _BETWEEN_ERRORS.join(missing))


def _text(content: bytes | None) -> str | None:
    """Return what JSON can carry: bytes that are no UTF-8 as base64."""
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return b64encode(content).decode("ascii")
