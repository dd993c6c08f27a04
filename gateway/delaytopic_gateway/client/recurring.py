"""Recurrence as people write it and are shown it: rules from options, and the next occurrences of headers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from delaytopic_api.records import (
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_CATCH_UP,
    DELIVER_COUNT,
    DELIVER_CRON,
    DELIVER_EVERY,
    DELIVER_FROM,
    DELIVER_ID,
    DELIVER_JITTER,
    DELIVER_LADDER,
    DELIVER_MISSED,
    DELIVER_TZ,
    DELIVER_UNTIL,
    OCCURRENCE,
    RECURRENCE_HEADERS,
    Headers,
    rfc_3339,
)
from delaytopic_api.recurrence import ZONES, Occurrence, RecurrenceError, in_words, read_recurrence, upcoming
from delaytopic_gateway.client.time_text import duration, instant_ms
from delaytopic_process.errors import InputError

SHOWN = 5
"""Occurrences."""


@dataclass(frozen=True, slots=True)
class RecurrenceOptions:
    """The options of a command line on recurrence; None for those that it does not have."""

    cron: str | None = None
    every: str | None = None
    ladder: str | None = None
    tz: str | None = None
    begin: str | None = None
    until: str | None = None
    times: int | None = None
    jitter: str | None = None
    missed: str | None = None
    catch_up: str | None = None

    def headers(self) -> Headers:
        """Return the headers that say the same; not yet judged."""
        said = {
            DELIVER_CRON: self.cron,
            DELIVER_EVERY: self.every,
            DELIVER_LADDER: self.ladder,
            DELIVER_TZ: self.tz,
            DELIVER_FROM: self.begin,
            DELIVER_UNTIL: self.until,
            DELIVER_COUNT: self.times,
            DELIVER_JITTER: self.jitter,
            DELIVER_MISSED: self.missed,
            DELIVER_CATCH_UP: self.catch_up,
        }
        return [(name, str(value).encode()) for name, value in said.items() if value is not None]


@dataclass(frozen=True, slots=True)
class Explained:
    """The times at which a record with some headers is due, once or again and again."""

    words: str
    """The rule."""
    zone: str
    """The zone in which the times are shown."""
    recurs: bool
    occurrences: tuple[Occurrence, ...]
    """The first ones, if a relay delivers each when it is due."""

    def to_json(self) -> dict[str, Any]:
        """Return the document that `-o json` prints."""
        return {
            "rule": self.words,
            "timeZone": self.zone,
            "recurs": self.recurs,
            "occurrences": [
                {
                    "number": each.number,
                    "nominalMs": each.nominal_ms,
                    "dueMs": each.due_ms,
                    "local": self.local(each.due_ms),
                }
                for each in self.occurrences
            ],
        }

    def local(self, instant_ms: int) -> str:
        """Return an instant as the zone's clocks show it, with their offset."""
        return datetime.fromtimestamp(instant_ms / 1_000, ZONES(self.zone)).isoformat()


def explained(headers: Mapping[str, bytes | None], timestamp_ms: int, *, most: int = SHOWN) -> Explained:
    """Tell when a record with a timestamp is due by its headers alone. Raises InputError for what relays refuse."""
    try:
        recurrence = read_recurrence(headers, timestamp_ms)
    except RecurrenceError as error:
        raise InputError(error.detail) from error
    if recurrence is None:
        due_ms, words = _plain(headers, timestamp_ms)
        return Explained(words, "UTC", recurs=False, occurrences=(Occurrence(1, due_ms, due_ms),))
    identity = headers.get(DELIVER_ID)
    if not identity:
        raise InputError(f"a record that recurs, or that names a local time, needs an id: add header {DELIVER_ID}")
    found = upcoming(recurrence, identity, None, most)
    if not found:
        raise InputError("it has no occurrence: all of its times are before the record's own timestamp")
    return Explained(in_words(recurrence), recurrence.zone, recurrence.rule.recurs, tuple(found))


def waiting(headers: Headers, due_ms: int, *, most: int = SHOWN) -> Explained | None:
    """Tell the rule of a record that waits, and its next occurrences, itself the first; None without a rule."""
    controls = dict(headers)
    occurrence = Occurrence.parse(controls.get(OCCURRENCE), due_ms)
    if occurrence is None:
        return None
    identity = controls.get(DELIVER_ID) or b""
    try:
        recurrence = read_recurrence(controls, occurrence.nominal_ms)
        if recurrence is None:
            return None
        more = upcoming(recurrence, identity, occurrence, most - 1)
    # A rule that this machine cannot read, or whose zone it does not have, is the relay's to judge.
    except (RecurrenceError, LookupError, ValueError, OSError):
        return None
    return Explained(in_words(recurrence), recurrence.zone, recurrence.rule.recurs, (occurrence, *more))


def is_recurring(headers: Headers) -> bool:
    """Return whether some headers say anything of recurrence, or of a zone."""
    return any(name in RECURRENCE_HEADERS for name, _ in headers)


def _plain(headers: Mapping[str, bytes | None], timestamp_ms: int) -> tuple[int, str]:
    """Return due time and rule of a record without recurrence. Raises InputError."""
    if DELIVER_AT in headers:
        due_ms = instant_ms((headers[DELIVER_AT] or b"").decode("utf-8", "replace"))
        return due_ms, f"Once, at {rfc_3339(due_ms)}"
    if DELIVER_AFTER in headers:
        after = (headers[DELIVER_AFTER] or b"").decode("utf-8", "replace")
        after_ms = int(after) if after.isascii() and after.isdigit() and len(after) < 16 else duration(after).ms
        return timestamp_ms + after_ms, f"Once, {after} after the record's timestamp"
    return timestamp_ms, "Once: no header names a time, so that it is due as its DelayTopic says, or at once"
