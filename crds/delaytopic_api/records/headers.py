"""The names of all headers that the native dialect reads and relays write: the record contract."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

Headers = list[tuple[str, bytes | None]]
"""Headers as the Kafka client hands them over: in order, names may repeat, values may be null."""

DELIVER_AT: Final = "deliver-at"
"""Due time: epoch milliseconds, or RFC 3339 with an offset."""
DELIVER_AFTER: Final = "deliver-after"
"""Delay from the record's timestamp: milliseconds, or a duration such as `1h30m`. `deliver-at` wins."""
DELIVER_ID: Final = "deliver-id"
"""Names the schedule, for replace and cancel; id and record key travel together."""
DELIVER_ACTION: Final = "deliver-action"
"""`schedule` (the default) or `cancel`."""
DELIVER_TO: Final = "deliver-to"
"""Another target topic, if `spec.target.allowedTopics` lists it."""
DELIVER_EXPIRES_AT: Final = "deliver-expires-at"
"""The time after which a record is not delivered; later, the record goes to the dead-letter topic."""
DELIVER_REQUESTED_BY: Final = "deliver-requested-by"
"""The one who asks for it, for the outcome: a text of 1 to 256 bytes in UTF-8."""

DELIVER_CRON: Final = "deliver-cron"
"""Again and again: a cron expression of five fields, or of six that begin with the seconds."""
DELIVER_EVERY: Final = "deliver-every"
"""Again and again: an interval, counted from `deliver-from`, or from the record's timestamp."""
DELIVER_LADDER: Final = "deliver-ladder"
"""Durations before `deliver-at`, between commas: the record is delivered at each of them."""
DELIVER_TZ: Final = "deliver-tz"
"""The IANA name of the zone of `deliver-cron`, of the days of `deliver-ladder`, or of a `deliver-at` that
has no offset."""
DELIVER_FROM: Final = "deliver-from"
"""No occurrence before it, written as `deliver-at`."""
DELIVER_UNTIL: Final = "deliver-until"
"""No occurrence after it, written as `deliver-at`."""
DELIVER_COUNT: Final = "deliver-count"
"""The number of occurrences."""
DELIVER_JITTER: Final = "deliver-jitter"
"""Occurrences are put off by less than this duration, each by another length."""
DELIVER_MISSED: Final = "deliver-missed"
"""The policy for slots that are past already: `Latest` (the default), `All` or `None`."""
DELIVER_CATCH_UP: Final = "deliver-catch-up"
"""The time that `deliver-missed: All` goes back, a duration."""

RECURRENCE_HEADERS: Final = (
    *(DELIVER_CRON, DELIVER_EVERY, DELIVER_LADDER, DELIVER_TZ, DELIVER_FROM, DELIVER_UNTIL, DELIVER_COUNT),
    *(DELIVER_JITTER, DELIVER_MISSED, DELIVER_CATCH_UP),
)
"""Read by `delaytopic_api.recurrence`."""

RESERVED_HEADERS: Final = ("deliver-window", "deliver-smear", "deliver-on-conflict", "deliver-no-later-than")
"""Names that will have a meaning. A record with one is refused until then: delivered, it would mean something else."""

CONTROL_HEADERS: Final = frozenset(
    {
        DELIVER_AT,
        DELIVER_AFTER,
        DELIVER_ID,
        DELIVER_ACTION,
        DELIVER_TO,
        DELIVER_EXPIRES_AT,
        DELIVER_REQUESTED_BY,
        *RECURRENCE_HEADERS,
        *RESERVED_HEADERS,
    }
)
"""Never delivered; all other headers pass unchanged."""

ACTION_SCHEDULE: Final = b"schedule"
ACTION_CANCEL: Final = b"cancel"

RECEIPT: Final = "delay-receipt"
"""The header that every delivered record has; see `Receipt`."""
OCCURRENCE: Final = "delay-occurrence"
"""The header of every delivery of a recurring record: `<number>:<slot in epoch milliseconds>`, an idempotency key
beside its id."""

TRIGGERED: Final = "delay-triggered"
"""The header of a delivery of a RecurringRecord that somebody asked for beside its times: `<when in epoch
ms>:<namespace>/<name>`. Commands write it."""
BACKFILLED: Final = "delay-backfilled"
"""The header of a delivery of a RecurringRecord for a time that is past: `<slot in epoch ms>:<namespace>/<name>`, which
stays the same when that is repeated. Commands write it."""

RESTATED: Final = "delay-restated"
"""The header of what a relay writes into its own source again: `<due>:<partition>:<offset>:<rank>:<topic>`, of the
record that it stands for. `rank` is the source offset that it counts as; without a due time it withdraws."""

ENDED: Final = "delay-ended"
"""The header of what a relay writes into its own source to end a schedule, and why: `delivered`, `expired`,
`redelivered`. The header behind it has the place of that schedule."""

DEAD_LETTER_REASON: Final = "dead-letter-reason"
"""A token of `DeadLetterReason`."""
DEAD_LETTER_DETAIL: Final = "dead-letter-detail"
"""A sentence for the producer."""
DEAD_LETTER_SOURCE: Final = "dead-letter-source"
"""`<topic>:<partition>:<offset>`."""
DEAD_LETTER_AT: Final = "dead-letter-at"
"""The time of the dead letter, epoch milliseconds."""
DEAD_LETTER_VALUE_OMITTED: Final = "dead-letter-value-omitted"
"""The size of the value in bytes, when the dead-letter topic refused that, too."""
DEAD_LETTER_SOURCE_UNTIL: Final = "dead-letter-source-until"
"""The time until which the source keeps the record whose value is missing: an instant (RFC 3339, UTC), or
`UNLIMITED`."""
UNLIMITED: Final = "unlimited"
"""The source deletes nothing."""

_SEPARATORS: Final = re.compile("[^a-z0-9]+")
_IN_ORDER: Final = tuple(sorted(CONTROL_HEADERS))
_SHORTEST_RESEMBLING, _LONGEST_RESEMBLING = 8, 24


@lru_cache(maxsize=1024)
def resembled_header(name: str) -> str | None:
    """Return the control header that somebody may have meant by another name: `deliver-after` for `Deliver_After`.

    Case, an `X-` before it and what separates the words do not count, nor does one slip: a letter too many, too few,
    wrong, or two in the wrong order. None for a control header itself, and for what resembles none.
    """
    if not _SHORTEST_RESEMBLING <= len(name) <= _LONGEST_RESEMBLING or name[0] not in "dDxX" or name in CONTROL_HEADERS:
        return None
    plain = _SEPARATORS.sub("-", name.lower()).removeprefix("x-")
    return next((control for control in _IN_ORDER if _differ_by_one_slip(plain, control)), None)


def _differ_by_one_slip(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    start = _in_common(one, other)
    one, other = one[start:], other[start:]
    end = _in_common(one[::-1], other[::-1])
    one, other = one[: len(one) - end], other[: len(other) - end]
    return max(len(one), len(other)) <= 1 or (len(one) == 2 and one == other[::-1])


def _in_common(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)
