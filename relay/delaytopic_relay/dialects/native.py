"""The native dialect: `deliver-at`, `deliver-after` and the other control headers of the record contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from delaytopic_api.records import (
    ACTION_CANCEL,
    ACTION_SCHEDULE,
    CONTROL_HEADERS,
    DELIVER_ACTION,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_EXPIRES_AT,
    DELIVER_ID,
    DELIVER_REQUESTED_BY,
    DELIVER_TO,
    RECURRENCE_HEADERS,
    RESERVED_HEADERS,
    DeadLetterReason,
    Headers,
    resembled_header,
)
from delaytopic_relay.core.commands import (
    MAX_HEADERS,
    NO_CONTROL_HEADER,
    SEVERAL_CONTROL_HEADERS,
    TO_BE_RESOLVED,
    Cancel,
    Command,
    Reject,
    Schedule,
    SourceMessage,
)
from delaytopic_relay.core.entries import read
from delaytopic_relay.dialects.reading import (
    MAX_ID_BYTES,
    RecordError,
    SourceRecord,
    TopicGlobs,
    allowed_topic,
    due_within,
    malformed,
    shown,
    timestamp_of,
    too_many_headers,
    unreadable_headers,
)
from delaytopic_relay.dialects.recurring import recurrence_of, refused, written_by_relay
from delaytopic_relay.dialects.restated import Restated
from delaytopic_relay.dialects.times import LAST_INSTANT_MS, delay_ms, delay_text, instant_ms, instant_text, is_instant

AT_ONCE_MS = 0
"""Due time of a record that is to leave at once and has no timestamp."""
Controls = Mapping[str, bytes | None]
"""The control headers of a record; of a repeated one the last."""
MAX_REQUESTED_BY_BYTES = 256
MOST_NAMES = 16
"""The most names of a record's headers that are compared with control headers': the producer of a record chooses them.
"""
_FIRST_LETTERS = "dDxX"
_TIMESTAMP_NOT_AVAILABLE = 0
_NOT_PLAIN = -1
_AN_INSTANT = (
    "epoch milliseconds in digits (1795269686270) or RFC 3339 with an offset (2026-11-21T14:01:26.270Z),"
    " between 1970 and the year 9999"
)
_A_DELAY = "milliseconds in digits (90000) or a duration (90s, 1h30m, 500ms)"


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


class NativeDialect:
    """Reads one DelayTopic's records; called once for each, so that plain records take a short way.

    Plain is a record without a control header, or with one `deliver-at` or `deliver-after` in digits and
    no other. The rest goes the careful way, which would give the same for the plain ones.
    """

    __slots__ = ("_implied_delay_ms", "_last_timestamp_ms", "_max_delay_ms", "_misspelt", "_policy")

    def __init__(self, policy: NativePolicy, misspelt: Callable[[str], None] | None = None) -> None:
        """One dialect for one DelayTopic; it keeps no state between records.

        `misspelt` hears of records without a control header that have one of a name that resembles one. It changes
        nothing of how they are read.
        """
        self._misspelt = misspelt
        self._policy = policy
        self._implied_delay_ms = policy.implied_delay_ms or 0
        # Up to this timestamp, whatever `maxDelay` allows is an instant.
        self._last_timestamp_ms = LAST_INSTANT_MS - policy.max_delay_ms
        # With a fixed delay a time header is an error, so none is plain: not even one long past.
        self._max_delay_ms = policy.max_delay_ms if policy.delay_ms is None else -LAST_INSTANT_MS - 1

    def read(self, message: SourceMessage) -> Command:
        """The record's command; never raises. The header list is passed on itself, neither copied nor changed."""
        try:
            headers = message.headers()
        except (SystemError, UnicodeDecodeError):
            # Asked again, the client returns a list with a NULL in it: it may not be touched any more.
            return unreadable_headers(message.offset() or 0, message.key(), message.value())
        if headers and len(headers) > MAX_HEADERS:
            return too_many_headers(message.offset() or 0, message.key(), message.value())
        control = NO_CONTROL_HEADER
        index = 0
        for name, _ in headers or ():
            if name in CONTROL_HEADERS:
                control = index if control == NO_CONTROL_HEADER else SEVERAL_CONTROL_HEADERS
            index += 1  # noqa: SIM113 - enumerate takes a fifth longer
        kind, timestamp_ms = message.timestamp()
        due_ms = _NOT_PLAIN
        if kind != _TIMESTAMP_NOT_AVAILABLE and 0 <= timestamp_ms <= self._last_timestamp_ms:
            if control == NO_CONTROL_HEADER:
                due_ms = timestamp_ms + self._implied_delay_ms
                if headers and self._misspelt is not None:
                    self._note_misspelt(headers)
            elif headers and control >= 0:
                due_ms = self._plain_due_ms(headers[control], timestamp_ms)
        # A record that was consumed has an offset; the client's type allows None for one not sent yet.
        offset = message.offset() or 0
        if due_ms == _NOT_PLAIN:
            known_ms = timestamp_ms if kind != _TIMESTAMP_NOT_AVAILABLE and is_instant(timestamp_ms) else None
            record = SourceRecord(offset, message.key(), message.value(), headers, known_ms, message)
            return read_carefully(self._policy, record, control)
        # By place: by name the last takes a sixth of the time longer.
        return Schedule(
            due_ms, offset, message.key(), message.value(), headers, control, None, None, None, timestamp_ms
        )

    def read_all(self, messages: Sequence[SourceMessage]) -> list[Command]:
        """Read records in their order."""
        note = self._note_misspelt if self._misspelt is not None else None
        return read(messages, self.read, self._implied_delay_ms, self._last_timestamp_ms, self._max_delay_ms, note)

    def _note_misspelt(self, headers: Headers) -> None:
        for name, _ in headers[:MOST_NAMES]:
            if name[:1] in _FIRST_LETTERS and self._misspelt is not None and resembled_header(name) is not None:
                self._misspelt(name)
                return

    def _plain_due_ms(self, header: tuple[str, bytes | None], timestamp_ms: int) -> int:
        name, text = header
        if text is None or not text.isdigit():
            return _NOT_PLAIN
        try:
            due_ms = int(text)
        except ValueError:  # thousands of digits
            return _NOT_PLAIN
        if name == DELIVER_AFTER:
            due_ms += timestamp_ms
        elif name != DELIVER_AT:
            return _NOT_PLAIN
        return due_ms if due_ms - timestamp_ms <= self._max_delay_ms else _NOT_PLAIN


def read_carefully(policy: NativePolicy, record: SourceRecord, control: int) -> Command:
    """The command of any record with readable header names."""
    try:
        return _command(policy, record, control)
    except RecordError as error:
        return Reject(record.offset, record.key, record.value, record.headers, error.reason, error.detail)


def _command(policy: NativePolicy, record: SourceRecord, control: int) -> Command:
    controls = {name: value for name, value in record.headers or () if name in CONTROL_HEADERS}
    written = written_by_relay(policy, record, controls) if control == SEVERAL_CONTROL_HEADERS else None
    if written is not None:
        return _beside_fixed_delay(policy, record, written)
    _refuse_reserved(controls)
    _refuse_beside_fixed_delay(policy, controls)
    if DELIVER_REQUESTED_BY in controls:
        _check_requested_by(controls[DELIVER_REQUESTED_BY])
    cancels = _cancels(controls)
    identity = _identity(policy, controls, needed=cancels)
    if cancels and identity is not None:
        _refuse_beside_cancel(controls)
        return Cancel(record.offset, identity, requested_by=controls.get(DELIVER_REQUESTED_BY))
    recurrence = recurrence_of(policy, record, controls)
    if recurrence is not None:
        due_ms, control = timestamp_of(record, "a record that recurs"), TO_BE_RESOLVED
        expires_ms = None
    else:
        due_ms = _due_ms(policy, record, controls)
        expires_ms = _expires_ms(controls, due_ms)
    return Schedule(
        due_ms,
        record.offset,
        record.key,
        record.value,
        record.headers,
        control,
        identity,
        allowed_topic(policy, f"header {DELIVER_TO}", controls[DELIVER_TO]) if DELIVER_TO in controls else None,
        expires_ms,
        record.timestamp_ms,
    )


def _beside_fixed_delay(policy: NativePolicy, record: SourceRecord, written: Command) -> Command:
    """Return what a relay has written by former rules; a fixed delay has no place for another time."""
    if policy.delay_ms is None or not isinstance(written, Schedule):
        return written
    detail = f"this DelayTopic delays every record by {delay_text(policy.delay_ms)} now: nothing recurs in it any more"
    assert written.id is not None
    assert written.rank is not None
    restated = Restated(written.due_ms, written.rank)
    return refused(record, written.id, restated, RecordError(DeadLetterReason.CONTRADICTORY_HEADERS, detail))


def _refuse_reserved(controls: Controls) -> None:
    for name in RESERVED_HEADERS:
        if name in controls:
            detail = f"header {name} is reserved and has no meaning yet: send the record without it"
            raise RecordError(DeadLetterReason.UNSUPPORTED, detail)


def _check_requested_by(text: bytes | None) -> None:
    if text and len(text) <= MAX_REQUESTED_BY_BYTES:
        with suppress(UnicodeDecodeError):
            text.decode()
            return
    raise malformed(DELIVER_REQUESTED_BY, f"1 to {MAX_REQUESTED_BY_BYTES} bytes of text in UTF-8", text)


def _refuse_beside_fixed_delay(policy: NativePolicy, controls: Controls) -> None:
    if policy.delay_ms is None:
        return
    for name in (DELIVER_AT, DELIVER_AFTER, DELIVER_ID, DELIVER_ACTION, *RECURRENCE_HEADERS):
        if name in controls:
            detail = f"this DelayTopic delays every record by {delay_text(policy.delay_ms)}: remove header {name}"
            raise RecordError(DeadLetterReason.CONTRADICTORY_HEADERS, detail)


def _cancels(controls: Controls) -> bool:
    action = controls.get(DELIVER_ACTION, ACTION_SCHEDULE)
    if action not in {ACTION_SCHEDULE, ACTION_CANCEL}:
        detail = f"header {DELIVER_ACTION} must be schedule or cancel, but is {shown(action)}"
        raise RecordError(DeadLetterReason.UNKNOWN_ACTION, detail)
    return action == ACTION_CANCEL


def _identity(policy: NativePolicy, controls: Controls, *, needed: bool) -> bytes | None:
    if not policy.ids_enabled and (needed or DELIVER_ID in controls):
        name = DELIVER_ID if DELIVER_ID in controls else DELIVER_ACTION
        detail = f"header {name} needs schedule ids, which this DelayTopic has disabled (schedule.ids: Disabled)"
        raise RecordError(DeadLetterReason.UNSUPPORTED, detail)
    if DELIVER_ID not in controls:
        if needed:
            detail = f"header {DELIVER_ACTION} is cancel: header {DELIVER_ID} must name the schedule to cancel"
            raise RecordError(DeadLetterReason.MALFORMED_HEADER, detail)
        return None
    identity = controls[DELIVER_ID]
    if not identity or len(identity) > MAX_ID_BYTES:
        raise malformed(DELIVER_ID, f"1 to {MAX_ID_BYTES} bytes", identity)
    return identity


def _refuse_beside_cancel(controls: Controls) -> None:
    for name in (DELIVER_AT, DELIVER_AFTER, DELIVER_TO, DELIVER_EXPIRES_AT, *RECURRENCE_HEADERS):
        if name in controls:
            detail = f"header {DELIVER_ACTION} is cancel, which makes no schedule: remove header {name}"
            raise RecordError(DeadLetterReason.CONTRADICTORY_HEADERS, detail)


def _due_ms(policy: NativePolicy, record: SourceRecord, controls: Controls) -> int:
    """The due time, from the record alone. Raises `RecordError`."""
    # Both are read before one wins: what cannot be read is never passed over in silence.
    after_ms = _delay(controls[DELIVER_AFTER]) if DELIVER_AFTER in controls else None
    at_ms = _instant(DELIVER_AT, controls[DELIVER_AT]) if DELIVER_AT in controls else None
    if at_ms is None and after_ms is None and policy.implied_delay_ms is None:
        return AT_ONCE_MS if record.timestamp_ms is None else record.timestamp_ms
    if at_ms is not None:
        return due_within(policy, timestamp_of(record, f"header {DELIVER_AT}"), at_ms)
    if after_ms is not None:
        timestamp_ms = timestamp_of(record, f"header {DELIVER_AFTER}")
        return due_within(policy, timestamp_ms, timestamp_ms + after_ms)
    return timestamp_of(record, "the delay of this DelayTopic") + (policy.implied_delay_ms or 0)


def _expires_ms(controls: Controls, due_ms: int) -> int | None:
    """The last instant at which delivery is still of use; None without the header. Raises `RecordError`."""
    if DELIVER_EXPIRES_AT not in controls:
        return None
    expires_ms = _instant(DELIVER_EXPIRES_AT, controls[DELIVER_EXPIRES_AT])
    if expires_ms < due_ms:
        detail = (
            f"header {DELIVER_EXPIRES_AT} is {instant_text(expires_ms)}, before the record is due:"
            f" {instant_text(due_ms)}"
        )
        raise RecordError(DeadLetterReason.CONTRADICTORY_HEADERS, detail)
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
