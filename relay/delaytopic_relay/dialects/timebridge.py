"""The Timebridge dialect: the headers of kafka-timebridge, `X-Timebridge-When` and `X-Timebridge-Where`.

Both are required, are taken off, and of a repeated one the last counts.
"""

from __future__ import annotations

from typing import Final

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import Command, Reject, Schedule, SourceMessage
from delaytopic_relay.dialects.reading import (
    NamedTarget,
    Policy,
    Record,
    RecordError,
    due_within,
    last_values,
    read_by,
    timestamp_of,
)
from delaytopic_relay.dialects.times import rfc_3339_ms
from delaytopic_relay.dialects.writing import Departure, Letter, ReadBy, Written, without

WHEN: Final = "X-Timebridge-When"
WHERE: Final = "X-Timebridge-Where"
ERROR: Final = "X-Timebridge-Error"
_CONTROLS: Final = frozenset({WHEN, WHERE})


class TimebridgeDialect:
    """Reads and writes the records of one DelayTopic."""

    read_by = ReadBy.TIMEBRIDGE

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._target = NamedTarget(policy, f"header {WHERE}")

    def read(self, message: SourceMessage) -> Command:
        """The record's command; never raises."""
        return read_by(self._command, message)

    def _command(self, record: Record) -> Command:
        values = last_values(record.headers)
        for name in (WHEN, WHERE):
            if not values.get(name):
                raise RecordError(DeadLetterReason.MALFORMED_HEADER, f"{name} header is missing")
        when_ms = rfc_3339_ms(values[WHEN] or b"")
        if when_ms is None:
            detail = f"{WHEN} header is invalid, RFC3339 format expected"
            raise RecordError(DeadLetterReason.MALFORMED_HEADER, detail)
        due_ms = due_within(self._policy, timestamp_of(record, f"header {WHEN}"), max(0, when_ms))
        target = self._target(values[WHERE])
        return Schedule(due_ms, record.offset, record.key, record.value, record.headers, self.read_by, target=target)

    def write(self, schedule: Schedule, departure: Departure) -> Written:
        """The record without the two headers."""
        return Written(schedule.key, schedule.value, without(schedule.headers, _CONTROLS))

    def letter(self, reject: Reject, departure: Departure) -> Letter:
        """The record untouched, with the error."""
        headers = [*(reject.headers or ()), (ERROR, reject.detail.encode())]
        return Letter(reject.key, reject.value, headers)
