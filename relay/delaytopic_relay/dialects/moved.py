"""Reads records as if they were produced later by the time that a test has moved its clock ahead: by any dialect."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from delaytopic_api.records import Headers
from delaytopic_relay.core.commands import Cancel, Command, Dialect, Ignore, Schedule, SourceMessage
from delaytopic_relay.dialects.times import is_instant

_TIMESTAMP_NOT_AVAILABLE = 0


class MovedDialect:
    """Implements `Dialect`, one record at a time: who tests an application has few."""

    def __init__(self, dialect: Dialect, shift_ms: int) -> None:
        """`dialect` reads by the same rules with a clock that nobody moves."""
        self._dialect = dialect
        self._shift_ms = shift_ms

    def read(self, message: SourceMessage) -> Command:
        """See `Dialect.read`. Receipts and dead letters name the timestamp that the record has on its topic."""
        command = self._dialect.read(_Moved(message, self._shift_ms))
        if isinstance(command, Cancel | Ignore) or command.timestamp_ms is None:
            return command
        timestamp_ms = command.timestamp_ms - self._shift_ms
        if isinstance(command, Schedule):
            return _with_timestamp(command, timestamp_ms)
        return msgspec.structs.replace(command, timestamp_ms=timestamp_ms)

    def read_all(self, messages: Sequence[SourceMessage]) -> list[Command]:
        """See `Dialect.read_all`."""
        return [self.read(message) for message in messages]


class _Moved:
    """A record with a later timestamp."""

    def __init__(self, message: SourceMessage, shift_ms: int) -> None:
        self._message = message
        self._shift_ms = shift_ms

    def topic(self) -> str | None:
        return self._message.topic()

    def partition(self) -> int | None:
        return self._message.partition()

    def offset(self) -> int | None:
        return self._message.offset()

    def timestamp(self) -> tuple[int, int]:
        kind, timestamp_ms = self._message.timestamp()
        counts = kind != _TIMESTAMP_NOT_AVAILABLE and is_instant(timestamp_ms)
        return kind, timestamp_ms + self._shift_ms if counts else timestamp_ms

    def key(self) -> bytes | None:
        return self._message.key()

    def value(self) -> bytes | None:
        return self._message.value()

    def headers(self) -> Headers | None:
        return self._message.headers()


def _with_timestamp(schedule: Schedule, timestamp_ms: int) -> Schedule:
    return Schedule(
        schedule.due_ms,
        schedule.offset,
        schedule.key,
        schedule.value,
        schedule.headers,
        schedule.control,
        schedule.id,
        schedule.target,
        schedule.expires_ms,
        timestamp_ms,
        schedule.rank,
    )
