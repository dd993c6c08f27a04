"""The names of all headers that the native dialect reads and relays write: the record contract."""

from __future__ import annotations

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
"""Another target topic, if `spec.target.allowed` lists it."""
DELIVER_CRON: Final = "deliver-cron"
"""Recurring: a cron expression."""
DELIVER_TZ: Final = "deliver-tz"
"""The IANA zone of `deliver-cron`."""
DELIVER_EXPIRES_AT: Final = "deliver-expires-at"
"""Not after this time; later, the record goes to the dead-letter topic."""

CONTROL_HEADERS: Final = frozenset(
    {
        DELIVER_AT,
        DELIVER_AFTER,
        DELIVER_ID,
        DELIVER_ACTION,
        DELIVER_TO,
        DELIVER_CRON,
        DELIVER_TZ,
        DELIVER_EXPIRES_AT,
    }
)
"""Stripped on delivery; all other headers pass unchanged."""

ACTION_SCHEDULE: Final = b"schedule"
ACTION_CANCEL: Final = b"cancel"

RECEIPT: Final = "delay-receipt"
"""On every delivered record; see `Receipt`."""

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
