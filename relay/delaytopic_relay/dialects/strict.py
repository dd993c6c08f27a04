"""The whole record contract of the native dialect, rule by rule: for records that are not plain.

A policy is one DelayTopic's; a record that breaks it raises `HeaderError`, which becomes a dead letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
    Headers,
)
from delaytopic_api.values import topic_matcher
from delaytopic_relay.core.commands import MAX_HEADERS, Cancel, Command, Reject, Schedule
from delaytopic_relay.dialects.times import delay_ms, delay_text, instant_ms

_SHOWN_CHARACTERS = 64
_AN_INSTANT = (
    "epoch milliseconds in digits (1795269686270) or RFC 3339 with an offset (2026-11-21T14:01:26.270Z),"
    " between 1970 and the year 9999"
)
_A_DELAY = "milliseconds in digits (90000) or a duration (90s, 1h30m, 500ms)"
AT_ONCE_MS = 0
"""Due time of a record that is to leave at once and has no timestamp."""
_TOPIC_NAME = re.compile(rb"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")
MAX_ID_BYTES = 256
Controls = dict[str, bytes | None]
"""The control headers of a record; of a repeated one the last."""


class TopicGlobs:
    """The topics that `deliver-to` may name besides the target: globs, compiled once, and kept for error messages."""

    def __init__(self, globs: Sequence[str]) -> None:
        """`globs` as in `target.allowed`, like `shop.*`; none allows nothing."""
        self.globs = tuple(globs)
        self._matches = topic_matcher(self.globs)

    def __call__(self, topic: str) -> bool:
        """Return whether one of the globs covers the whole name."""
        return self._matches(topic)


class NativePolicy(NamedTuple):
    """One DelayTopic's rules for the native dialect.

    `delay_ms` is set for a fixed delay, which then is every record's; `default_delay_ms` is the delay of a
    record that names no time, None for at once.
    """

    target_topic: str
    target_allowed: TopicGlobs
    max_delay_ms: int
    default_delay_ms: int | None = None
    delay_ms: int | None = None
    ids_enabled: bool = True

    @property
    def implied_delay_ms(self) -> int | None:
        """The delay of a record that names none; None for at once."""
        return self.default_delay_ms if self.delay_ms is None else self.delay_ms


class HeaderError(Exception):
    """The record is for the dead-letter topic. Stays inside a dialect, which turns it into a `Reject`."""

    def __init__(self, reason: DeadLetterReason, detail: str) -> None:
        """`detail` is one ASCII sentence that names the header and says what is allowed."""
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def malformed(name: str, allowed: str, value: bytes | None) -> HeaderError:
    """A header whose value cannot be read; `allowed` says what could."""
    detail = f"header {name} must be {allowed}, but is {shown(value)}"
    return HeaderError(DeadLetterReason.MALFORMED_HEADER, detail)


def shown(value: bytes | None) -> str:
    """A header's value for a detail: ASCII, and of bounded length whatever the producer wrote."""
    if value is None:
        return "null"
    if not value:
        return "empty"
    text = repr(value[:_SHOWN_CHARACTERS])  # a repr is longer than its value: what is cut off here cannot fit
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


class Record(NamedTuple):
    """A record as the client handed it over, each part fetched once.

    `control` is as in `Schedule`. `timestamp_ms` is None when the record has none, or one that is no
    instant between 1970 and the year 9999.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    control: int
    timestamp_ms: int | None


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


def target_of(policy: NativePolicy, controls: Mapping[str, bytes | None]) -> str | None:
    """The topic that `deliver-to` names; None without the header. Raises `HeaderError`."""
    if DELIVER_TO not in controls:
        return None
    name = controls[DELIVER_TO]
    if name is None or not _TOPIC_NAME.fullmatch(name):
        raise malformed(DELIVER_TO, "a topic name of 1 to 249 letters, digits, dots, underscores or hyphens", name)
    topic = name.decode("ascii")
    if topic == policy.target_topic or policy.target_allowed(topic):
        return topic
    allowed = ", ".join((policy.target_topic, *policy.target_allowed.globs))
    detail = f"header {DELIVER_TO} names topic {topic}, but this DelayTopic allows {allowed} (target.allowed)"
    raise HeaderError(DeadLetterReason.FORBIDDEN_TARGET, detail)


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
