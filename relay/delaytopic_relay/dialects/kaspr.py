"""The Kaspr dialect: the headers of Kaspr's message scheduler, `x-scheduler-*`.

ADD, REPLACE and CANCEL by `x-scheduler-request-id`. CRON_ADD and CRON_CANCEL are records that recur: they are read with
the native headers that say the same, as which the relay writes their occurrences into the source. A refused record
becomes what Kaspr's rejections are: JSON with key, value, headers and errors.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final

import msgspec

from delaytopic_api.records import (
    CONTROL_HEADERS,
    DELIVER_CATCH_UP,
    DELIVER_CRON,
    DELIVER_ID,
    DELIVER_MISSED,
    OCCURRENCE,
    RESTATED,
    DeadLetterReason,
    Headers,
)
from delaytopic_api.records import DELIVER_TO as NATIVE_TO
from delaytopic_relay.core.commands import TO_BE_RESOLVED, Cancel, Command, Reject, Schedule
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
    timestamp_of,
)
from delaytopic_relay.dialects.recurring import recurrence_of, written_by_relay
from delaytopic_relay.dialects.times import iso_8601_ms
from delaytopic_relay.dialects.writing import Draft, ReadBy, Sending, without

ACTION: Final = "x-scheduler-action"
DELIVER_AT: Final = "x-scheduler-deliver-at"
DELIVER_TO: Final = "x-scheduler-deliver-to"
REQUEST_ID: Final = "x-scheduler-request-id"
CRON: Final = "x-scheduler-cron-expr"
MISSED_FIRES: Final = "x-scheduler-cron-missed-fire-policy"
_CONTROLS: Final = frozenset({ACTION, DELIVER_AT, DELIVER_TO, REQUEST_ID, CRON, MISSED_FIRES})
_READ: Final = _CONTROLS | {RESTATED}
_NATIVE: Final = CONTROL_HEADERS | {RESTATED, OCCURRENCE}
_ADD, _CANCEL, _REPLACE, _CRON_ADD, _CRON_CANCEL = b"ADD", b"CANCEL", b"REPLACE", b"CRON_ADD", b"CRON_CANCEL"
_CANCELS: Final = frozenset({_CANCEL, _CRON_CANCEL})
_PAUSES: Final = frozenset({b"CRON_PAUSE", b"CRON_RESUME"})
_REPLAY, _SKIP = b"replay", b"skip"
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
            if name in _READ:
                if name == DELIVER_AT:
                    deliver_at = value
                elif name == DELIVER_TO:
                    deliver_to = value
                elif name == ACTION:
                    action = value
                elif name == REQUEST_ID:
                    identity = value
                elif name == RESTATED and (written := self._written(record)) is not None:
                    return written
        if action == _ADD and not identity:
            return self._schedule(record, deliver_at, deliver_to, None)
        identity = _identity(action, identity)
        if action in _CANCELS:
            return Cancel(record.offset, identity)
        schedule = self._recurring if action == _CRON_ADD else self._schedule
        return schedule(record, deliver_at, deliver_to, identity)

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

    def _written(self, record: SourceRecord) -> Command | None:
        """Return the command of an occurrence, or of a cancel, that a relay has written; None for any other record."""
        controls = {name: value for name, value in record.headers or () if name in CONTROL_HEADERS}
        return written_by_relay(self._policy, record, controls)

    def _recurring(
        self, record: SourceRecord, deliver_at: bytes | None, deliver_to: bytes | None, identity: bytes | None
    ) -> Schedule:
        """Return what is to be resolved, with native headers in place of the scheduler's own. Raises `RecordError`."""
        values, own = dict(record.headers or ()), without(record.headers, _CONTROLS)
        cron, missed = values.get(CRON), values.get(MISSED_FIRES, _REPLAY)
        if not cron or not deliver_to:
            raise _missing((CRON, cron), (DELIVER_TO, deliver_to), of=f" for {_CRON_ADD.decode()} action")
        for name, _ in own:
            if name in _NATIVE:
                detail = f"header {name} has a meaning for relays: a record that recurs may not have it besides"
                raise RecordError(DeadLetterReason.CONTRADICTORY_HEADERS, detail)
        if missed not in {_REPLAY, _SKIP}:
            raise malformed(MISSED_FIRES, "replay or skip", missed)
        target = None if deliver_to == self._target.own else self._target.other(deliver_to)
        elsewhere: Headers = [(NATIVE_TO, deliver_to)] if target is not None else []
        fields = cron.split()
        # The original has seconds last.
        expression = b" ".join([fields[5], *fields[:5]] if len(fields) == 6 else fields)
        rule: Headers = [(DELIVER_ID, identity), (DELIVER_CRON, expression)]
        if missed == _SKIP:
            rule.append((DELIVER_MISSED, b"None"))
        else:
            rule += [(DELIVER_MISSED, b"All"), (DELIVER_CATCH_UP, b"%d" % self._max_delay_ms)]
        headers = [*own, *elsewhere, *rule]
        try:
            recurrence_of(self._policy, msgspec.structs.replace(record, headers=headers), dict([*elsewhere, *rule]))
        except RecordError as error:
            raise RecordError(error.reason, error.detail.replace(DELIVER_CRON, CRON)) from error
        return Schedule(
            timestamp_of(record, "a record that recurs"),
            record.offset,
            record.key,
            record.value,
            headers,
            TO_BE_RESOLVED,
            identity,
            target,
            None,
            record.timestamp_ms,
        )

    def write(self, schedule: Schedule, sending: Sending) -> Headers:
        """The headers without the scheduler's own."""
        return without(schedule.headers, _CONTROLS)

    def letter(self, reject: Reject, sending: Sending) -> Draft:
        """A rejection: the record as JSON, with its own headers and the errors."""
        recurs = any(name == DELIVER_CRON for name, _ in reject.headers or ())
        hidden = _CONTROLS | _NATIVE if recurs else _CONTROLS
        document = {
            "key": _text(reject.key),
            "value": _text(reject.value),
            "headers": {name: _text(content) for name, content in without(reject.headers, hidden)},
            "errors": reject.detail.split(_BETWEEN_ERRORS),
        }
        return Draft(reject.key, msgspec.json.encode(document), [])


def _identity(action: bytes | None, identity: bytes | None) -> bytes:
    """Return the id of a request that names one or has to. Raises `RecordError`, for its action first."""
    if action in _PAUSES:
        detail = f"header {ACTION} is {shown(action)}, which is not supported: send CRON_CANCEL, and later CRON_ADD"
        raise RecordError(DeadLetterReason.UNSUPPORTED, detail)
    if action not in {_ADD, _CANCEL, _REPLACE, _CRON_ADD, _CRON_CANCEL}:
        detail = f"header {ACTION} must be ADD, CANCEL, REPLACE, CRON_ADD or CRON_CANCEL, but is {shown(action)}"
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
