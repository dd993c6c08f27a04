"""Recurrence as control headers have it, taken apart. What they say is hostile input: everything has a bound."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from delaytopic_api.records import (
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_CATCH_UP,
    DELIVER_COUNT,
    DELIVER_CRON,
    DELIVER_EVERY,
    DELIVER_EXPIRES_AT,
    DELIVER_FROM,
    DELIVER_JITTER,
    DELIVER_LADDER,
    DELIVER_MISSED,
    DELIVER_TZ,
    DELIVER_UNTIL,
    RECURRENCE_HEADERS,
    DeadLetterReason,
)
from delaytopic_api.records.instants import LAST_INSTANT_MS
from delaytopic_api.recurrence.rules import (
    DAY_MS,
    LAST_SLOT_MS,
    Cron,
    Every,
    Instant,
    Ladder,
    Local,
    Missed,
    Recurrence,
    Rule,
    Rung,
    objection_to_cron,
)
from delaytopic_api.recurrence.zones import ZONES, Zones, instant_of, wall_ms_of

Controls = Mapping[str, bytes | None]
LONGEST_CRON: Final = 256
MOST_RUNGS: Final = 32
SHORTEST_INTERVAL_MS: Final = 1_000
_LONGEST_JITTER_MS: Final = DAY_MS
_LONGEST_ZONE: Final = 64
_LONGEST_LADDER: Final = 512
_LONGEST_INSTANT: Final = 35
_SHOWN_BYTES: Final = 64

_CRON: Final = re.compile(rb"[0-9A-Za-z*/,#-]+(?:[ \t]+[0-9A-Za-z*/,#-]+){4,5}")
_DURATION: Final = re.compile(rb"(?:[0-9]{1,5}(?:h|ms|m|s)){1,4}")
_PART: Final = re.compile(rb"([0-9]{1,5})(w|d|h|ms|m|s)")
_RUNG: Final = re.compile(rb"(?:[0-9]{1,5}(?:w|d|h|ms|m|s)){1,6}")
_DIGITS: Final = re.compile(rb"[0-9]{1,15}")
_COUNT: Final = re.compile(rb"[0-9]{1,9}")
_ZONE: Final = re.compile(rb"[A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_CLOCK: Final = rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt](?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
_LOCAL: Final = re.compile(_CLOCK)
_RFC_3339: Final = re.compile(_CLOCK + rb"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-9]{2})")
_UNIT_MS: Final = {b"w": 7 * DAY_MS, b"d": DAY_MS, b"h": 3_600_000, b"m": 60_000, b"s": 1_000, b"ms": 1}

_RULES: Final = (DELIVER_CRON, DELIVER_EVERY, DELIVER_LADDER)
_FOR_REPEATED: Final = (DELIVER_FROM, DELIVER_UNTIL, DELIVER_COUNT)
_FOR_RULES: Final = (*_FOR_REPEATED, DELIVER_JITTER, DELIVER_MISSED, DELIVER_CATCH_UP)
_A_DURATION: Final = "a duration (90s, 1h30m; the longest unit is the hour) or milliseconds in digits"
_A_LOCAL_TIME: Final = "a date and a time (2026-11-21T09:00:00), between 1970 and the year 9998"
_AN_INSTANT: Final = "epoch milliseconds in digits or RFC 3339 with an offset, between 1970 and the year 9998"


class RecurrenceError(Exception):
    """The headers say nothing that could be done. `detail` is a sentence in ASCII that names header and way out."""

    def __init__(self, reason: DeadLetterReason, header: str, detail: str) -> None:
        """`reason` is malformed-header or contradictory-headers."""
        super().__init__(detail)
        self.reason = reason
        self.header = header
        self.detail = detail


def read_recurrence(controls: Controls, timestamp_ms: int, zones: Zones = ZONES) -> Recurrence | None:
    """Read what control headers say of recurrence, for a record with a timestamp; None where they say nothing of it.

    `controls` has the last value of each name. Of `zones` it is asked whether there is the one that is named, and no
    more. Raises `RecurrenceError`.
    """
    at = controls.get(DELIVER_AT)
    local = _local_ms(at)
    if local is None and not any(name in controls for name in RECURRENCE_HEADERS):
        return None
    named = [name for name in _RULES if name in controls]
    _refuse_contradictions(controls, named, is_local=local is not None)
    zone = _zone(controls, zones)
    starts_ms = _instant(controls, DELIVER_FROM)
    rule = _rule(controls, timestamp_ms, starts_ms, local)
    earliest_ms = timestamp_ms + rule.interval_ms if isinstance(rule, Every) and starts_ms is None else timestamp_ms
    recurrence = Recurrence(
        rule,
        zone,
        max(earliest_ms, starts_ms) if starts_ms is not None else earliest_ms,
        _instant(controls, DELIVER_UNTIL),
        _count(controls),
        _jitter(controls, rule),
        *_missed(controls),
    )
    # Behind its last occurrence, too, it is the record that it was.
    if recurrence.until_ms is not None and recurrence.until_ms < max(timestamp_ms, starts_ms or 0):
        raise _contradictory(DELIVER_UNTIL, "lies before the first time that its rule could name: put it later")
    return recurrence


def _refuse_contradictions(controls: Controls, named: list[str], *, is_local: bool) -> None:
    if len(named) > 1:
        raise _contradictory(named[1], f"is a rule beside that of header {named[0]}: leave one of them out")
    if DELIVER_LADDER in controls and DELIVER_AT not in controls:
        raise _contradictory(DELIVER_LADDER, f"needs header {DELIVER_AT}, from which its rungs count back")
    for name, hint in _unwanted(named).items():
        if name in controls:
            raise _contradictory(name, hint)
    _check_zone_is_needed(controls, named, is_local=is_local)


def _unwanted(named: list[str]) -> dict[str, str]:
    """Return the headers that do not go with the rule that is named, or with none, and what to do about each."""
    if not named:
        needs = f"needs a rule beside it: one of the headers {', '.join(_RULES)}"
        return {DELIVER_AFTER: f"does not go with header {DELIVER_TZ}: leave it out"} | dict.fromkeys(_FOR_RULES, needs)
    other = f"does not go with header {named[0]}"
    if named == [DELIVER_LADDER]:
        return dict.fromkeys((DELIVER_AFTER, *_FOR_REPEATED), f"{other}: leave it out")
    return {
        DELIVER_AFTER: f"{other}: say {DELIVER_FROM} instead",
        DELIVER_AT: f"{other}: say {DELIVER_FROM} instead",
        DELIVER_EXPIRES_AT: f"{other}: say {DELIVER_UNTIL} instead",
    }


def _check_zone_is_needed(controls: Controls, named: list[str], *, is_local: bool) -> None:
    if is_local and DELIVER_TZ not in controls:
        raise RecurrenceError(
            DeadLetterReason.MALFORMED_HEADER,
            DELIVER_AT,
            f"header {DELIVER_AT} is {_shown(controls[DELIVER_AT])}, which has no offset: add one, such as Z, or name"
            f" its zone in header {DELIVER_TZ}",
        )
    if DELIVER_TZ in controls and not is_local and named not in ([DELIVER_CRON], [DELIVER_LADDER]):
        raise _contradictory(
            DELIVER_TZ,
            f"goes with header {DELIVER_CRON} or {DELIVER_LADDER}, or with a {DELIVER_AT} without an offset:"
            " nothing else here depends on a zone",
        )


def _rule(controls: Controls, timestamp_ms: int, starts_ms: int | None, local_ms: int | None) -> Rule:
    if DELIVER_CRON in controls:
        return _cron(controls[DELIVER_CRON])
    if DELIVER_EVERY in controls:
        interval_ms = _duration(controls, DELIVER_EVERY)
        if interval_ms < SHORTEST_INTERVAL_MS:
            raise _malformed(DELIVER_EVERY, f"{_A_DURATION}, of a second or more", controls[DELIVER_EVERY])
        if starts_ms is None:
            return Every(interval_ms, timestamp_ms)
        # No slot lies before the record itself.
        steps = max(0, -((starts_ms - timestamp_ms) // interval_ms)) if starts_ms < timestamp_ms else 0
        return Every(interval_ms, starts_ms + steps * interval_ms)
    if local_ms is not None:
        end: Instant | Local = Local(local_ms)
        return _ladder(controls[DELIVER_LADDER], end) if DELIVER_LADDER in controls else Local(local_ms)
    at_ms = _instant(controls, DELIVER_AT)
    assert at_ms is not None
    return _ladder(controls[DELIVER_LADDER], Instant(at_ms))


def _cron(text: bytes | None) -> Cron:
    allowed = f"a cron expression of five fields, or of six with seconds first, of {LONGEST_CRON} bytes at most"
    if text is None or len(text) > LONGEST_CRON or _CRON.fullmatch(text) is None:
        raise _malformed(DELIVER_CRON, f"{allowed} (0 9 * * mon-fri)", text)
    expression = " ".join(text.decode("ascii").split())
    objection = objection_to_cron(expression)
    if objection is not None:
        detail = f"header {DELIVER_CRON} is {_shown(text)}, which {objection}"
        raise RecurrenceError(DeadLetterReason.MALFORMED_HEADER, DELIVER_CRON, detail)
    return Cron(expression)


def _ladder(text: bytes | None, end: Instant | Local) -> Ladder:
    malformed = _malformed(
        DELIVER_LADDER,
        f"1 to {MOST_RUNGS} different durations between commas (7d,3d,1d,1h; 0s is the end itself)",
        text,
    )
    parts = text.split(b",", MOST_RUNGS) if text is not None and len(text) <= _LONGEST_LADDER else []
    stripped = [part.strip(b" ") for part in parts]
    if not 1 <= len(stripped) <= MOST_RUNGS or any(_RUNG.fullmatch(part) is None for part in stripped):
        raise malformed
    rungs = tuple(_rung(part) for part in stripped)
    if len(set(rungs)) < len(rungs):
        raise malformed
    return Ladder(end, rungs)


def _rung(text: bytes) -> Rung:
    days_ms = ms = 0
    for number, unit in _PART.findall(text):
        if unit in (b"w", b"d"):
            days_ms += int(number) * _UNIT_MS[unit]
        else:
            ms += int(number) * _UNIT_MS[unit]
    return Rung(days_ms // DAY_MS, ms)


def _zone(controls: Controls, zones: Zones) -> str:
    if DELIVER_TZ not in controls:
        return "UTC"
    text = controls[DELIVER_TZ]
    unknown = _malformed(DELIVER_TZ, "a time zone by its IANA name, such as Europe/Berlin", text)
    if text is None or len(text) > _LONGEST_ZONE or _ZONE.fullmatch(text) is None:
        raise unknown
    name = text.decode("ascii")
    try:
        zones(name)
    # A folder of zones, such as Europe, is none either.
    except (LookupError, ValueError, OSError) as error:
        raise unknown from error
    return name


def _count(controls: Controls) -> int | None:
    if DELIVER_COUNT not in controls:
        return None
    text = controls[DELIVER_COUNT]
    count = int(text) if text is not None and _COUNT.fullmatch(text) is not None else 0
    if count == 0:
        raise _malformed(DELIVER_COUNT, "a number of deliveries from 1 to 999999999", text)
    return count


def _jitter(controls: Controls, rule: Rule) -> int:
    if DELIVER_JITTER not in controls:
        return 0
    jitter_ms = _duration(controls, DELIVER_JITTER)
    if jitter_ms > _LONGEST_JITTER_MS:
        raise _malformed(DELIVER_JITTER, f"{_A_DURATION}, of 24h at most", controls[DELIVER_JITTER])
    if isinstance(rule, Every) and jitter_ms > rule.interval_ms:
        raise _contradictory(DELIVER_JITTER, f"is longer than the interval of header {DELIVER_EVERY}: make it shorter")
    return jitter_ms


def _missed(controls: Controls) -> tuple[Missed, int | None]:
    text = controls.get(DELIVER_MISSED, Missed.LATEST.encode())
    found = next((policy for policy in Missed if policy.encode() == text), None)
    if found is None:
        raise _malformed(DELIVER_MISSED, "Latest, All or None", text)
    if DELIVER_CATCH_UP in controls:
        if found is not Missed.ALL:
            raise _contradictory(DELIVER_CATCH_UP, f"goes with {DELIVER_MISSED}: All alone")
        return found, _duration(controls, DELIVER_CATCH_UP)
    if found is Missed.ALL:
        detail = f"is All, so that header {DELIVER_CATCH_UP} has to say how far back (24h)"
        raise _contradictory(DELIVER_MISSED, detail)
    return found, None


def _duration(controls: Controls, name: str) -> int:
    text = controls[name]
    if text is not None and _DIGITS.fullmatch(text) is not None and int(text) <= LAST_INSTANT_MS:
        return int(text)
    if text is None or _DURATION.fullmatch(text) is None:
        raise _malformed(name, _A_DURATION, text)
    return sum(int(number) * _UNIT_MS[unit] for number, unit in _PART.findall(text))


def _instant(controls: Controls, name: str) -> int | None:
    """Return the instant in a header; None without the header."""
    if name not in controls:
        return None
    text = controls[name] or b""
    instant_ms = -1
    if _DIGITS.fullmatch(text) is not None:
        instant_ms = int(text)
    elif len(text) <= _LONGEST_INSTANT and _RFC_3339.fullmatch(text) is not None:
        instant_ms = _calendar_ms(text)
    if not 0 <= instant_ms <= LAST_SLOT_MS:
        raise _malformed(name, _AN_INSTANT, controls[name])
    return instant_ms


def _local_ms(text: bytes | None) -> int | None:
    """Return the wall time of a `deliver-at` without an offset; None where it is something else."""
    if text is None or len(text) > _LONGEST_INSTANT or _LOCAL.fullmatch(text) is None:
        return None
    wall_ms = _calendar_ms(text)
    if not 0 <= wall_ms <= LAST_SLOT_MS:
        raise _malformed(DELIVER_AT, _A_LOCAL_TIME, text)
    return wall_ms


def _calendar_ms(text: bytes) -> int:
    """Return a time as a calendar and a clock write it in milliseconds, or -1 for one that they do not have.

    A fraction finer than a millisecond counts up, so that nothing is due before the time written.
    """
    plain, _, rest = text.decode("ascii").upper().partition(".")
    digits = rest.rstrip("Z").partition("+")[0].partition("-")[0]
    zone = rest[len(digits) :]
    try:
        moment = datetime.fromisoformat(plain + zone)
        whole_ms = instant_of(moment) if moment.tzinfo is not None else wall_ms_of(moment)
    except (ValueError, OverflowError):
        return -1
    unit: int = 10 ** len(digits)
    return whole_ms - (-1_000 * int(digits or 0)) // unit


def _malformed(name: str, allowed: str, value: bytes | None) -> RecurrenceError:
    detail = f"header {name} must be {allowed}, but is {_shown(value)}"
    return RecurrenceError(DeadLetterReason.MALFORMED_HEADER, name, detail)


def _contradictory(name: str, detail: str) -> RecurrenceError:
    return RecurrenceError(DeadLetterReason.CONTRADICTORY_HEADERS, name, f"header {name} {detail}")


def _shown(value: bytes | None) -> str:
    """Return a header's value for a detail: ASCII, of bounded length."""
    if value is None:
        return "null"
    text = repr(value[:_SHOWN_BYTES])[1:] if value else "empty"
    return text if len(value) <= _SHOWN_BYTES else f"{text}..."
