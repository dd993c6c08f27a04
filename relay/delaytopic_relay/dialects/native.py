"""The native dialect: `deliver-at`, `deliver-after` and the other control headers of the record contract."""

from __future__ import annotations

from delaytopic_api.records import CONTROL_HEADERS, DELIVER_AFTER, DELIVER_AT
from delaytopic_relay.core.commands import (
    MAX_HEADERS,
    NO_CONTROL_HEADER,
    SEVERAL_CONTROL_HEADERS,
    Command,
    Schedule,
    SourceMessage,
)
from delaytopic_relay.dialects.strict import NativePolicy, Record, read_carefully, too_many_headers, unreadable_headers
from delaytopic_relay.dialects.times import LAST_INSTANT_MS, is_instant

_TIMESTAMP_NOT_AVAILABLE = 0
_NOT_PLAIN = -1


class NativeDialect:
    """Reads one DelayTopic's records; called once for each, so that plain records take a short way.

    Plain is a record without a control header, or with one `deliver-at` or `deliver-after` in digits and
    no other. The rest goes the careful way, which would give the same for the plain ones.
    """

    __slots__ = ("_implied_delay_ms", "_last_timestamp_ms", "_max_delay_ms", "_policy")

    def __init__(self, policy: NativePolicy) -> None:
        """One dialect for one DelayTopic; it keeps no state between records."""
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
            elif headers and control >= 0:
                due_ms = self._plain_due_ms(headers[control], timestamp_ms)
        # A record that was consumed has an offset; the client's type allows None for one not sent yet.
        offset = message.offset() or 0
        if due_ms == _NOT_PLAIN:
            known_ms = timestamp_ms if kind != _TIMESTAMP_NOT_AVAILABLE and is_instant(timestamp_ms) else None
            record = Record(offset, message.key(), message.value(), headers, control, known_ms)
            return read_carefully(self._policy, record)
        return Schedule(due_ms, offset, message.key(), message.value(), headers, control)

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
