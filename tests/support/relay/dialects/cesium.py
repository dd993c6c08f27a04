"""The conformance tables of the dialect Cesium, after cesium-kafka 1.1.1: by default, with other policies, in binary.

The original counts `delay.max` for `cesium-deliver-at` from its own clock, and stamps `cesium-scheduled-for` on what
was not yet due when it was read; here both go by the record's timestamp, so that reading it again gives the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from tests.support.relay.dialects.table import Arrived, Case, Headers, Origin, Outcome, Produced, Refused, Stage, Table

OWN: Headers = [("trace", b"1"), ("cesium-note", b"mine"), ("trace", None)]
KEY, VALUE = b"order-7", b"\x00value"
HOUR_MS = 3_600_000
DIGITS = "1 to 19 ASCII digits, at most 9223372036854775807"


def _provenance(origin: Origin) -> Headers:
    return [
        ("cesium-relayed-at", b"%d" % origin.sent_ms),
        ("cesium-source-topic", origin.topic.encode()),
        ("cesium-source-partition", b"%d" % origin.partition),
        ("cesium-source-offset", b"%d" % origin.offset),
        ("cesium-source-timestamp", b"%d" % origin.timestamp_ms),
    ]


def _sent(stage: Stage, *controls: tuple[str, bytes | None], due_ms: int | None = None, delay_ms: int = 0) -> Case:
    """A record due at an instant, or so long after its timestamp."""

    def outcome(origin: Origin) -> Outcome:
        due = origin.timestamp_ms + delay_ms if due_ms is None else due_ms
        scheduled = [("cesium-scheduled-for", b"%d" % due)] if due > origin.timestamp_ms else []
        return Arrived(stage.target, due, KEY, VALUE, [*OWN, *_provenance(origin), *scheduled])

    return Case(Produced(KEY, VALUE, [*controls, *OWN]), outcome)


def _bad(detail: str, *controls: tuple[str, bytes | None], reason: str = "malformed-header") -> Case:
    def outcome(origin: Origin) -> Outcome:
        error = [("cesium-error-reason", reason.encode()), ("cesium-error-detail", detail.encode())]
        return Refused("malformed-header", KEY, VALUE, [*controls, *OWN, *error, *_provenance(origin)])

    return Case(Produced(KEY, VALUE, [*controls, *OWN]), outcome)


def _malformed(name: str, value: bytes | None, shown: str) -> Case:
    return _bad(f"header {name} must be {DIGITS}, but is {shown}", (name, value))


def _too_long(name: str, value: bytes, due_ms: int | None, delay_ms: int, after: str) -> Case:
    def outcome(origin: Origin) -> Outcome:
        due = origin.timestamp_ms + delay_ms if due_ms is None else due_ms
        detail = (
            f"the record is due at {written(due)}, {after} after its timestamp {written(origin.timestamp_ms)};"
            f" this DelayTopic allows at most 1h (schedule.maxDelay)"
        )
        error = [("cesium-error-reason", b"over-max-delay"), ("cesium-error-detail", detail.encode())]
        return Refused("beyond-max-delay", KEY, VALUE, [(name, value), *OWN, *error, *_provenance(origin)])

    return Case(Produced(KEY, VALUE, [(name, value), *OWN]), outcome)


def written(milliseconds: int) -> str:
    """Return a time as details of dead letters have it."""
    if milliseconds > 253_402_300_799_999:
        return f"epoch {milliseconds} ms"
    return datetime.fromtimestamp(milliseconds / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cases(stage: Stage) -> Mapping[str, Case]:
    """Return what its producers write, and what they should not, with the default policies."""
    at, after = "cesium-deliver-at", "cesium-delay-ms"
    soon_ms, past_ms = stage.now_ms + 1_500, stage.now_ms - HOUR_MS
    soon = b"%d" % soon_ms
    return {
        "no control header": _sent(stage),
        "an instant": _sent(stage, (at, soon), due_ms=soon_ms),
        "a delay": _sent(stage, (after, b"700"), delay_ms=700),
        "no delay": _sent(stage, (after, b"0")),
        "past": _sent(stage, (at, b"%d" % past_ms), due_ms=past_ms),
        "the beginning of time": _sent(stage, (at, b"0"), due_ms=0),
        "leading zeros": _sent(stage, (after, b"0000000000000000700"), delay_ms=700),
        "both, and the instant wins": _sent(stage, (after, b"soon"), (at, soon), due_ms=soon_ms),
        "the last of a repeated one": _sent(stage, (after, b"x"), (after, b"700"), delay_ms=700),
        "the names of its proof of concept": _sent(stage, ("cesium-delay-until", soon), due_ms=soon_ms),
        "a delay of its proof of concept": _sent(stage, ("cesium-delay-by", b"700"), delay_ms=700),
        "the names without prefix": _sent(stage, ("delay-until", soon), due_ms=soon_ms),
        "a delay without prefix": _sent(stage, ("delay-by", b"700"), delay_ms=700),
        "exactly the longest delay": Case(Produced(KEY, VALUE, [(after, b"%d" % HOUR_MS), *OWN]), lambda origin: None),
        "old names beside new ones are the producer's": Case(
            Produced(KEY, VALUE, [("delay-by", b"mine"), (at, soon)]),
            lambda origin: Arrived(
                stage.target,
                soon_ms,
                KEY,
                VALUE,
                [("delay-by", b"mine"), *_provenance(origin), ("cesium-scheduled-for", soon)],
            ),
        ),
        "words": _malformed(after, b"soon", "'soon'"),
        "a sign": _malformed(after, b"+5", "'+5'"),
        "a negative delay": _malformed(after, b"-5", "'-5'"),
        "a blank": _malformed(after, b" 5", "' 5'"),
        "a fraction": _malformed(after, b"1.5", "'1.5'"),
        "empty": _malformed(after, b"", "empty"),
        "null": _malformed(at, None, "null"),
        "twenty digits": _malformed(at, b"1" * 20, f"'{'1' * 20}'"),
        "more than a long": _malformed(at, b"9223372036854775808", "'9223372036854775808'"),
        "eight bytes": _malformed(after, b"\x00" * 7 + b"\x05", "'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05'"),
        "a delay too long": _too_long(after, b"%d" % (HOUR_MS + 1), None, HOUR_MS + 1, "1h1ms"),
        "the largest long": _too_long(at, b"9223372036854775807", (1 << 63) - 1, 0, "more than 99999h"),
    }


def lenient_cases(stage: Stage) -> Mapping[str, Case]:
    """Return what comes of bad records that are delivered, clamped, and not stamped."""
    at, after = "cesium-deliver-at", "cesium-delay-ms"

    def plain(*controls: tuple[str, bytes | None], delay_ms: int = 0) -> Case:
        return Case(
            Produced(KEY, VALUE, [*controls, *OWN]),
            lambda origin: Arrived(stage.target, origin.timestamp_ms + delay_ms, KEY, VALUE, OWN),
        )

    def clamped(name: str, value: bytes) -> Case:
        headers = [*OWN, ("cesium-clamped", b"true")]
        return Case(
            Produced(KEY, VALUE, [(name, value), *OWN]),
            lambda origin: Arrived(stage.target, origin.timestamp_ms + 1_000, KEY, VALUE, headers),
        )

    return {
        "words": plain((after, b"soon")),
        "null": plain((at, None)),
        "a good delay": plain((after, b"900"), delay_ms=900),
        "exactly the longest delay": plain((after, b"1000"), delay_ms=1_000),
        "a delay too long": clamped(after, b"1001"),
        "an instant too far": clamped(at, b"9223372036854775807"),
    }


def binary_cases(stage: Stage) -> Mapping[str, Case]:
    """Return how longs of eight bytes are read."""
    at, after = "cesium-deliver-at", "cesium-delay-ms"
    soon_ms = stage.now_ms + 1_500

    def long(number: int) -> bytes:
        return number.to_bytes(8, "big", signed=True)

    def malformed(name: str, value: bytes | None, shown: str, allowed: str = "a big-endian long of 8 bytes") -> Case:
        return _bad(f"header {name} must be {allowed}, but is {shown}", (name, value))

    return {
        "an instant": _sent(stage, (at, long(soon_ms)), due_ms=soon_ms),
        "a delay": _sent(stage, (after, long(700)), delay_ms=700),
        "before 1970": _sent(stage, (at, long(-5)), due_ms=0),
        "eight digits": _bad_digits(at),
        "seven bytes": malformed(after, b"\x00" * 7, "'\\x00\\x00\\x00\\x00\\x00\\x00\\x00'"),
        "null": malformed(after, None, "null"),
        "a negative delay": malformed(
            after, long(-1), "'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff'", "a delay from 0 ms on"
        ),
    }


def _bad_digits(name: str) -> Case:
    number = int.from_bytes(b"12345678", "big")
    return _too_long(name, b"12345678", number, 0, "more than 99999h")


TABLE = Table({"cesium": {}, "maxDelay": "1h"}, cases)
LENIENT = Table(
    {
        "maxDelay": "1s",
        "cesium": {"onMalformed": "Deliver", "onBeyondMaxDelay": "Clamp", "provenance": "Absent"},
    },
    lenient_cases,
)
BINARY = Table({"maxDelay": "1h", "cesium": {"numbers": "Binary"}}, binary_cases)
