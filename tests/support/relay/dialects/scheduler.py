"""The conformance tables of the dialect Scheduler, after etf1's kafka-message-scheduler.

The original writes its tombstone wherever the key's hash falls, and drops what is past due when it is produced; both
are its users' reports. Here the tombstone is in the partition of its schedule, and what is past due is sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.relay.dialects.table import (
    FAR_MS,
    Arrived,
    Beside,
    Case,
    Headers,
    Origin,
    Produced,
    Stage,
    Table,
    nothing,
    untouched,
)

OWN: Headers = [("customer-header", b"dummy"), ("retry-attempt", b"2"), ("retry-original-timestamp", b"1795269600")]
VALUE = b"video 1"
DAY_S = 86_400


def _headers(epoch_s: int, topic: str, key: bytes | None = b"vid1") -> Headers:
    return [
        ("scheduler-epoch", b"%d" % epoch_s),
        ("scheduler-target-topic", topic.encode()),
        ("scheduler-target-key", key),
        *OWN,
    ]


def _sent(
    stage: Stage, name: bytes, headers: Headers, epoch_s: int, topic: str, key: bytes | None = b"vid1", **rest: bytes
) -> Case:
    value = rest.get("value", VALUE)

    def written(origin: Origin) -> Headers:
        stamped: Headers = [
            ("scheduler-timestamp", b"%d" % (origin.timestamp_ms // 1000)),
            ("scheduler-key", name),
            ("scheduler-topic", origin.topic.encode()),
        ]
        return [*headers, *stamped]

    return Case(
        Produced(name, value, headers),
        lambda origin: Arrived(topic, epoch_s * 1000, key, value, written(origin)),
        lambda origin: [
            Beside(stage.source, name, None, [*written(origin), ("delay-ended", b"delivered")], origin.partition),
            Beside(stage.history, key, value, written(origin)),
        ],
    )


def _expired(stage: Stage, name: bytes, headers: Headers) -> Case:
    """A record that came too late, and its tombstone, as the original writes it."""
    ended: Headers = [*headers, ("delay-ended", b"expired")]
    return untouched(Produced(name, VALUE, headers), "expired")._replace(
        beside=lambda origin: [Beside(stage.source, name, None, ended, origin.partition)]
    )


def _copied(stage: Stage, *ends: tuple[str, bytes]) -> Headers:
    """The headers of a delivery, as a consumer of the target may send them again with a null."""
    due_ms = stage.now_ms + FAR_MS
    receipt = b"%d:0:0:%d:%b" % (due_ms, due_ms, stage.source.encode())
    return [*_headers(due_ms // 1000, stage.target), *ends, ("delay-receipt", receipt)]


def cases(stage: Stage) -> Mapping[str, Case]:
    """Return what its producers write, and what they should not."""
    soon_s, target = stage.now_ms // 1000 + 2, stage.target
    usual, far = _headers(soon_s, target), _headers((stage.now_ms + FAR_MS) // 1000, target)
    past_s = soon_s - 3_600
    twice: Headers = [("scheduler-epoch", b"%d" % soon_s), *_headers(0, target)]
    without_key = [header for header in usual if header[0] != "scheduler-target-key"]
    return {
        "a schedule": _sent(stage, b"vid1-online", usual, soon_s, target),
        "another topic": _sent(stage, b"other", _headers(soon_s, stage.other), soon_s, stage.other),
        "no target key": _sent(stage, b"no-key", without_key, soon_s, target, None),
        "a null target key": _sent(stage, b"null-key", _headers(soon_s, target, None), soon_s, target, None),
        "an empty target key": _sent(stage, b"empty-key", _headers(soon_s, target, b""), soon_s, target, b""),
        "an empty value": _sent(stage, b"empty", usual, soon_s, target, value=b""),
        "past due": _sent(stage, b"past", _headers(past_s, target), past_s, target),
        "the beginning of time": _sent(stage, b"zero", _headers(0, target), 0, target),
        "the first of a repeated header": _sent(stage, b"twice", twice, soon_s, target),
        "bytes for a name": _sent(stage, b"\xff\x00", usual, soon_s, target),
        "one that is replaced": nothing(Produced(b"again", b"old", far)),
        "its replacement": _sent(stage, b"again", _headers(soon_s + 1, target), soon_s + 1, target),
        "one that is cancelled": nothing(Produced(b"gone", VALUE, far)),
        "its cancel": nothing(Produced(b"gone", None)),
        "a cancel of nothing": nothing(Produced(b"never", None)),
        "one that is cancelled with a delivery's headers": nothing(Produced(b"copied", VALUE, usual)),
        "its cancel with a delivery's headers": nothing(Produced(b"copied", None, _copied(stage))),
        "one that another topic's tombstone cancels": nothing(Produced(b"moved", VALUE, usual)),
        "the tombstone of another topic": nothing(
            Produced(b"moved", None, _copied(stage._replace(source="former"), ("delay-ended", b"delivered")))
        ),
        "a sign": _sent(stage, b"plus", [("scheduler-epoch", b"+%d" % soon_s), *usual[1:]], soon_s, target),
        "more zeros than a number has": _sent(
            stage, b"zeros", [("scheduler-epoch", b"%030d" % soon_s), *usual[1:]], soon_s, target
        ),
        "a negative zero": _sent(stage, b"minus-zero", [("scheduler-epoch", b"-0"), *usual[1:]], 0, target),
        "more than a long": untouched(
            Produced(b"huge", VALUE, [("scheduler-epoch", b"9223372036854775808"), *usual[1:]]), "malformed-header"
        ),
        "a blank in a name": _sent(stage, "\u2003a".encode(), usual, soon_s, target),
        "a name of wide blanks": untouched(Produced("\u2003\xa0".encode(), VALUE, usual), "malformed-key"),
        "no headers": untouched(Produced(b"bare", VALUE), "malformed-header"),
        "no epoch": untouched(Produced(b"no-epoch", VALUE, usual[1:]), "malformed-header"),
        "words": untouched(Produced(b"words", VALUE, [("scheduler-epoch", b"soon"), *usual[1:]]), "malformed-header"),
        "a negative epoch": untouched(
            Produced(b"minus", VALUE, [("scheduler-epoch", b"-1"), *usual[1:]]), "malformed-header"
        ),
        "a fraction": untouched(
            Produced(b"half", VALUE, [("scheduler-epoch", b"1.5"), *usual[1:]]), "malformed-header"
        ),
        "milliseconds": untouched(Produced(b"ms", VALUE, _headers(stage.now_ms, target)), "beyond-max-delay"),
        "no topic": untouched(Produced(b"no-topic", VALUE, usual[:1]), "malformed-header"),
        "a forbidden topic": untouched(Produced(b"theirs", VALUE, _headers(soon_s, "payments")), "forbidden-target"),
        "no name": untouched(Produced(None, VALUE, usual), "malformed-key"),
        "a blank name": untouched(Produced(b"  ", VALUE, usual), "malformed-key"),
        "a long name": untouched(Produced(b"x" * 257, VALUE, usual), "malformed-key"),
        "a cancel without a name": untouched(Produced(None, None), "malformed-key"),
    }


def bounded_cases(stage: Stage) -> Mapping[str, Case]:
    """Return what comes of schedules that were missed, where that has bounds: an hour of grace, and the same day."""
    now_s, target = stage.now_ms // 1000, stage.target
    recent_s, old_s = now_s - 60, now_s - 3_700
    return {
        "within the grace": _sent(stage, b"recent", _headers(recent_s, target), recent_s, target),
        "a second beyond the grace": _expired(stage, b"late", _headers(now_s - 3_601, target)),
        "beyond the grace": _expired(stage, b"old", _headers(old_s, target)),
        "to come": _sent(stage, b"next", _headers(now_s + 2, target), now_s + 2, target),
    }


def daily_cases(stage: Stage) -> Mapping[str, Case]:
    """Return what comes of schedules of other days, where only those of today and yesterday are made up for."""
    now_s, target = stage.now_ms // 1000, stage.target
    yesterday_s, before_s = now_s - DAY_S, now_s - 2 * DAY_S
    return {
        "yesterday's": _sent(stage, b"yesterday", _headers(yesterday_s, target), yesterday_s, target),
        "those of the day before": _expired(stage, b"before", _headers(before_s, target)),
    }


TABLE = Table({"scheduler": {}, "maxDelay": "1h"}, cases)
BOUNDED = Table({"maxDelay": "1h", "scheduler": {"graceInterval": "1h"}}, bounded_cases)
DAILY = Table({"maxDelay": "1h", "scheduler": {"sinceDays": 1}}, daily_cases)
