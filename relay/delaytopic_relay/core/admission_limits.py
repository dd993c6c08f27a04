"""Admission limits: what a shard takes in beyond what the record itself says, and from which source offset on.

Three things cannot be told from a record alone: whether its timestamp, which a producer writes, is ahead of the clock,
so that it would wait longer than `maxDelay`; whether ids take all the memory that they may; and how large a record the
backlog takes. A record that is refused for one of them must be refused when it is read again, or it would be delivered
beside its dead letter; one that was taken in must be taken in again, or it would be lost. So neither the clock nor the
memory nor a topic's setting decides, but the limits in force at the record's offset, which are committed with the
progress. As long as nothing was refused there is nothing to commit: all that is below the position was taken in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.bucket_state import number_of
from delaytopic_relay.core.commands import DueKey, Postpone, Reject, Schedule, goes_on

LEAST_TOLERANCE_MS = 3_600_000
TOLERANCE_SHARE = 8
"""A timestamp may be ahead by an hour, and by an eighth of `maxDelay`. While records are refused, limits change at most
so often, and each is kept until all that it allowed is delivered: some twenty are committed at the most."""
MANY_LIMITS = 16
"""The number of kept limits, as there are when nothing is delivered, at which the tolerance doubles."""
SHARE_OF_WRITTEN = 2
"""The most that ids may take of their memory for what relays have written to be taken in."""
_WITHOUT_ID = "without header deliver-id it would be"
_NONE, _ALL, _WRITTEN = 0, 1, 2
NEVER_MS = 1 << 62
ANY_SIZE = 1 << 62

_since = attrgetter("since")


class AdmissionLimits(NamedTuple):
    """The limits in force from offset `since` on: nothing due after `latest_ms`, schedules with an id only with `ids`,
    and none that takes more than `record_bytes` in the backlog.

    What relays have written follows a schedule that was taken in, and needs `written` alone: others that fill the
    memory end no chain of occurrences. Without a bound anybody could write as a relay does.
    """

    since: int
    latest_ms: int
    ids: bool
    record_bytes: int = ANY_SIZE
    written: bool = True


ANYTHING = AdmissionLimits(0, NEVER_MS, True)
"""The limits before there were any: all was taken in."""
NOTHING_MS = -1
"""A latest time at or before which nothing is due: what is not yet done was refused."""


class Admission:
    """The admission limits of one shard."""

    def __init__(self, kept: Sequence[AdmissionLimits]) -> None:
        """`kept` are the committed ones; none if nothing was ever refused."""
        self._kept = [*kept] or [ANYTHING]
        self._ever_refused = bool(kept)
        # A predecessor may have refused something by the last of them.
        self._last_refused = bool(kept)
        self._closed_ms: int | None = None

    @property
    def now(self) -> AdmissionLimits:
        """The limits for what was not yet taken in."""
        return self._kept[-1]

    def kept(self, cursor: DueKey) -> tuple[AdmissionLimits, ...]:
        """Return what to commit: those that are of use to whoever reads again what was taken in."""
        if any(NOTHING_MS < limits.latest_ms <= cursor.due_ms for limits in self._kept[:-1]):
            self._forget(cursor.due_ms)
        return tuple(self._kept) if self._ever_refused else ()

    def _forget(self, done_ms: int) -> None:
        """Forget limits by which nothing waits any more; of several such in a row the first says it all."""
        kept: list[AdmissionLimits] = []
        for limits in self._kept[:-1]:
            left = AdmissionLimits(limits.since, NOTHING_MS, False, 0, False) if limits.latest_ms <= done_ms else limits
            if not (kept and kept[-1].latest_ms == left.latest_ms == NOTHING_MS):
                kept.append(left)
        self._kept = [*kept, self.now]

    @property
    def least_bytes(self) -> int:
        """The size up to which no limits refuse a schedule."""
        return min(limits.record_bytes for limits in self._kept)

    def renew(
        self, now_ms: int, offset: int, max_delay_ms: int, *, ids_share: float, record_bytes: int = ANY_SIZE
    ) -> None:
        """Bring the limits up to date, for records from this offset on; the ones before it are decided.

        `ids_share` is what ids take of the memory that they may.
        """
        tolerance_ms = max(LEAST_TOLERANCE_MS, max_delay_ms // TOLERANCE_SHARE) << (len(self._kept) // MANY_LIMITS)
        now = self.now
        ids = self._takes_ids(now_ms, tolerance_ms, full=ids_share > 1)
        written = ids or (now.written and ids_share <= SHARE_OF_WRITTEN)
        ahead_ms = now.latest_ms - now_ms - max_delay_ms
        same = (ids, record_bytes, written) == (now.ids, now.record_bytes, now.written)
        if same and tolerance_ms <= ahead_ms <= 3 * tolerance_ms:
            return
        latest_ms = now_ms + max_delay_ms + 2 * tolerance_ms
        limits = AdmissionLimits(offset, latest_ms, ids, record_bytes, written)
        untouched = not self._last_refused and same and limits.latest_ms >= now.latest_ms
        if untouched or offset <= now.since:
            self._kept[-1] = limits._replace(since=now.since)
        else:
            self._kept.append(limits)
            self._last_refused = False

    def _takes_ids(self, now_ms: int, tolerance_ms: int, *, full: bool) -> bool:
        """Return whether ids are taken: not while they are too many, nor soon after, so that limits do not change with
        every record.
        """
        if full and self.now.ids:
            self._closed_ms = now_ms
        if full or self.now.ids:
            return not full
        if self._closed_ms is None:
            self._closed_ms = now_ms
        return now_ms - self._closed_ms >= tolerance_ms

    def refusal(self, schedule: Schedule, size: int = 0) -> Reject | None:
        """Return why the limits in force at its offset do not allow a schedule of this size; None if they do."""
        limits = self._at(schedule.offset)
        if schedule.due_ms > limits.latest_ms:
            return self._too_late(schedule, limits)
        if schedule.id is not None and not (limits.ids if schedule.rank is None else limits.written):
            way_out = "what recurs needs its id: send it again then" if goes_on(schedule) else _WITHOUT_ID
            detail = (
                "too many schedules with an id wait in this partition (limits.idMemory), so that none is taken in "
                f"for an hour or more; {way_out}"
            )
            return self._refused(schedule, DeadLetterReason.TOO_MANY_IDS, detail)
        return self._too_large(schedule, size, limits.record_bytes) if size > limits.record_bytes else None

    def refuse_postponing(self, postpone: Postpone) -> Reject | None:
        """Return why the limits in force at its offset do not allow the time that something is put off to."""
        limits = self._at(postpone.offset)
        return self._too_late(postpone, limits) if postpone.due_ms > limits.latest_ms else None

    def _at(self, offset: int) -> AdmissionLimits:
        return self._kept[bisect_right(self._kept, offset, key=_since) - 1]

    def _too_late(self, command: Schedule | Postpone, limits: AdmissionLimits) -> Reject:
        detail = (
            f"it is due at {command.due_ms}, and no record is taken in now that is due after {limits.latest_ms}: "
            "its timestamp is ahead of the clock, and schedule.maxDelay counts from there"
        )
        return self._refused(command, DeadLetterReason.BEYOND_MAX_DELAY, detail)

    def refuse_moved(self, schedule: Schedule, size: int, record_bytes: int) -> Reject:
        """Refuse one that another backlog took in and this one cannot take; the ones before it are decided, too."""
        kept: list[AdmissionLimits] = []
        for limits, end in zip(self._kept, [*(limits.since for limits in self._kept[1:]), NEVER_MS], strict=True):
            if limits.since > schedule.offset:
                kept.append(limits)
                continue
            tighter = limits._replace(record_bytes=min(limits.record_bytes, record_bytes))
            if not (kept and kept[-1] == tighter._replace(since=kept[-1].since)):
                kept.append(tighter)
            if tighter != limits and end > schedule.offset + 1:
                kept.append(limits._replace(since=schedule.offset + 1))
        self._kept = kept
        return self._too_large(schedule, size, record_bytes)

    def _too_large(self, schedule: Schedule, size: int, record_bytes: int) -> Reject:
        detail = f"it takes {size} bytes in a bucket topic, which allows {record_bytes} (max.message.bytes)"
        return self._refused(schedule, DeadLetterReason.TOO_LARGE, detail)

    def _refused(self, schedule: Schedule | Postpone, reason: DeadLetterReason, detail: str) -> Reject:
        self._ever_refused = self._last_refused = True
        offset, key, value, headers = schedule.offset, schedule.key, schedule.value, schedule.headers
        timestamp_ms, name, due_ms = schedule.timestamp_ms, schedule.id, schedule.due_ms
        return Reject(offset, key, value, headers, reason, detail, timestamp_ms, name, due_ms)


def encode_admission_limits(limits: Sequence[AdmissionLimits]) -> str:
    """Return the text: four numbers each."""
    return ",".join(
        f"{since}:{latest_ms}:{_ALL if ids else _WRITTEN if written else _NONE}:{size}"
        for since, latest_ms, ids, size, written in limits
    )


def decode_admission_limits(text: str) -> tuple[AdmissionLimits, ...]:
    """Read it back. Raises `ValueError`."""
    found: list[AdmissionLimits] = []
    for part in text.split(","):
        since, latest_ms, ids, record_bytes = map(number_of, part.split(":"))
        found.append(AdmissionLimits(since, latest_ms, ids == _ALL, record_bytes, ids != _NONE))
    return tuple(found)
