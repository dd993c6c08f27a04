"""The conformance table of the dialect Kaspr, after Kaspr's message scheduler.

The original drops fractions of a second, and would deliver too early by them; it sends an ADD whose request id waits
already beside the one that waits. What recurs has no single record that follows from it: here it is cancelled before
its first time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from tests.support.relay.dialects.table import FAR_MS, Arrived, Case, Headers, Produced, Refused, Stage, Table, nothing

OWN: Headers = [("content-type", b"text/plain"), ("trace", b"7")]
KEY, VALUE = b"user-1", b"hello"


def _iso(at_ms: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)).isoformat()


def _record(*controls: tuple[str, bytes | None], value: bytes | None = VALUE, key: bytes | None = KEY) -> Produced:
    return Produced(key, value, [*controls, *OWN])


def _at(text: str) -> tuple[str, bytes]:
    return ("x-scheduler-deliver-at", text.encode())


def _to(topic: str) -> tuple[str, bytes]:
    return ("x-scheduler-deliver-to", topic.encode())


def _id(name: bytes) -> tuple[str, bytes]:
    return ("x-scheduler-request-id", name)


def _action(name: bytes) -> tuple[str, bytes]:
    return ("x-scheduler-action", name)


def _cron(expression: str) -> tuple[str, bytes]:
    return ("x-scheduler-cron-expr", expression.encode())


def _missed(policy: bytes) -> tuple[str, bytes]:
    return ("x-scheduler-cron-missed-fire-policy", policy)


def _sent(produced: Produced, topic: str, due_ms: int) -> Case:
    key, value, _ = produced
    return Case(produced, lambda origin: Arrived(topic, due_ms, key, value, OWN))


def _bad(
    produced: Produced,
    *errors: str,
    reason: str = "malformed-header",
    value: str | None = "hello",
    others: Mapping[str, str] = MappingProxyType({}),
) -> Case:
    own = {**others, **{name: (content or b"").decode() for name, content in OWN}}
    document = {"key": "user-1", "value": value, "headers": own, "errors": [*errors]}
    rejection = json.dumps(document, separators=(",", ":")).encode()
    return Case(produced, lambda origin: Refused(reason, KEY, rejection))


def cases(stage: Stage) -> Mapping[str, Case]:
    """Return what its producers write, and what they should not."""
    soon_ms, later_ms = stage.now_ms + 1_500, stage.now_ms + 3_000
    far = _at(_iso(stage.now_ms + FAR_MS))
    in_half_an_hour = f"{(stage.now_ms // 60_000 + 30) % 60} * * * *"
    soon, later, target = _at(_iso(soon_ms)), _at(_iso(later_ms)), _to(stage.target)
    no_at, no_to = (
        "Missing required header `x-scheduler-deliver-at`",
        "Missing required header `x-scheduler-deliver-to`",
    )
    no_id = "Missing required header `x-scheduler-request-id` for {} action"
    iso = "header x-scheduler-deliver-at must be an ISO 8601 instant in UTC (2026-11-21T14:01:26Z), but is {}"
    return {
        "an add": _sent(_record(soon, target), stage.target, soon_ms),
        "an add that says so": _sent(_record(_action(b"ADD"), soon, target), stage.target, soon_ms),
        "another topic": _sent(_record(soon, _to(stage.other)), stage.other, soon_ms),
        "with Z": _sent(_record(_at(_iso(soon_ms).replace("+00:00", "Z")), target), stage.target, soon_ms),
        "without an offset": _sent(_record(_at(_iso(soon_ms).replace("+00:00", "")), target), stage.target, soon_ms),
        "past": _sent(_record(_at("2001-01-01T00:00:00Z"), target), stage.target, 978_307_200_000),
        "no value": _sent(_record(soon, target, value=None), stage.target, soon_ms),
        "no key": _sent(_record(soon, target, key=None), stage.target, soon_ms),
        "one that is replaced": nothing(_record(_id(b"a"), far, target)),
        "its replacement": _sent(
            _record(_action(b"REPLACE"), _id(b"a"), later, target, value=b"new"), stage.target, later_ms
        ),
        "a replacement of nothing": _sent(_record(_action(b"REPLACE"), _id(b"b"), soon, target), stage.target, soon_ms),
        "one that is cancelled": nothing(_record(_id(b"c"), far, target)),
        "its cancel": nothing(_record(_action(b"CANCEL"), _id(b"c"), value=None)),
        "a cancel of nothing": nothing(_record(_action(b"CANCEL"), _id(b"d"), value=None)),
        "no headers for it": _bad(_record(), no_at, no_to),
        "no time": _bad(_record(target), no_at),
        "no topic": _bad(_record(soon), no_to),
        "a cancel without an id": _bad(_record(_action(b"CANCEL")), no_id.format("CANCEL")),
        "a replacement without an id": _bad(_record(_action(b"REPLACE"), soon, target), no_id.format("REPLACE")),
        "words": _bad(_record(_at("tomorrow"), target), iso.format("'tomorrow'")),
        "an unknown action": _bad(
            _record(_action(b"MOVE"), soon, target),
            "header x-scheduler-action must be ADD, CANCEL, REPLACE, CRON_ADD or CRON_CANCEL, but is 'MOVE'",
            reason="unknown-action",
        ),
        "one that recurs": nothing(_record(_action(b"CRON_ADD"), _id(b"e"), _cron(in_half_an_hour), target)),
        "the cancel of what recurs": nothing(_record(_action(b"CRON_CANCEL"), _id(b"e"), value=None)),
        "one that recurs without a rule": _bad(
            _record(_action(b"CRON_ADD"), _id(b"f")),
            "Missing required header `x-scheduler-cron-expr` for CRON_ADD action",
            "Missing required header `x-scheduler-deliver-to` for CRON_ADD action",
        ),
        "one that recurs by no rule": _bad(
            _record(_action(b"CRON_ADD"), _id(b"f"), _cron("daily"), target),
            "header x-scheduler-cron-expr must be a cron expression of five fields, or of six with seconds first, of"
            " 256 bytes at most (0 9 * * mon-fri), but is 'daily'",
        ),
        "one that recurs with a header of ours": _bad(
            _record(_action(b"CRON_ADD"), _id(b"f"), _cron("* * * * *"), target, ("deliver-tz", b"UTC")),
            "header deliver-tz has a meaning for relays: a record that recurs may not have it besides",
            reason="contradictory-headers",
            others={"deliver-tz": "UTC"},
        ),
        "what recurs, passing over what is missed in another way": _bad(
            _record(_action(b"CRON_ADD"), _id(b"f"), _cron("* * * * *"), target, _missed(b"latest")),
            "header x-scheduler-cron-missed-fire-policy must be replay or skip, but is 'latest'",
        ),
        "a pause": _bad(
            _record(_action(b"CRON_PAUSE"), _id(b"e")),
            "header x-scheduler-action is 'CRON_PAUSE', which is not supported: send CRON_CANCEL, and later CRON_ADD",
            reason="unsupported",
        ),
        "a forbidden topic": _bad(
            _record(soon, _to("payments")),
            "header x-scheduler-deliver-to names topic payments,"
            f" but this DelayTopic allows {stage.target}, {stage.other} (target.allowedTopics)",
            reason="forbidden-target",
        ),
    }


TABLE = Table({"kaspr": {}, "maxDelay": "1h"}, cases)
