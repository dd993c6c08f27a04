"""What the audit makes of raw records: the native contract, read a second time and independently of the relay."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from delaytopic_cli.audit import Coordinates, DeadLetter, DeliveredRecord, Fate, Headers, SourceRecord
from delaytopic_cli.errors import InputError

_CONTROL = frozenset(
    {"deliver-at", "deliver-after", "deliver-id", "deliver-action", "deliver-to", "deliver-cron", "deliver-tz"}
    | {"deliver-expires-at"}
)
_RECEIPT = "delay-receipt"
_RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record as Kafka gives it; `timestamp_ms` is its Kafka timestamp."""

    at: Coordinates
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """What the DelayTopic says about its records. `fixed_delay_ms` is `schedule.delay`, for every record."""

    target: str
    max_delay_ms: int
    allowed_targets: tuple[str, ...] = ()
    default_delay_ms: int | None = None
    fixed_delay_ms: int | None = None
    uses_ids: bool = True


def read_source(record: RawRecord, rules: Rules) -> SourceRecord:
    """What a source record asks for. Raises InputError for recurring schedules, which the audit does not judge."""
    control = {name: value for name, value in record.headers if name in _CONTROL}
    if "deliver-cron" in control:
        raise InputError(f"{record.at} is recurring (deliver-cron); the audit judges single deliveries only")
    try:
        fate, due_ms, target = _read(control, record.timestamp_ms, rules)
    except (ValueError, OverflowError):
        fate, due_ms, target = Fate.DEAD_LETTER, 0, None
    return SourceRecord(
        at=record.at,
        sent_ms=record.timestamp_ms,
        fate=fate,
        due_ms=due_ms,
        schedule_id=control.get("deliver-id") if rules.uses_ids else None,
        key=record.key,
        value=record.value,
        headers=tuple(header for header in record.headers if header[0] not in _CONTROL),
        target=target,
    )


def read_delivered(record: RawRecord) -> DeliveredRecord:
    """A target record and its receipt. A record without a readable receipt claims to come from itself: unknown."""
    receipts = [value for name, value in record.headers if name == _RECEIPT and value]
    try:
        due, partition, offset, sent, topic = receipts[-1].decode("ascii").split(":", 4)
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
    """A dead letter: the source record it names (itself when it names none) and the reason."""
    headers = dict(record.headers)
    try:
        topic, partition, offset = (headers.get("dead-letter-source") or b"").decode("ascii").rsplit(":", 2)
        source = Coordinates(topic, int(partition), int(offset))
    except ValueError:
        source = record.at
    return DeadLetter(source=source, reason=(headers.get("dead-letter-reason") or b"").decode("ascii", "replace"))


def _read(control: dict[str, bytes | None], timestamp_ms: int, rules: Rules) -> tuple[Fate, int, str | None]:
    """Fate, due time and target; ValueError when the record is for the dead-letter topic."""
    action = _text(control.get("deliver-action", b"schedule"))
    if action == "cancel":
        if not control.get("deliver-id"):
            raise ValueError("a cancel without an id")
        return Fate.CANCEL, 0, None
    due_ms = _due_ms(control, timestamp_ms, rules)
    target = _text(control["deliver-to"]) if "deliver-to" in control else rules.target
    allowed = target == rules.target or any(fnmatchcase(target, pattern) for pattern in rules.allowed_targets)
    too_far = due_ms - timestamp_ms > rules.max_delay_ms
    expired = "deliver-expires-at" in control and _instant_ms(_text(control["deliver-expires-at"])) < due_ms
    if action != "schedule" or not allowed or too_far or expired:
        raise ValueError("not deliverable")
    return Fate.SCHEDULE, due_ms, target


def _due_ms(control: dict[str, bytes | None], timestamp_ms: int, rules: Rules) -> int:
    if rules.fixed_delay_ms is not None:
        if "deliver-at" in control or "deliver-after" in control:
            raise ValueError("a time of its own, with a fixed delay")
        return timestamp_ms + rules.fixed_delay_ms
    after_ms = _duration_ms(_text(control["deliver-after"])) if "deliver-after" in control else None
    if "deliver-at" in control:
        return _instant_ms(_text(control["deliver-at"]))
    return timestamp_ms + (after_ms if after_ms is not None else rules.default_delay_ms or 0)


def _instant_ms(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,19}", text):
        return int(text)
    parts = _RFC_3339.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    whole, fraction, zone = parts.groups()
    seconds = int(datetime.fromisoformat(whole.upper() + zone.upper()).timestamp())
    digits = (fraction or "").ljust(3, "0")
    finer_than_ms = digits[3:].strip("0") != ""  # counts up: never before the instant that was written
    return seconds * 1000 + int(digits[:3]) + finer_than_ms


def _duration_ms(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,19}", text):
        return int(text)
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
