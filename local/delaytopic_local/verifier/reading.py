"""The verifier's reading of raw records: the native contract, read a second time and independently of the relay."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import NamedTuple

from delaytopic_api import Settings
from delaytopic_api.values import Ids
from delaytopic_gateway.client.raw_records import Coordinates, Headers, RawRecord
from delaytopic_local.verifier.verdict import DeadLetter, DeliveredRecord, Fate, SourceRecord

_RESERVED = frozenset(
    f"deliver-{name}"
    for name in (
        *("cron", "every", "tz", "from", "until", "count", "jitter", "missed", "catch-up", "ladder", "window", "smear"),
        *("on-conflict", "no-later-than"),
    )
)
_CONTROL = _RESERVED | {
    *("deliver-at", "deliver-after", "deliver-id", "deliver-action", "deliver-to", "deliver-expires-at"),
    "deliver-requested-by",
}
_RECEIPT = "delay-receipt"
_REASON = "dead-letter-reason"
_LAST_INSTANT_MS = 253_402_300_799_999  # the end of the year 9999
_RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


@dataclass(frozen=True, slots=True)
class Rules:
    """The DelayTopic's rules for its records. `fixed_delay_ms` is `schedule.fixedDelay`, for every record."""

    target: str
    max_delay_ms: int
    allowed_targets: tuple[str, ...] = ()
    default_delay_ms: int | None = None
    fixed_delay_ms: int | None = None
    uses_ids: bool = True


def read_source(record: RawRecord, rules: Rules) -> SourceRecord:
    """Read the request of a source record; never raises, as an impossible request is for the dead letters."""
    control = {name: value for name, value in record.headers if name in _CONTROL}
    wish = _DEAD_LETTER
    with suppress(ValueError, OverflowError):
        wish = _read(control, record.timestamp_ms, rules)
    return SourceRecord(
        at=record.at,
        sent_ms=record.timestamp_ms,
        fate=wish.fate,
        due_ms=wish.due_ms,
        schedule_id=control.get("deliver-id") if wish.fate is not Fate.DEAD_LETTER else None,
        key=record.key,
        value=record.value,
        headers=tuple(header for header in record.headers if header[0] not in _CONTROL),
        sent_headers=record.headers,
        target=wish.target,
        expires_ms=wish.expires_ms,
    )


def read_delivered(record: RawRecord) -> DeliveredRecord:
    """Read a target record and its receipt. One without a readable receipt claims to come from itself: unknown."""
    receipts = [value for name, value in record.headers if name == _RECEIPT and value]
    try:
        due, partition, place, sent, topic = receipts[-1].decode("ascii").split(":", 4)
        offset = place.partition("@")[0]
        source, due_ms, sent_ms = Coordinates(topic, int(partition), int(offset)), int(due), int(sent)
    except (IndexError, ValueError):
        source, due_ms, sent_ms = record.at, record.timestamp_ms, record.timestamp_ms
    return DeliveredRecord(
        source=source,
        due_ms=due_ms,
        sent_ms=sent_ms,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=_without_last_receipt(record.headers),
        topic=record.at.topic,
    )


def read_dead_letter(record: RawRecord) -> DeadLetter:
    """Read a dead letter: the source record it names, or itself, the reason, and the producer's own part.

    What the relay appended begins at the last reason.
    """
    names = [name for name, _ in record.headers]
    start = len(names) - 1 - names[::-1].index(_REASON) if _REASON in names else len(names)
    appended = dict(record.headers[start:])
    try:
        topic, partition, offset = (appended.get("dead-letter-source") or b"").decode("ascii").rsplit(":", 2)
        source = Coordinates(topic, int(partition), int(offset))
    except ValueError:
        source = record.at
    return DeadLetter(
        source=source,
        reason=(appended.get(_REASON) or b"").decode("ascii", "replace"),
        key=record.key,
        value=record.value,
        headers=record.headers[:start],
        is_shortened="dead-letter-value-omitted" in appended,
    )


class _Request(NamedTuple):
    """The request of a record."""

    fate: Fate
    due_ms: int = 0
    target: str | None = None
    expires_ms: int | None = None


_DEAD_LETTER = _Request(Fate.DEAD_LETTER)


def _read(control: dict[str, bytes | None], timestamp_ms: int, rules: Rules) -> _Request:
    """Read the request of a record; raises ValueError when it is for the dead-letter topic."""
    _refuse(control.keys() & _RESERVED)
    if rules.fixed_delay_ms is not None:
        _refuse(control.keys() & {"deliver-at", "deliver-after", "deliver-id", "deliver-action"})
    asks = control.get("deliver-requested-by") or b""
    _refuse("deliver-requested-by" in control and not (1 <= len(asks) <= 256 and asks.decode()))
    action = _text(control.get("deliver-action", b"schedule"))
    _refuse(action not in ("schedule", "cancel"))
    name = control.get("deliver-id", b"")
    has_name = "deliver-id" in control
    _refuse((has_name or action == "cancel") and not rules.uses_ids)
    _refuse((has_name or action == "cancel") and not 1 <= len(name or b"") <= 256)
    if action == "cancel":
        _refuse(control.keys() & {"deliver-at", "deliver-after", "deliver-to", "deliver-expires-at"})
        return _Request(Fate.CANCEL)
    due_ms = _due_ms(control, timestamp_ms, rules)
    target = _text(control["deliver-to"]) if "deliver-to" in control else rules.target
    _refuse(target != rules.target and not any(fnmatchcase(target, pattern) for pattern in rules.allowed_targets))
    expires_ms = _instant_ms(_text(control["deliver-expires-at"])) if "deliver-expires-at" in control else None
    _refuse(expires_ms is not None and expires_ms < due_ms)
    return _Request(Fate.SCHEDULE, due_ms, target, expires_ms)


def _refuse(reason: object) -> None:
    if reason:
        raise ValueError


def _due_ms(control: dict[str, bytes | None], timestamp_ms: int, rules: Rules) -> int:
    if rules.fixed_delay_ms is not None:
        return timestamp_ms + rules.fixed_delay_ms
    due_ms = timestamp_ms + (rules.default_delay_ms or 0)
    if "deliver-after" in control:
        due_ms = timestamp_ms + _duration_ms(_text(control["deliver-after"]))
    if "deliver-at" in control:
        due_ms = _instant_ms(_text(control["deliver-at"]))
    _refuse(control.keys() & {"deliver-at", "deliver-after"} and due_ms - timestamp_ms > rules.max_delay_ms)
    return due_ms


def _instant_ms(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,19}", text):
        return _possible(int(text))
    parts = _RFC_3339.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    whole, fraction, zone = parts.groups()
    seconds = int(datetime.fromisoformat(whole.upper() + zone.upper()).timestamp())
    digits = (fraction or "").ljust(3, "0")
    finer_than_ms = digits[3:].strip("0") != ""  # counts up: never before the instant that was written
    return _possible(seconds * 1000 + int(digits[:3]) + finer_than_ms)


def _possible(instant: int) -> int:
    _refuse(not 0 <= instant <= _LAST_INSTANT_MS)
    return instant


def _duration_ms(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,19}", text):
        return _possible(int(text))
    if not re.fullmatch(r"([0-9]{1,5}(h|ms|m|s)){1,4}", text):
        raise ValueError(text)
    return sum(int(count) * _UNITS_MS[unit] for count, unit in re.findall(r"([0-9]+)(h|ms|m|s)", text))


def _text(value: bytes | None) -> str:
    if value is None:
        raise ValueError("a control header without a value")
    return value.decode("ascii")


def _without_last_receipt(headers: Headers) -> Headers:
    places = [place for place, (name, _) in enumerate(headers) if name == _RECEIPT]
    return headers[: places[-1]] + headers[places[-1] + 1 :] if places else headers


def rules_of(settings: Settings) -> Rules:
    """Return the DelayTopic's rules, by which the verifier reads its records."""
    schedule = settings.schedule
    return Rules(
        target=settings.target.topic,
        max_delay_ms=schedule.max_delay.ms,
        allowed_targets=tuple(settings.allowed_topics),
        default_delay_ms=schedule.default_delay.ms if schedule.default_delay is not None else None,
        fixed_delay_ms=schedule.fixed_delay.ms if schedule.fixed_delay is not None else None,
        uses_ids=schedule.ids is Ids.BY_HEADER,
    )
