"""The whole record contract of the native dialect, rule by rule; for records that are not plain."""

from __future__ import annotations

from delaytopic_api.records import (
    ACTION_CANCEL,
    ACTION_SCHEDULE,
    CONTROL_HEADERS,
    DELIVER_ACTION,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_CRON,
    DELIVER_EXPIRES_AT,
    DELIVER_ID,
    DELIVER_TO,
    DELIVER_TZ,
    DeadLetterReason,
)
from delaytopic_relay.core.commands import MAX_HEADERS, Cancel, Command, Reject, Schedule
from delaytopic_relay.dialects.due import due_ms_of, expires_ms_of
from delaytopic_relay.dialects.header_error import HeaderError, malformed, shown
from delaytopic_relay.dialects.policy import NativePolicy
from delaytopic_relay.dialects.record import Record
from delaytopic_relay.dialects.times import delay_text
from delaytopic_relay.dialects.topics import target_of

MAX_ID_BYTES = 256

Controls = dict[str, bytes | None]
"""The control headers of a record; of a repeated one the last."""


def read_carefully(policy: NativePolicy, record: Record) -> Command:
    """The command of any record with readable header names."""
    try:
        return _command(policy, record)
    except HeaderError as error:
        return Reject(record.offset, record.key, record.value, record.headers, error.reason, error.detail)


def unreadable_headers(offset: int, key: bytes | None, value: bytes | None) -> Reject:
    """The dead letter of a record whose header names the client cannot decode, and so cannot hand over."""
    detail = (
        "a header name is not UTF-8: the Kafka client cannot read this record's headers, so they are missing here;"
        " the record in the source topic has them"
    )
    return Reject(offset, key, value, None, DeadLetterReason.MALFORMED_HEADER, detail)


def too_many_headers(offset: int, key: bytes | None, value: bytes | None) -> Reject:
    """The dead letter of a record with more headers than a relay carries: without them, or it would be as heavy."""
    detail = (
        f"it has more than {MAX_HEADERS} headers, which no relay carries: they are missing here;"
        " the record in the source topic has them"
    )
    return Reject(offset, key, value, None, DeadLetterReason.TOO_MANY_HEADERS, detail)


def _command(policy: NativePolicy, record: Record) -> Command:
    controls = {name: value for name, value in record.headers or () if name in CONTROL_HEADERS}
    _refuse_recurring(controls)
    _refuse_beside_fixed_delay(policy, controls)
    cancels = _cancels(controls)
    identity = _identity(policy, controls, needed=cancels)
    if cancels and identity is not None:
        _refuse_beside_cancel(controls)
        return Cancel(record.offset, identity)
    due_ms = due_ms_of(policy, record, controls)
    return Schedule(
        due_ms,
        record.offset,
        record.key,
        record.value,
        record.headers,
        record.control,
        identity,
        target_of(policy, controls),
        expires_ms_of(controls, due_ms),
    )


def _refuse_recurring(controls: Controls) -> None:
    for name in (DELIVER_CRON, DELIVER_TZ):
        if name in controls:
            detail = f"header {name} is not supported yet: remove it, and send one record for each delivery"
            raise HeaderError(DeadLetterReason.UNSUPPORTED, detail)


def _refuse_beside_fixed_delay(policy: NativePolicy, controls: Controls) -> None:
    if policy.delay_ms is None:
        return
    for name in (DELIVER_AT, DELIVER_AFTER, DELIVER_ID, DELIVER_ACTION):
        if name in controls:
            detail = f"this DelayTopic delays every record by {delay_text(policy.delay_ms)}: remove header {name}"
            raise HeaderError(DeadLetterReason.CONTRADICTORY_HEADERS, detail)


def _cancels(controls: Controls) -> bool:
    action = controls.get(DELIVER_ACTION, ACTION_SCHEDULE)
    if action not in {ACTION_SCHEDULE, ACTION_CANCEL}:
        detail = f"header {DELIVER_ACTION} must be schedule or cancel, but is {shown(action)}"
        raise HeaderError(DeadLetterReason.UNKNOWN_ACTION, detail)
    return action == ACTION_CANCEL


def _identity(policy: NativePolicy, controls: Controls, *, needed: bool) -> bytes | None:
    if not policy.ids_enabled and (needed or DELIVER_ID in controls):
        name = DELIVER_ID if DELIVER_ID in controls else DELIVER_ACTION
        detail = f"header {name} needs schedule ids, which this DelayTopic has disabled (schedule.ids: Disabled)"
        raise HeaderError(DeadLetterReason.UNSUPPORTED, detail)
    if DELIVER_ID not in controls:
        if needed:
            detail = f"header {DELIVER_ACTION} is cancel: header {DELIVER_ID} must name the schedule to cancel"
            raise HeaderError(DeadLetterReason.MALFORMED_HEADER, detail)
        return None
    identity = controls[DELIVER_ID]
    if not identity or len(identity) > MAX_ID_BYTES:
        raise malformed(DELIVER_ID, f"1 to {MAX_ID_BYTES} bytes", identity)
    return identity


def _refuse_beside_cancel(controls: Controls) -> None:
    for name in (DELIVER_AT, DELIVER_AFTER, DELIVER_TO, DELIVER_EXPIRES_AT):
        if name in controls:
            detail = f"header {DELIVER_ACTION} is cancel, which makes no schedule: remove header {name}"
            raise HeaderError(DeadLetterReason.CONTRADICTORY_HEADERS, detail)
