"""The records of the demo: plain ones, some of them cancelled or replaced, and a few malformed ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delaytopic_api.records import ACTION_CANCEL, DELIVER_ACTION, DELIVER_AFTER, DELIVER_AT, DELIVER_ID, Headers
from delaytopic_gateway.client.new_records import OutgoingRecord, cancel_record

MALFORMED: tuple[Headers, ...] = (
    [(DELIVER_AT, b"tomorrow")],
    [(DELIVER_AFTER, b"-5s")],
    [(DELIVER_AT, b"2027-01-01T00:00:00")],
    [(DELIVER_AFTER, b"1s"), (DELIVER_ACTION, b"postpone")],
    [(DELIVER_ACTION, ACTION_CANCEL)],
)
"""Headers that no relay can read: not a time; a negative delay; a time without an offset; an unknown action; a cancel
without an id."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The demo in numbers. Times are counted from the moment at which sending starts.

    Records are due evenly over `spread_ms`, from `lead_ms` on. The relay is killed `kill_after_ms` after the start.
    """

    records: int = 20_000
    lead_ms: int = 5_000
    spread_ms: int = 20_000
    kill_after_ms: int = 13_000
    cancelled: int = 100
    replaced: int = 100
    settle_ms: int = 3_000

    @property
    def last_due_after_ms(self) -> int:
        """The due time of the last record."""
        return self.lead_ms + self.spread_ms

    def schedules(self, start_ms: int) -> Iterator[OutgoingRecord]:
        """Yield the records in a mixed order of due times; every record has an id, which is its key, too."""
        for number in range(self.records):
            yield self._schedule(number, self._due_ms(number, start_ms), f"reminder {number}")

    def corrections(self, start_ms: int) -> Iterator[OutgoingRecord]:
        """Yield cancels and replacements of records that are due late enough for them to take effect."""
        safe = [number for number in range(self.records) if self._is_safe(number, start_ms)]
        for number in safe[: self.cancelled]:
            yield cancel_record(_name(number), None)
        for number in safe[self.cancelled : self.cancelled + self.replaced]:
            due_ms = min(self._due_ms(number, start_ms) + 1_000, start_ms + self.last_due_after_ms)
            yield self._schedule(number, due_ms, f"reminder {number}, replaced")

    def malformed(self) -> Iterator[OutgoingRecord]:
        """Yield records for the dead-letter topic."""
        for number, headers in enumerate(MALFORMED):
            yield OutgoingRecord(b"malformed-%d" % number, b"cannot be delivered", headers)

    def _due_ms(self, number: int, start_ms: int) -> int:
        place = number * 7_919 % self.records  # a prime: neighbours in the topic are far apart in time
        return start_ms + self.lead_ms + self.spread_ms * place // self.records

    def _is_safe(self, number: int, start_ms: int) -> bool:
        return self._due_ms(number, start_ms) - start_ms >= self.lead_ms + self.settle_ms

    def _schedule(self, number: int, due_ms: int, text: str) -> OutgoingRecord:
        name = _name(number).encode()
        headers: Headers = [("content-type", b"text/plain"), (DELIVER_AT, b"%d" % due_ms), (DELIVER_ID, name)]
        return OutgoingRecord(name, text.encode(), headers)


def _name(number: int) -> str:
    return f"reminder-{number}"
