"""The conformance table of the dialect SchedulerJson, after sky-uk's kafka-message-scheduler.

The original withdraws what waits under a name when a record with that name cannot be read; here it stays.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping

from tests.support.relay.dialects.table import (
    FAR_MS,
    Arrived,
    Beside,
    Case,
    Headers,
    Produced,
    Stage,
    Table,
    nothing,
    untouched,
)

TRACE: Headers = [("trace", b"1"), ("bytes", b"\xff\x00")]


def _b64(content: bytes) -> str:
    return b64encode(content).decode()


def _json(time_ms: int, topic: str, **changes: object) -> bytes:
    schedule = {
        "time": time_ms,
        "topic": topic,
        "key": _b64(b"user-1"),
        "value": _b64(b"hello"),
        "headers": {name: _b64(value or b"") for name, value in TRACE},
        **changes,
    }
    return json.dumps({name: part for name, part in schedule.items() if part != "left out"}).encode()


def _sent(
    stage: Stage,
    name: bytes,
    written: bytes,
    due_ms: int,
    topic: str = "",
    key: bytes = b"user-1",
    value: bytes | None = b"hello",
    headers: Headers = TRACE,
) -> Case:
    return Case(
        Produced(name, written, [("mine", b"stays in the source")]),
        lambda origin: Arrived(topic or stage.target, due_ms, key, value, headers),
        lambda origin: [Beside(stage.source, name, None, [("schedule:expired", b"true")], origin.partition)],
    )


def cases(stage: Stage) -> Mapping[str, Case]:
    """Return what its producers write, and what they should not."""
    soon_ms, target = stage.now_ms + 1_500, stage.target
    usual, far, past_ms = _json(soon_ms, target), _json(stage.now_ms + FAR_MS, target), stage.now_ms - 600_000
    many = {f"h{number}": "" for number in range(257)}
    return {
        "a schedule": _sent(stage, b"a", usual, soon_ms),
        "another topic": _sent(stage, b"b", _json(soon_ms, stage.other), soon_ms, stage.other),
        "past": _sent(stage, b"c", _json(past_ms, target), past_ms),
        "before 1970": _sent(stage, b"d", _json(-5, target), 0),
        "no headers": _sent(stage, b"e", _json(soon_ms, target, headers="left out"), soon_ms, headers=[]),
        "null headers": _sent(stage, b"f", _json(soon_ms, target, headers=None), soon_ms, headers=[]),
        "no value": _sent(stage, b"g", _json(soon_ms, target, value="left out"), soon_ms, value=None),
        "a null value": _sent(stage, b"h", _json(soon_ms, target, value=None), soon_ms, value=None),
        "an empty value": _sent(stage, b"i", _json(soon_ms, target, value=""), soon_ms, value=b""),
        "an empty key": _sent(stage, b"j", _json(soon_ms, target, key=""), soon_ms, key=b""),
        "a field that it does not know": _sent(stage, b"k", _json(soon_ms, target, more=[1]), soon_ms),
        "one that is replaced": nothing(Produced(b"l", far)),
        "its replacement": _sent(stage, b"l", _json(soon_ms + 500, target), soon_ms + 500),
        "one that is cancelled": nothing(Produced(b"m", far)),
        "its cancel": nothing(Produced(b"m", None)),
        "one whose replacement cannot be read": _sent(stage, b"n", usual, soon_ms),
        "that replacement": untouched(Produced(b"n", b"{}"), "malformed-value"),
        "one beside a tombstone of the original": _sent(stage, b"o", usual, soon_ms),
        "that tombstone": nothing(Produced(b"o", None, [("schedule:expired", b"TRUE")])),
        "no JSON": untouched(Produced(b"p", b"\x00avro"), "malformed-value"),
        "an empty record": untouched(Produced(b"q", b""), "malformed-value"),
        "a time in a text": _sent(stage, b"r", _json(0, target, time=f"{soon_ms}"), soon_ms),
        "a time with an exponent": _sent(stage, b"r2", _json(0, target, time=f"{soon_ms}000e-3"), soon_ms),
        "a time with a blank": untouched(Produced(b"r3", _json(0, target, time=f"{soon_ms} ")), "malformed-value"),
        "a part of a millisecond": untouched(Produced(b"r4", _json(0, target, time=0.5)), "malformed-value"),
        "no padding": _sent(stage, b"s1", _json(soon_ms, target, key="dXNlci0x", value="aGVsbG8"), soon_ms),
        "half of the padding": untouched(Produced(b"s2", _json(soon_ms, target, value="YQ=")), "malformed-value"),
        "a blank name": _sent(stage, b"  ", usual, soon_ms),
        "one that is cancelled with a delivery's headers": nothing(Produced(b"x", far)),
        "its cancel with a delivery's headers": nothing(
            Produced(b"x", None, [("trace", b"1"), ("delay-receipt", b"1795269686270:0:0:1795269686271:source")])
        ),
        "one beside a tombstone whose header has capitals": _sent(stage, b"y", usual, soon_ms),
        "that tombstone with capitals": nothing(Produced(b"y", None, [("Schedule:Expired", b"true")])),
        "no base64": untouched(Produced(b"s", _json(soon_ms, target, value="%")), "malformed-value"),
        "no key for the target": untouched(Produced(b"t", _json(soon_ms, target, key="left out")), "malformed-value"),
        "too many headers": untouched(Produced(b"u", _json(soon_ms, target, headers=many)), "too-many-headers"),
        "too far": untouched(Produced(b"v", _json(soon_ms + 3_700_000, target)), "beyond-max-delay"),
        "a forbidden topic": untouched(Produced(b"w", _json(soon_ms, "payments")), "forbidden-target"),
        "no name": untouched(Produced(None, usual), "malformed-key"),
    }


TABLE = Table({"schedulerJson": {}, "maxDelay": "1h"}, cases)
