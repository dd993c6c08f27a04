"""Due times and expiry times of records."""

from __future__ import annotations

from collections.abc import Mapping

from delaytopic_api.records import DELIVER_AFTER, DELIVER_AT, DELIVER_EXPIRES_AT, DeadLetterReason
from delaytopic_relay.dialects.header_error import HeaderError, malformed
from delaytopic_relay.dialects.policy import NativePolicy
from delaytopic_relay.dialects.record import Record
from delaytopic_relay.dialects.times import delay_ms, delay_text, instant_ms

_AN_INSTANT = (
    "epoch milliseconds in digits (1795269686270) or RFC 3339 with an offset (2026-11-21T14:01:26.270Z),"
    " between 1970 and the year 9999"
)
_A_DELAY = "milliseconds in digits (90000) or a duration (90s, 1h30m, 500ms)"

AT_ONCE_MS = 0
"""Due time of a record that is to leave at once and has no timestamp."""


def due_ms_of(policy: NativePolicy, record: Record, controls: Mapping[str, bytes | None]) -> int:
    """The due time, from the record alone. Raises `HeaderError`."""
    # Both are read before one wins: what cannot be read is never passed over in silence.
    after_ms = _delay(controls[DELIVER_AFTER]) if DELIVER_AFTER in controls else None
    at_ms = _instant(DELIVER_AT, controls[DELIVER_AT]) if DELIVER_AT in controls else None
    if at_ms is None and after_ms is None and policy.implied_delay_ms is None:
        return AT_ONCE_MS if record.timestamp_ms is None else record.timestamp_ms
    if record.timestamp_ms is None:
        raise _no_timestamp(DELIVER_AT if at_ms is not None else DELIVER_AFTER if after_ms is not None else None)
    if at_ms is not None:
        return _within(policy, record.timestamp_ms, at_ms)
    if after_ms is not None:
        return _within(policy, record.timestamp_ms, record.timestamp_ms + after_ms)
    return record.timestamp_ms + (policy.implied_delay_ms or 0)


def expires_ms_of(controls: Mapping[str, bytes | None], due_ms: int) -> int | None:
    """The last instant at which delivery is still of use; None without the header. Raises `HeaderError`."""
    if DELIVER_EXPIRES_AT not in controls:
        return None
    expires_ms = _instant(DELIVER_EXPIRES_AT, controls[DELIVER_EXPIRES_AT])
    if expires_ms < due_ms:
        detail = f"header {DELIVER_EXPIRES_AT} is {due_ms - expires_ms} ms before the record is due ({due_ms})"
        raise HeaderError(DeadLetterReason.CONTRADICTORY_HEADERS, detail)
    return expires_ms


def _instant(name: str, text: bytes | None) -> int:
    milliseconds = instant_ms(text) if text else None
    if milliseconds is None:
        raise malformed(name, _AN_INSTANT, text)
    return milliseconds


def _delay(text: bytes | None) -> int:
    milliseconds = delay_ms(text) if text else None
    if milliseconds is None:
        raise malformed(DELIVER_AFTER, _A_DELAY, text)
    return milliseconds


def _within(policy: NativePolicy, timestamp_ms: int, due_ms: int) -> int:
    if due_ms - timestamp_ms <= policy.max_delay_ms:
        return due_ms
    detail = (
        f"the record is due at {due_ms}, {delay_text(due_ms - timestamp_ms)} after its timestamp {timestamp_ms};"
        f" this DelayTopic allows at most {delay_text(policy.max_delay_ms)} (schedule.maxDelay)"
    )
    raise HeaderError(DeadLetterReason.BEYOND_MAX_DELAY, detail)


def _no_timestamp(name: str | None) -> HeaderError:
    who = f"header {name} needs" if name else "the delay of this DelayTopic needs"
    detail = f"{who} a record timestamp between 1970 and the year 9999 to count from, and this record has none"
    return HeaderError(DeadLetterReason.MALFORMED_HEADER, detail)
