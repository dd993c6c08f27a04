"""Terms: what a shard takes in beyond what the record itself says, and from which source offset on.

Three things cannot be told from a record alone: whether its timestamp, which a producer writes, is ahead of the clock,
so that it would wait longer than `maxDelay`; whether ids take all the memory that they may; and how large a record the
backlog takes. A record that is refused for one of them must be refused when it is read again, or it would be delivered
beside its dead letter; one that was taken in must be taken in again, or it would be lost. So neither the clock nor the
memory nor a topic's setting decides, but the terms in force at the record's offset, which are committed with the
progress. As long as nothing was refused there is nothing to commit: all that is below the position was taken in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.bucket_state import number_of
from delaytopic_relay.core.commands import DueKey, Postpone, Reject, Schedule

LEAST_TOLERANCE_MS = 3_600_000
TOLERANCE_SHARE = 8
"""A timestamp may be ahead by an hour, and by an eighth of `maxDelay`. While records are refused, terms change at most
so often, and each is kept until all that it allowed is delivered: some twenty are committed at the most."""
MANY_TERMS = 16
"""With so many kept, as when nothing is delivered, the tolerance doubles."""
NEVER_MS = 1 << 62
ANY_SIZE = 1 << 62

_since = attrgetter("since")


class Terms(NamedTuple):
    """In force from offset `since` on: nothing due after `latest_ms`, schedules with an id only with `ids`, and none
    that takes more than `record_bytes` in the backlog.
    """

    since: int
    latest_ms: int
    ids: bool
    record_bytes: int = ANY_SIZE


ANYTHING = Terms(0, NEVER_MS, True)
"""Before any terms there were: all was taken in."""
NOTHING_MS = -1
"""Nothing is due at or before it: what is not yet done was refused."""


class Admission:
    """The terms of one shard."""

    def __init__(self, kept: Sequence[Terms]) -> None:
        """`kept` are the committed ones; none if nothing was ever refused."""
        self._kept = [*kept] or [ANYTHING]
        self._ever_refused = bool(kept)
        # A predecessor may have refused something by the last of them.
        self._last_refused = bool(kept)
        self._closed_ms: int | None = None

    @property
    def now(self) -> Terms:
        """The terms for what was not yet taken in."""
        return self._kept[-1]

    def kept(self, cursor: DueKey) -> tuple[Terms, ...]:
        """Return what to commit: those that are of use to whoever reads again what was taken in."""
        if any(NOTHING_MS < terms.latest_ms <= cursor.due_ms for terms in self._kept[:-1]):
            self._forget(cursor.due_ms)
        return tuple(self._kept) if self._ever_refused else ()

    def _forget(self, done_ms: int) -> None:
        """Forget terms by which nothing waits any more; of several such in a row the first says it all."""
        kept: list[Terms] = []
        for terms in self._kept[:-1]:
            left = Terms(terms.since, NOTHING_MS, False, 0) if terms.latest_ms <= done_ms else terms
            if not (kept and kept[-1].latest_ms == left.latest_ms == NOTHING_MS):
                kept.append(left)
        self._kept = [*kept, self.now]

    @property
    def least_bytes(self) -> int:
        """The size up to which no terms refuse a schedule."""
        return min(terms.record_bytes for terms in self._kept)

    def renew(
        self, now_ms: int, offset: int, max_delay_ms: int, *, ids_full: bool, record_bytes: int = ANY_SIZE
    ) -> None:
        """Bring the terms up to date, for records from this offset on; the ones before it are decided."""
        tolerance_ms = max(LEAST_TOLERANCE_MS, max_delay_ms // TOLERANCE_SHARE) << (len(self._kept) // MANY_TERMS)
        now = self.now
        ids = self._takes_ids(now_ms, tolerance_ms, full=ids_full)
        ahead_ms = now.latest_ms - now_ms - max_delay_ms
        same = (ids, record_bytes) == (now.ids, now.record_bytes)
        if same and tolerance_ms <= ahead_ms <= 3 * tolerance_ms:
            return
        terms = Terms(offset, now_ms + max_delay_ms + 2 * tolerance_ms, ids, record_bytes)
        untouched = not self._last_refused and same and terms.latest_ms >= now.latest_ms
        if untouched or offset <= now.since:
            self._kept[-1] = terms._replace(since=now.since)
        else:
            self._kept.append(terms)
            self._last_refused = False

    def _takes_ids(self, now_ms: int, tolerance_ms: int, *, full: bool) -> bool:
        """Not while they are too many, nor soon after, so that the terms do not change with every record."""
        if full and self.now.ids:
            self._closed_ms = now_ms
        if full or self.now.ids:
            return not full
        if self._closed_ms is None:
            self._closed_ms = now_ms
        return now_ms - self._closed_ms >= tolerance_ms

    def refusal(self, schedule: Schedule, size: int = 0) -> Reject | None:
        """Return why the terms in force at its offset do not allow a schedule of this size; None if they do."""
        terms = self._at(schedule.offset)
        if schedule.due_ms > terms.latest_ms:
            return self._too_late(schedule, terms)
        if schedule.id is not None and not terms.ids:
            detail = (
                "too many schedules with an id wait in this partition (limits.idMemory), so that none is taken in "
                "for an hour or more; without header deliver-id it would be"
            )
            return self._refused(schedule, DeadLetterReason.TOO_MANY_IDS, detail)
        return self._too_large(schedule, size, terms.record_bytes) if size > terms.record_bytes else None

    def refuse_postponing(self, postpone: Postpone) -> Reject | None:
        """Return why the terms in force at its offset do not allow the time that something is put off to."""
        terms = self._at(postpone.offset)
        return self._too_late(postpone, terms) if postpone.due_ms > terms.latest_ms else None

    def _at(self, offset: int) -> Terms:
        return self._kept[bisect_right(self._kept, offset, key=_since) - 1]

    def _too_late(self, command: Schedule | Postpone, terms: Terms) -> Reject:
        detail = (
            f"it is due at {command.due_ms}, and no record is taken in now that is due after {terms.latest_ms}: "
            "its timestamp is ahead of the clock, and schedule.maxDelay counts from there"
        )
        return self._refused(command, DeadLetterReason.BEYOND_MAX_DELAY, detail)

    def refuse_moved(self, schedule: Schedule, size: int, record_bytes: int) -> Reject:
        """Refuse one that another backlog took in and this one cannot take; the ones before it are decided, too."""
        kept: list[Terms] = []
        for terms, end in zip(self._kept, [*(terms.since for terms in self._kept[1:]), NEVER_MS], strict=True):
            if terms.since > schedule.offset:
                kept.append(terms)
                continue
            tighter = terms._replace(record_bytes=min(terms.record_bytes, record_bytes))
            if not (kept and kept[-1] == tighter._replace(since=kept[-1].since)):
                kept.append(tighter)
            if tighter != terms and end > schedule.offset + 1:
                kept.append(terms._replace(since=schedule.offset + 1))
        self._kept = kept
        return self._too_large(schedule, size, record_bytes)

    def _too_large(self, schedule: Schedule, size: int, record_bytes: int) -> Reject:
        detail = f"it takes {size} bytes in a bucket topic, which allows {record_bytes} (max.message.bytes)"
        return self._refused(schedule, DeadLetterReason.TOO_LARGE, detail)

    def _refused(self, schedule: Schedule | Postpone, reason: DeadLetterReason, detail: str) -> Reject:
        self._ever_refused = self._last_refused = True
        offset, key, value, headers = schedule.offset, schedule.key, schedule.value, schedule.headers
        return Reject(offset, key, value, headers, reason, detail, schedule.timestamp_ms)


def encode_terms(terms: Sequence[Terms]) -> str:
    """Return the text: four numbers each."""
    return ",".join(f"{since}:{latest_ms}:{int(ids)}:{size}" for since, latest_ms, ids, size in terms)


def decode_terms(text: str) -> tuple[Terms, ...]:
    """Read it back. Raises `ValueError`."""
    found: list[Terms] = []
    for part in text.split(","):
        since, latest_ms, ids, record_bytes = map(number_of, part.split(":"))
        found.append(Terms(since, latest_ms, bool(ids), record_bytes))
    return tuple(found)
