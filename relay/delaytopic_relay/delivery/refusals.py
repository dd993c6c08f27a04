"""Records that Kafka refuses for good: each becomes a dead letter, and the others are sent again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import Reject, Schedule
from delaytopic_relay.delivery.shrinking import may_shrink_to


class Refusal(NamedTuple):
    """A record that Kafka refuses for good; `partition` and `offset` are None when only the error is known.

    `dead_letter` tells that it was the dead letter of that source record.
    """

    error: str
    too_large: bool
    partition: int | None = None
    offset: int | None = None
    dead_letter: bool = False


class Refused(NamedTuple):
    """A record that Kafka refused when it was produced; `dead_letter` when the dead letter was refused, too."""

    reason: DeadLetterReason
    detail: str
    dead_letter: bool = False


Place = tuple[int, int]
"""A source partition, and an offset in it."""


class Refusals:
    """The records that Kafka has refused, or may refuse, until what becomes of them is committed."""

    def __init__(self) -> None:
        self.refused: dict[Place, Refused] = {}
        self._taken: set[Place] = set()
        self.doubtful: dict[Place, int] = {}
        """Records that were sent, or refused and are not settled yet, although they fit only if they are compressed
        well, and the topic's limit."""
        self.compress: Callable[[], None] | None = None
        """Has the target compress, if it does not yet; asked where something may fit only so. None if it may not."""

    def note(self, found: Sequence[Refusal]) -> bool:
        """Remember which records were refused; return whether one was too large of which that was not expected."""
        for refusal in found:
            if refusal.partition is not None and refusal.offset is not None:
                reason = DeadLetterReason.TOO_LARGE if refusal.too_large else DeadLetterReason.REFUSED_BY_KAFKA
                place = (refusal.partition, refusal.offset)
                self.refused[place] = Refused(reason, refusal.error, refusal.dead_letter)
        return any(each.too_large and (each.partition, each.offset) not in self.doubtful for each in found)

    def taken(self, place: Place) -> Refused | None:
        """Return why the record of a place was refused, whose dead letter leaves now; None if it was not."""
        refused = self.refused.get(place)
        if refused is not None:
            self._taken.add(place)
        return refused

    def may_fit(self, place: Place, value: bytes | None, limit: int) -> bool:
        """Return whether something of this place may fit into a topic once it is compressed.

        A broker compares the size that a batch has then, which nobody knows before: Kafka judges.
        """
        if self.compress is None or not may_shrink_to(value or b"", limit):
            return False
        self.compress()
        self.doubtful[place] = limit
        return True

    def forget(self, partitions: Collection[int]) -> None:
        """Forget what was refused of these: when they are read again, their offsets may mean other records."""
        for known in (self.refused, self.doubtful):
            for place in [place for place in known if place[0] in partitions]:
                del known[place]

    def settled(self, *, committed: bool) -> None:
        """The tick has ended: what became of refused records is committed, or has to be done again."""
        if committed:
            for place in self._taken:
                self.refused.pop(place, None)
            # Other records may be committed before a dead letter is made of one that was refused.
            self.doubtful = {place: limit for place, limit in self.doubtful.items() if place in self.refused}
        self._taken.clear()


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
        timestamp_ms, name, due_ms = schedule.timestamp_ms, schedule.id, schedule.due_ms
        reject = Reject(offset, key, value, headers, reason, refusal.error, timestamp_ms, name, due_ms)
        rejects.setdefault(refusal.partition, []).append(reject)
    return rejects, unknown


def _find(refusal: Refusal, sent: Sent) -> Schedule | None:
    of_it = (schedules for partition, schedules in sent if partition == refusal.partition)
    # Of what goes into the source once more as well: see `batches.again`.
    offsets = (refusal.offset, -1 - refusal.offset if refusal.offset is not None else None)
    return next((s for schedules in of_it for s in schedules if s.offset in offsets), None)
