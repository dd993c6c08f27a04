"""The conformance table of the dialect Timebridge, after kafka-timebridge's acceptor and scheduler.

The original appends `X-Timebridge-Error` behind one header without name and value, which its code makes by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

from tests.support.relay.dialects.table import Arrived, Case, Headers, Produced, Stage, Table, untouched

OWN: Headers = [("Content-Type", b"application/json"), ("trace", None), ("trace", b"2")]
KEY, VALUE = b"user-1", b'{"userId": 123}'


def _rfc_3339(at_ms: int, zone: timezone = UTC) -> str:
    text = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)).astimezone(zone).isoformat()
    return text.replace("+00:00", "Z")


def _record(when: bytes | None, where: bytes | None) -> Produced:
    return Produced(KEY, VALUE, [("X-Timebridge-When", when), OWN[0], ("X-Timebridge-Where", where), *OWN[1:]])


def _sent(stage: Stage, when: str, due_ms: int, topic: str = "") -> Case:
    topic = topic or stage.target
    return Case(_record(when.encode(), topic.encode()), lambda origin: Arrived(topic, due_ms, KEY, VALUE, OWN))


def _bad(produced: Produced, error: str, reason: str = "malformed-header") -> Case:
    return untouched(produced, reason, ("X-Timebridge-Error", error.encode()))


def cases(stage: Stage) -> Mapping[str, Case]:
    """Return what its producers write, and what they should not."""
    second_ms = stage.now_ms - stage.now_ms % 1_000 + 1_000
    where, soon = stage.target.encode(), _rfc_3339(second_ms).encode()
    berlin, invalid = timezone(timedelta(hours=1)), "X-Timebridge-When header is invalid, RFC3339 format expected"
    twice = Produced(
        KEY,
        VALUE,
        [
            ("X-Timebridge-When", b"tomorrow"),
            ("X-Timebridge-Where", b"payments"),
            ("X-Timebridge-When", soon),
            ("X-Timebridge-Where", where),
        ],
    )
    return {
        "a second": _sent(stage, _rfc_3339(second_ms), second_ms),
        "another topic": _sent(stage, _rfc_3339(second_ms), second_ms, stage.other),
        "another zone": _sent(stage, _rfc_3339(second_ms, berlin), second_ms),
        "a fraction": _sent(stage, _rfc_3339(second_ms + 250), second_ms + 250),
        "nanoseconds": _sent(stage, _rfc_3339(second_ms).replace("Z", ".000000001Z"), second_ms + 1),
        "now": _sent(stage, _rfc_3339(stage.now_ms), stage.now_ms),
        "past": _sent(stage, _rfc_3339(second_ms - 3_600_000), second_ms - 3_600_000),
        "long past": _sent(stage, "1969-07-20T20:17:40Z", 0),
        "the last of repeated headers": Case(twice, lambda origin: Arrived(stage.target, second_ms, KEY, VALUE)),
        "no key and no value": Case(
            Produced(None, None, [("X-Timebridge-When", soon), ("X-Timebridge-Where", where)]),
            lambda origin: Arrived(stage.target, second_ms, None, None),
        ),
        "other capitals are other headers": Case(
            Produced(
                KEY,
                VALUE,
                [("x-timebridge-when", b"no"), ("X-Timebridge-When", soon), ("X-Timebridge-Where", where)],
            ),
            lambda origin: Arrived(stage.target, second_ms, KEY, VALUE, [("x-timebridge-when", b"no")]),
        ),
        "neither": _bad(Produced(KEY, VALUE, OWN), "X-Timebridge-When header is missing"),
        "no time": _bad(Produced(KEY, VALUE, [("X-Timebridge-Where", where)]), "X-Timebridge-When header is missing"),
        "no topic": _bad(Produced(KEY, VALUE, [("X-Timebridge-When", soon)]), "X-Timebridge-Where header is missing"),
        "an empty time": _bad(_record(b"", where), "X-Timebridge-When header is missing"),
        "a null topic": _bad(_record(soon, None), "X-Timebridge-Where header is missing"),
        "words": _bad(_record(b"tomorrow", where), invalid),
        "no offset": _bad(_record(b"2026-11-21T14:01:26", where), invalid),
        "no such day": _bad(_record(b"2026-02-30T00:00:00Z", where), invalid),
        "epoch milliseconds": _bad(_record(b"%d" % second_ms, where), invalid),
        "bytes": _bad(_record(b"\xff\x00", where), invalid),
        "a forbidden topic": _bad(
            _record(soon, b"payments"),
            f"header X-Timebridge-Where names topic payments, but this DelayTopic allows {stage.target}, {stage.other}"
            " (target.allowedTopics)",
            "forbidden-target",
        ),
    }


TABLE = Table({"timebridge": {}, "maxDelay": "1h"}, cases)
