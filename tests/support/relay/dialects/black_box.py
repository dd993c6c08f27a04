"""The conformance table of the dialect BlackBox.

The design that it follows produces `message` to `topic`, and says nothing of keys and headers: they go along.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.support.relay.dialects.table import Arrived, Case, Headers, Produced, Stage, Table, untouched

CALLER: Headers = [("CALLER_SERVICE", b"orders"), ("trace", None)]
LONGEST_S = 3_600


def _sent(stage: Stage, value: str, delay_ms: int, message: bytes | None, topic: str = "") -> Case:
    produced = Produced(b"order-7", value.encode(), CALLER)
    return Case(
        produced,
        lambda origin: Arrived(topic or stage.target, origin.timestamp_ms + delay_ms, b"order-7", message, CALLER),
    )


def _asked(stage: Stage, message: object, countdown: float, topic: str = "") -> str:
    return json.dumps({"topic": topic or stage.target, "message": message, "countdown": countdown})


def _bad(value: bytes | None, reason: str = "malformed-value") -> Case:
    return untouched(Produced(b"order-7", value, CALLER), reason)


def cases(stage: Stage) -> Mapping[str, Case]:
    """Return what its producers write, and what they should not."""
    text, quoted = "now", json.dumps(stage.target)
    return {
        "a text": _sent(stage, _asked(stage, "remind me", 0), 0, b"remind me"),
        "another topic": _sent(stage, _asked(stage, text, 0, stage.other), 0, b"now", stage.other),
        "a second": _sent(stage, _asked(stage, text, 1), 1_000, b"now"),
        "a fraction": _sent(stage, _asked(stage, text, 0.25), 250, b"now"),
        "a fraction that binary has not": _sent(stage, _asked(stage, text, 1.1), 1_100, b"now"),
        "less than a millisecond": _sent(stage, _asked(stage, text, 0.0001), 1, b"now"),
        "an exponent": _sent(stage, f'{{"topic": {quoted}, "message": "now", "countdown": 1e0}}', 1_000, b"now"),
        "an object": _sent(stage, f'{{"topic":{quoted},"message":{{"a": [1, 2]}},"countdown":0}}', 0, b'{"a": [1, 2]}'),
        "a number": _sent(stage, _asked(stage, 7, 0), 0, b"7"),
        "null": _sent(stage, _asked(stage, None, 0), 0, None),
        "an empty text": _sent(stage, _asked(stage, "", 0), 0, b""),
        "escapes": _sent(stage, _asked(stage, 'ü "\n', 0), 0, 'ü "\n'.encode()),
        "fields that it does not know": _sent(
            stage, f'{{"id": 1, "topic": {quoted}, "message": "now", "countdown": 0, "try": {{}}}}', 0, b"now"
        ),
        "the last of a field that is there twice": _sent(
            stage,
            f'{{"topic": {quoted}, "message": "no", "countdown": 9, "message": "now", "countdown": 0}}',
            0,
            b"now",
        ),
        "no JSON": _bad(b"remind me"),
        "no value": _bad(None),
        "an array": _bad(b"[]"),
        "no topic": _bad(b'{"message": "x", "countdown": 1}'),
        "no message": _bad(f'{{"topic": {quoted}, "countdown": 1}}'.encode()),
        "no countdown": _bad(f'{{"topic": {quoted}, "message": "x"}}'.encode()),
        "a countdown in a text": _bad(f'{{"topic": {quoted}, "message": "x", "countdown": "1"}}'.encode()),
        "a negative countdown": _bad(_asked(stage, text, -1).encode()),
        "a countdown beyond all numbers": _bad(
            f'{{"topic": {quoted}, "message": "x", "countdown": 1e300}}'.encode(), "beyond-max-delay"
        ),
        "a countdown whose milliseconds are beyond all numbers": _bad(
            f'{{"topic": {quoted}, "message": "x", "countdown": 1e306}}'.encode(), "beyond-max-delay"
        ),
        "longer than allowed": _bad(_asked(stage, text, LONGEST_S + 0.001).encode(), "beyond-max-delay"),
        "a forbidden topic": _bad(_asked(stage, text, 0, "payments").encode(), "forbidden-target"),
        "no topic's name": _bad(_asked(stage, text, 0, "no topic/name").encode(), "malformed-value"),
        "half a surrogate": _bad(f'{{"topic": {quoted}, "message": "\\ud800", "countdown": 0}}'.encode()),
        "no UTF-8": _bad(b'{"topic": "\xff", "message": "x", "countdown": 0}'),
    }


TABLE = Table({"blackBox": {}, "maxDelay": "1h"}, cases)
