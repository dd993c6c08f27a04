"""Records that Kafka refuses for good: each becomes a dead letter, and the others are sent again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import Reject, Schedule
from delaytopic_relay.delivery.outbound import Addressing, Refused
from delaytopic_relay.errors import RecordsRefused


class Refusal(NamedTuple):
    """A record that Kafka refuses for good; `partition` and `offset` are None when only the error is known.

    `dead_letter` tells that it was the dead letter of that source record.
    """

    error: str
    too_large: bool
    partition: int | None = None
    offset: int | None = None
    dead_letter: bool = False


def note_refusals(addressing: Addressing, refusals: Sequence[Refusal]) -> None:
    """Remember which records were refused, and give the tick up; raises `RecordsRefused` if there was any.

    Where the record is not known yet, the target sends the next ones one by one, and finds it then. After a refusal
    for its size no record is taken to fit without being measured, unless it was doubtful that this one fits.
    """
    if not refusals:
        return
    for refusal in refusals:
        if refusal.partition is not None and refusal.offset is not None:
            reason = DeadLetterReason.TOO_LARGE if refusal.too_large else DeadLetterReason.REFUSED_BY_KAFKA
            addressing.refused[refusal.partition, refusal.offset] = Refused(reason, refusal.error, refusal.dead_letter)
    if any(
        refusal.too_large and (refusal.partition, refusal.offset) not in addressing.doubtful for refusal in refusals
    ):
        addressing.certain_bytes = 0
    raise RecordsRefused(f"Kafka refused {len(refusals)} records: {refusals[0].error}")


CAREFUL_MS: Final = 5_000
LONGEST_CAREFUL_MS: Final = 3_600_000


class OneByOne:
    """The time for which records go one by one, after Kafka has refused a batch without telling which record it was.

    The time counts from the next record that is sent. Reading up to the refused record again may take longer: then it
    is refused without a name once more, and the time doubles, until the record is found.
    """

    def __init__(self) -> None:
        self._until_ms = 0
        self._lasts_ms = CAREFUL_MS
        self._begins = False

    def refused(self, *, known: bool) -> None:
        """Note a refusal; `known` tells whether it names its record."""
        self._begins = self._begins or not known
        if known:
            self._lasts_ms = CAREFUL_MS

    def holds(self, now_ms: int, *, may_begin: bool) -> bool:
        """Tell whether records go one by one now; the time begins if it is due and `may_begin`."""
        if self._begins and may_begin:
            if now_ms - self._until_ms > LONGEST_CAREFUL_MS:
                self._lasts_ms = CAREFUL_MS
            self._until_ms = now_ms + self._lasts_ms
            self._lasts_ms = min(2 * self._lasts_ms, LONGEST_CAREFUL_MS)
            self._begins = False
        return now_ms < self._until_ms


Sent = Sequence[tuple[int, Sequence[Schedule]]]
"""Schedules that a tick sent, by partition, in the order of sending."""


def dead_letters_for(refusals: Sequence[Refusal], sent: Sent) -> tuple[dict[int, list[Reject]], list[Refusal]]:
    """Without transactions what was sent with a refused record stays: only that record goes to the dead-letter topic.

    Returns the rejects by partition, and the refusals whose record is not known.
    """
    rejects: dict[int, list[Reject]] = {}
    unknown: list[Refusal] = []
    for refusal in refusals:
        schedule = None if refusal.dead_letter else _find(refusal, sent)
        if schedule is None or refusal.partition is None:
            unknown.append(refusal)
            continue
        reason = DeadLetterReason.TOO_LARGE if refusal.too_large else DeadLetterReason.REFUSED_BY_KAFKA
        offset, key, value, headers = schedule.offset, schedule.key, schedule.value, schedule.headers
        reject = Reject(offset, key, value, headers, reason, refusal.error, schedule.timestamp_ms)
        rejects.setdefault(refusal.partition, []).append(reject)
    return rejects, unknown


def _find(refusal: Refusal, sent: Sent) -> Schedule | None:
    of_it = (schedules for partition, schedules in sent if partition == refusal.partition)
    return next((s for schedules in of_it for s in schedules if s.offset == refusal.offset), None)
